// What -ffast-math must not take away: the rounding in powers of two, without which all decays of a selective
// scan are wrong, and the tests for numbers that are not finite, which the compiler may leave out.
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/train/clip.hpp>
#include <fprnn/train/finite.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

int failures = 0;

void check(bool ok, const char* claim) {
    if (ok) return;
    std::printf("not so: %s\n", claim);
    ++failures;
}

/// NaN and infinity of the compiler's are numbers that it may assume not to exist.
template <class T>
T from_bits(typename fprnn::math::bits_of<T>::type bits) {
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

void check_powers() {
    using pack = fprnn::pack<float>;
    double worst = 0;
    for (int i = -120 * 64; i < 120 * 64; ++i) {
        const float x = static_cast<float>(i) / 64;
        float powers[static_cast<std::size_t>(pack::size)];
        exp2(pack(x)).store(powers);
        const double exact = std::exp2(static_cast<double>(x));
        worst = std::fmax(worst, std::abs(static_cast<double>(powers[0]) / exact - 1));
    }
    std::printf("the largest error of a power of two is %g of it\n", worst);
    check(worst > 0 && worst < 2e-7, "powers of two are right");
}

template <class Team, class T>
void check_team(T bad) {
    for (const fprnn::index D : {1, 5, 17, 40})
        for (fprnn::index at = 0; at < D; ++at) {
            fprnn::tensor<T> x({D});
            x.fill(T(1));
            const auto load = [&](auto lane) { return lane.load(x.data()); };
            check(fprnn::math::is_finite(Team::max(D, load)), "the largest of finite numbers is finite");
            x[at] = bad;
            check(!fprnn::math::is_finite(Team::max(D, load)), "a team's max shows what is not finite");
        }
}

auto layer() {
    using namespace fprnn::symbols;
    auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    return fprnn::layer(fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * prev))));
}

template <class T, class Backend>
void check_layer(T bad, Backend backend) {
    auto l = layer();
    const auto theta = fprnn::init<T>(l, {.d_in = 3, .d_inner = 5});
    const fprnn::index B = 3, tokens = 4;
    fprnn::tensor<T> x({B, tokens, 3});
    for (fprnn::index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(std::sin(static_cast<double>(i)));
    for (const fprnn::index C : {fprnn::index{1}, fprnn::index{3}, fprnn::whole_sequence}) {
        l.schedule.length = C;
        check(l(theta, x, {}, backend).all_converged(), "a layer of finite numbers converges");
        auto poisoned = x;
        poisoned(1, 2, 0) = bad;
        const auto of_x = l(theta, poisoned, {}, backend);
        check(of_x.status[0] == fprnn::status::converged && of_x.status[1] == fprnn::status::nonfinite &&
                  of_x.status[2] == fprnn::status::converged,
              "x that is not finite is nonfinite, and the neighbours converge");
        for (const char* name : {"B", "lambda.bias", "Q.u", "Q.alpha"}) {
            auto broken = theta;
            broken[name][0] = bad;
            const auto of_theta = l(broken, x, {}, backend);
            for (std::size_t b = 0; b < 3; ++b)
                if (of_theta.status[b] == fprnn::status::converged)
                    for (fprnn::index i = 0; i < tokens * 5; ++i)
                        check(fprnn::math::is_finite(of_theta.value[static_cast<fprnn::index>(b) * tokens * 5 + i]),
                              "what has converged is finite");
        }
    }
    l.schedule.length = 1;
    typename decltype(l)::template record<T, Backend> kept;
    const auto sol = l.template run<T>(theta.widths, theta.data(), x.view(), {}, backend, &kept);
    fprnn::tensor<T> y_bar(sol.value.shape()), x_bar(x.shape());
    y_bar.fill(T(1));
    y_bar(1, 3, 0) = bad;
    auto theta_bar = theta.zeros_like();
    l.template back<T>(kept, x.view(), y_bar.view(), x_bar.view(), theta_bar.data(), backend);
    check(kept.adjoint_convergence->status[0] == fprnn::status::converged &&
              kept.adjoint_convergence->status[1] == fprnn::status::nonfinite,
          "a cotangent that is not finite is nonfinite");
    check(fprnn::first_nonfinite(theta_bar).has_value(), "a parameter that is not finite is found");
    check(!fprnn::first_nonfinite(theta).has_value(), "finite parameters are finite");
    const auto before = theta_bar;
    check(!fprnn::math::is_finite(fprnn::clip_by_global_norm(theta_bar, 1)),
          "the norm of such a gradient is not finite");
    check(std::memcmp(before.data(), theta_bar.data(), sizeof(T) * static_cast<std::size_t>(before.size())) == 0,
          "it is not scaled");
}

template <class T>
void check_all() {
    using bits = fprnn::math::bits_of<T>;
    for (const T bad : {from_bits<T>(bits::infinity), from_bits<T>(bits::infinity | bits::sign),
                        from_bits<T>(bits::infinity | bits::infinity >> 1)}) {
        check(!fprnn::math::is_finite(bad), "bits show what is not finite");
        check_team<fprnn::pack_team<T>>(bad);
        check_team<fprnn::serial_team<T>>(bad);
        check_layer<T>(bad, fprnn::eigen(1));
        check_layer<T>(bad, fprnn::reference{});
    }
}

}  // namespace

int main() {
    check_powers();
    check_all<float>();
    check_all<double>();
    return failures == 0 ? 0 : 1;
}
