#include "models/block_gradients.hpp"

namespace {

using namespace fprnn::symbols;
using fprnn::testing::check_block_gradients;

TEST_CASE("models: every gradient of FP-RNN with a Kronecker mixer is that of central differences") {
    check_block_gradients(fprnn::models::fp_rnn(fprnn::kronecker), {.d_in = 5, .d_inner = 6}, 2, 6, 0.2);
}

/// I − Q has full rank, so that R + 1 applications do not bound GMRES; the figures stand in
/// docs/decisions/0020-mixers.md.
TEST_CASE("models: the adjoint of a token with a Kronecker mixer takes a few applications, and no restart of GMRES") {
    const fprnn::layer l(fprnn::models::fp_rnn(fprnn::kronecker), {.length = 1, .tolerance = 1e-10, .ell_max = 1000},
                         fprnn::implicit{.tolerance = 1e-10});
    int most = 0;
    for (const fprnn::index D : {64, 256})
        for (const double times : {1.0, 3.0}) {
            auto theta = fprnn::init<double>(l, {.d_in = 16, .d_inner = D}, fprnn::seed{1});
            for (double& w : theta) w *= times;
            const auto x = fprnn::testing::normal({16, 8, 16}, 1), y_bar = fprnn::testing::normal({16, 8, 16}, 2);
            const auto got = fprnn::testing::differentiate(l, theta, x, y_bar, fprnn::eigen{2});
            REQUIRE(got.adjoint.all_converged());
            most = std::max(most, *std::max_element(got.adjoint.iterations.begin(), got.adjoint.iterations.end()));
        }
    MESSAGE("at most " << most << " applications to 1e-10");
    CHECK(most < fprnn::engine::krylov_space);
}

TEST_CASE("models: every gradient of FP-Mamba with a contractive DPLR mixer is that of central differences") {
    check_block_gradients(fprnn::models::fp_mamba(fprnn::contractive<9, 10>(fprnn::dplr<2>)),
                          {.d_in = 4, .d_inner = 5, .d_state = 3}, 2, 6, 0.1, 0.5);
}

TEST_CASE("models: a mixer that is the same for all tokens is prepared once, and has the gradient of all of them") {
    const auto x = fprnn::linear<"x">(in);
    const auto Q = fprnn::orthogonal(x) * fprnn::block_diagonal<3>(cat(x, shift(prev)));
    const auto lambda = sigmoid(fprnn::affine<"lambda">(x));
    const auto third = fprnn::constant<1, 3>();  // Q alone does not make the iteration contract
    check_block_gradients(fixed_point(scan(lambda, third * ((1 - lambda) * (Q * x + (I - Q) * prev)))),
                          {.d_in = 4, .d_inner = 6}, 2, 6, 0.1);
}

/// The figures of whole models stand in docs/decisions/0020-mixers.md.
TEST_CASE("models: with Kronecker the gradient of 200 tokens begins moderate, and from open gates it does not") {
    constexpr fprnn::models::fp_mamba_options options{.convolution = 4};
    const fprnn::layer l(fprnn::models::fp_mamba<options>(fprnn::kronecker), {.length = 1});
    const auto x = fprnn::testing::normal({2, 200, 64}, 1), y_bar = fprnn::testing::normal({2, 200, 64}, 2);
    for (const std::uint64_t seed : {1U, 2U, 3U})
        for (const double bias : {0.0, 4.0}) {
            CAPTURE(seed);
            CAPTURE(bias);
            auto theta = fprnn::init<double>(l, {.d_in = 64, .d_inner = 64, .d_state = 16}, fprnn::seed{seed});
            if (bias > 0) std::fill(theta["Q.gate.bias"].begin(), theta["Q.gate.bias"].end(), bias);
            const auto got = fprnn::testing::differentiate(l, theta, x, y_bar);
            REQUIRE(got.adjoint.all_converged());
            const double size = fprnn::testing::largest(got.theta_bar);
            CHECK((size > 1e6) == (bias > 0));
            CHECK((size < 1e3) == (bias == 0));
        }
}

TEST_CASE("models: a mixer is an argument, and R reflections are householder<R>") {
    const auto by_number = fprnn::models::fp_mamba<4, 2>();
    const auto by_name = fprnn::models::fp_mamba(fprnn::householder<4, "Q", 2>);
    const auto of_ones_own = fprnn::models::fp_mamba([](auto s) { return fprnn::householder<4, "Q", 2>(s); });
    static_assert(std::is_same_v<decltype(by_number), decltype(by_name)>);
    static_assert(std::is_same_v<decltype(by_number), decltype(of_ones_own)>);
}

}  // namespace
