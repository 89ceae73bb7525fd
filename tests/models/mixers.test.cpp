#include "models/block_gradients.hpp"

namespace {

using namespace fprnn::symbols;
using fprnn::testing::check_block_gradients;

TEST_CASE("models: every gradient of FP-RNN with a Kronecker mixer is that of central differences") {
    check_block_gradients(fprnn::models::fp_rnn(fprnn::kronecker), {.d_in = 5, .d_inner = 6}, 2, 6, 0.2);
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

TEST_CASE("models: a mixer is an argument, and R reflections are householder<R>") {
    const auto by_number = fprnn::models::fp_mamba<4, 2>();
    const auto by_name = fprnn::models::fp_mamba(fprnn::householder<4, "Q", 2>);
    const auto of_ones_own = fprnn::models::fp_mamba([](auto s) { return fprnn::householder<4, "Q", 2>(s); });
    static_assert(std::is_same_v<decltype(by_number), decltype(by_name)>);
    static_assert(std::is_same_v<decltype(by_number), decltype(of_ones_own)>);
}

}  // namespace
