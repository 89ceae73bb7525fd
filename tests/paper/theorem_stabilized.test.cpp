#include "fixed_point/tools.hpp"

#include <Eigen/Dense>

#include <doctest/doctest.h>

/// thm. stabilized-fixed-point-rnn: with constant Λ, ‖Λ‖₂ < 1, and constant Q, ‖I − Q‖₂ < 1, the map h ↦ f(x,
/// h) of a whole sequence is a contraction in ℓ2. And what it does not say.
namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;

template <int R>
using constant_reflections = fprnn::mixer_node<
    fprnn::householder_mixer<R>,
    fprnn::parameter_node<fprnn::fixed_string("Q.u"), fprnn::times_width<R, fprnn::d_inner>, fprnn::start::constant<1>>,
    fprnn::parameter_node<fprnn::fixed_string("Q.alpha"), fprnn::fixed_width<R>, fprnn::start::constant<0>>>;

/// Λ and Q are parameters: λ = σ(0 x + bias), Q of constant vectors.
template <int R>
auto rnn() {
    using namespace fprnn::symbols;
    constant_reflections<R> Q;
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * prev)));
}

constexpr index D = 6, T = 24, B = 3;

template <int R>
fprnn::layer_parameters<double> draw(const fprnn::layer<decltype(rnn<R>())>& l, std::uint64_t stream) {
    auto theta = fprnn::init<double>(l, {.d_in = 4, .d_inner = D}, fprnn::seed{stream});
    for (double& w : theta["lambda"]) w = 0;
    const auto numbers = normal({1000}, stream);
    for (index i = 0; i < D; ++i) theta["lambda.bias"][i] = 2 * numbers[i];
    for (index i = 0; i < R * D; ++i) theta["Q.u"][i] = 2 * numbers[100 + i];
    for (index i = 0; i < R; ++i) theta["Q.alpha"][i] = 1 + 2 * numbers[500 + i];
    return theta;
}

/// I − Q of drawn reflections, by the mixer's own application to unit vectors.
template <int R>
Eigen::MatrixXd complement_of(const double* u, const double* alpha, index width) {
    using team = fprnn::serial_team<double>;
    using mixer = fprnn::householder_mixer<R>;
    std::vector<double> q(static_cast<std::size_t>(mixer::size(width))),
        scratch(static_cast<std::size_t>(mixer::scratch(width)));
    const double* raw[] = {u, alpha};
    mixer::template prepare<team, double>(width, raw, q.data());
    Eigen::MatrixXd complement(width, width);
    for (index j = 0; j < width; ++j) {
        Eigen::VectorXd e = Eigen::VectorXd::Unit(width, j), out(width);
        mixer::template mix<team, double>(width, q.data(), nullptr, e.data(), out.data(), scratch.data());
        complement.col(j) = out;
    }
    return complement;
}
double norm_of(const Eigen::MatrixXd& A) { return A.jacobiSvd().singularValues()[0]; }
template <int R>
double norm_of_complement(const double* u, const double* alpha, index width) {
    return norm_of(complement_of<R>(u, alpha, width));
}

/// The largest ‖y^{ℓ+1} − y^ℓ‖₂ / ‖y^ℓ − y^{ℓ−1}‖₂ of Picard's iteration over whole sequences.
template <int R>
double measured_contraction(fprnn::layer<decltype(rnn<R>())> l, const fprnn::layer_parameters<double>& theta,
                            const tensor<double>& x) {
    std::vector<tensor<double>> y{tensor<double>({B, T, D})};
    for (int ell = 1; ell <= 12; ++ell) {
        l.schedule = fprnn::parallel({.tolerance = 1e-300, .ell_max = ell});
        y.push_back(l(theta, x).value);
    }
    double worst = 0;
    for (index b = 0; b < B; ++b) {
        const auto step = [&](std::size_t k) {
            double sum = 0;
            for (index i = b * T * D; i < (b + 1) * T * D; ++i) sum += std::pow(y[k + 1][i] - y[k][i], 2);
            return std::sqrt(sum);
        };
        for (std::size_t k = 0; k + 2 < y.size(); ++k)
            if (step(k) > 1e-9) worst = std::max(worst, step(k + 1) / step(k));
    }
    return worst;
}

TEST_CASE("theorem stabilized-fixed-point-rnn: with constant Λ and Q the iteration contracts by ‖I − Q‖₂ or more") {
    fprnn::layer one(rnn<1>());
    fprnn::layer two(rnn<2>());
    double closest = 0;
    int within = 0;
    for (std::uint64_t stream = 0; stream < 40; ++stream) {
        CAPTURE(stream);
        const auto x = normal({B, T, 4}, 1000 + stream);
        const auto check = [&](double norm, double contraction) {
            if (norm >= 1) return;  // the theorem does not speak of it
            ++within;
            CHECK(contraction <= norm * (1 + 1e-9));
            closest = std::max(closest, contraction / norm);
        };
        const auto theta1 = draw<1>(one, stream), theta2 = draw<2>(two, stream);
        check(norm_of_complement<1>(theta1["Q.u"].data(), theta1["Q.alpha"].data(), D),
              measured_contraction<1>(one, theta1, x));
        check(norm_of_complement<2>(theta2["Q.u"].data(), theta2["Q.alpha"].data(), D),
              measured_contraction<2>(two, theta2, x));
    }
    MESSAGE(within << " draws; the measured contraction comes to " << closest << " of ‖I − Q‖₂");
    CHECK(within >= 60);
    CHECK(closest > 0.5);
}

