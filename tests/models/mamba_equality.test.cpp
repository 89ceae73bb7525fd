#include <fprnn/models/fp_mamba.hpp>

#include <doctest/doctest.h>

#include <array>
#include <fixed_point/tools.hpp>

namespace {

using fprnn::index;

/// A user's own mixer: Q = I. Its one raw number has no effect.
struct identity_mixer {
    static std::array<index, 1> raw_sizes(index) { return {1}; }
    static index size(index) { return 1; }
    static index scratch(index) { return 1; }

    template <class Team, class T>
    static void prepare(index, const T* const* raw, T* q) {
        q[0] = raw[0][0];
    }
    template <class Team, class T>
    static void prepare_back(index, const T* const*, const T*, const T*, T* const*) {}

    template <class Team, class T>
    static void mix(index D, const T*, const T* v, const T*, T* out, T*) {
        Team::each(D, [&](auto lane) { lane.store(out, v ? lane.load(v) : decltype(lane.load(v))(T(0))); });
    }
    template <class Team, class T>
    static void mix_back(index D, const T*, const T* out_bar, T* v_bar, T*, T*) {
        if (v_bar) Team::each(D, [&](auto lane) { lane.add(v_bar, lane.load(out_bar)); });
    }
    template <class Team, class T>
    static void mix_back_q(index, const T*, const T*, const T*, const T*, T*, T*) {}
};
static_assert(fprnn::mixer<identity_mixer>);

/// models::fp_mamba with Q = I and x in place of cat(x, shift(prev)).
auto fp_mamba_without_mixing() {
    using namespace fprnn::symbols;
    auto u = fprnn::rms_norm<"norm">(in);
    auto x = fprnn::linear<"x">(u);
    auto Q =
        fprnn::mixer_node<identity_mixer, fprnn::parameter_node<fprnn::fixed_string("unused"), fprnn::fixed_width<1>,
                                                                fprnn::start::constant<1>>>{};
    auto delta = softplus(fprnn::affine<"delta", fprnn::d_inner, fprnn::start::softplus_step<1, 100>>(x));
    auto b = normalise(fprnn::linear<"b", fprnn::d_state>(x));
    auto c = normalise(fprnn::linear<"c", fprnn::d_state>(x));
    auto x_tilde = Q * x + (I - Q) * prev;
    auto y = fixed_point(fprnn::layer_norm<"y_norm">(fprnn::selective_scan<"ssm">(delta, b, c, x_tilde) +
                                                     fprnn::parameter<"D">() * x_tilde));
    return in + fprnn::linear<"out", fprnn::d_in>(silu(fprnn::linear<"z">(u)) * y);
}

TEST_CASE_TEMPLATE("fp_mamba: with Q = I, nothing that sees y and one iteration it is mamba to rounding", T, float,
                   double) {
    using namespace fprnn::testing;
    const fprnn::dims size{.d_in = 6, .d_inner = 9, .d_state = 5};
    fprnn::layer diagonal(fprnn::models::mamba());
    auto theta = fprnn::init<T>(diagonal, size, fprnn::seed{4});
    shake(theta, 0.2);
    const auto x = normal<T>({5, 11, 6}, 1), y_bar = normal<T>({5, 11, 6}, 2);
    const auto plain = differentiate(diagonal, theta, x, y_bar);
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence}) {
        CAPTURE(C);
        fprnn::layer l(fp_mamba_without_mixing(), fprnn::chunked{.length = C, .tolerance = 1e-3, .ell_max = 1});
        auto same_theta = fprnn::init<T>(l, size);
        for (const auto& p : theta.entries())
            std::copy_n(theta.data() + p.offset, p.shape.count(), same_theta[p.name].data());
        const auto got = differentiate(l, same_theta, x, y_bar);
        CHECK(got.sol.iterations == std::vector<int>(5, 1));
        const double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
        CHECK(distance(got.sol.value, plain.sol.value) <= rounding * largest(plain.sol.value));
        CHECK(distance(got.x_bar, plain.x_bar) <= rounding * largest(plain.x_bar));
        for (const auto& p : theta.entries()) {
            CAPTURE(p.name);
            CHECK(distance(got.theta_bar[p.name], plain.theta_bar[p.name]) <= rounding * largest(plain.theta_bar));
        }
        CHECK(largest(got.theta_bar["unused"]) == 0);
    }
}

}  // namespace