template <int R>
double largest_complement(index width, int draws) {
    double most = 0;
    for (int k = 0; k < draws; ++k) {
        const auto numbers = normal({R * width + R}, static_cast<std::uint64_t>(k), 3);
        const auto alpha = normal({R}, static_cast<std::uint64_t>(5000 + k), 1);
        std::vector<double> open(R);
        for (int i = 0; i < R; ++i) open[static_cast<std::size_t>(i)] = 3 + alpha[i];  // α near 1
        most = std::max(most, norm_of_complement<R>(numbers.data(), open.data(), width));
    }
    return most;
}

TEST_CASE("caution: with α ≤ 1, ‖I − Q‖₂ < 1 for one reflection, but exceeds 1 for some draws of two and of four") {
    const double one = largest_complement<1>(4, 2000), two = largest_complement<2>(4, 2000),
                 four = largest_complement<4>(4, 2000);
    MESSAGE("largest ‖I − Q‖₂ seen: R = 1: " << one << ", R = 2: " << two << ", R = 4: " << four);
    CHECK(one < 1);
    CHECK(two > 1);
    CHECK(two <= 1.1548);  // 2/√3, the supremum
    CHECK(four > 1.1548);
    CHECK(four <= 1.39);
}

/// ∂f/∂h of a sequence of `tokens`: its block (t, s) is Λ_t … Λ_{s+1} (I − Λ_s)(I − Q). lambda(t) are those
/// of token t.
template <class Lambda>
Eigen::MatrixXd jacobian(index tokens, const Eigen::MatrixXd& complement, Lambda&& lambda) {
    const index width = complement.rows();
    Eigen::MatrixXd J = Eigen::MatrixXd::Zero(tokens * width, tokens * width);
    for (index s = 0; s < tokens; ++s) {
        Eigen::VectorXd gain = Eigen::VectorXd::Ones(width) - lambda(s);
        for (index t = s; t < tokens; ++t) {
            if (t > s) gain = gain.cwiseProduct(lambda(t));
            J.block(t * width, s * width, width, width) = gain.asDiagonal() * complement;
        }
    }
    return J;
}

TEST_CASE(
    "theorem stabilized-fixed-point-rnn: ‖∂f/∂h‖₂ of a sequence is below 1, in the worst case ‖I − Q‖₂, with selective "
    "λ "
    "√T times that") {
    constexpr index width = 4, tokens = 9;
    double closest = 0;
    for (std::uint64_t stream = 0; stream < 60; ++stream) {
        const auto numbers = normal({2 * width}, 7000 + stream, 3);
        const double open = 3;
        const Eigen::MatrixXd complement = complement_of<1>(numbers.data(), &open, width);
        const double norm = norm_of(complement);
        REQUIRE(norm < 1);
        const auto at = [&](index i) { return 1 / (1 + std::exp(-numbers[i])); };
        const auto constant = [&](index) {
            return Eigen::VectorXd::NullaryExpr(width, [&](index d) { return at(width + d); });
        };
        const auto selective = [&](index t) { return Eigen::VectorXd(Eigen::VectorXd::Constant(width, t > 0)); };
        const double of_constant = norm_of(jacobian(tokens, complement, constant));
        CHECK(of_constant <= norm * (1 + 1e-12));
        closest = std::max(closest, of_constant / norm);
        // The first token is taken whole, and the others keep it.
        CHECK(norm_of(jacobian(tokens, complement, selective)) ==
              doctest::Approx(norm * std::sqrt(tokens)).epsilon(1e-12));
        // Nothing is kept: every token by itself.
        const auto none = [&](index) { return Eigen::VectorXd(Eigen::VectorXd::Zero(width)); };
        CHECK(norm_of(jacobian(tokens, complement, none)) == doctest::Approx(norm).epsilon(1e-12));
    }
    MESSAGE("‖∂f/∂h‖₂ with constant Λ comes to " << closest << " of ‖I − Q‖₂");
    CHECK(closest > 0.9);
}

TEST_CASE("theorem stabilized-fixed-point-rnn: with selective λ a step can grow although ‖I − Q‖₂ < 1") {
    // Channel 0 forgets at once, and the mixer moves half of it to channel 1, which from then on keeps
    // everything.
    fprnn::layer l(rnn<1>());
    auto theta = fprnn::init<double>(l, {.d_in = 4, .d_inner = D}, fprnn::seed{0});
    for (double& a : theta["Q.u"]) a = 0;
    theta["Q.u"][0] = theta["Q.u"][1] = 20;
    theta["Q.alpha"][0] = 3;
    const double norm = norm_of_complement<1>(theta["Q.u"].data(), theta["Q.alpha"].data(), D);
    REQUIRE(norm < 0.96);
    // x is an impulse, of which Q makes one in channel 0: B x = Q⁻¹ e₀.
    tensor<double> x({B, T, 4});
    for (index b = 0; b < B; ++b) x(b, 0, 0) = 1;
    const double alpha = norm, inverse = alpha / (1 - alpha) / 2;
    for (double& a : theta["B"]) a = 0;
    theta["B"](0, 0) = 1 + inverse;
    theta["B"](1, 0) = inverse;
    for (double& a : theta["lambda"]) a = 0;
    for (double& a : theta["lambda.bias"]) a = -40;
    const double forgetful = measured_contraction<1>(l, theta, x);
    theta["lambda.bias"][1] = 40;
    theta["lambda"](1, 0) = -80;
    const double selective = measured_contraction<1>(l, theta, x);
    MESSAGE("‖I − Q‖₂ = " << norm << ", a step grows by " << selective << ", with constant λ by " << forgetful);
    CHECK(forgetful <= norm * (1 + 1e-9));
    CHECK(selective > 2);
    // What enters a token comes from the tokens before it, so that the iteration ends all the same.
    l.schedule = fprnn::parallel({.tolerance = 1e-9, .ell_max = 2000});
    CHECK(l(theta, x).all_converged());
}

}  // namespace
