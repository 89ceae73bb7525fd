#include "models/block_gradients.hpp"

#include <fprnn/models/fp_mamba2.hpp>

#include <string>

namespace {

using fprnn::models::fp_mamba2_options;
using fprnn::testing::check_block_gradients;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .heads = 2};

TEST_CASE("fp_mamba2: every gradient of the block is that of central differences") {
    check_block_gradients(fprnn::models::fp_mamba2(fprnn::householder<2>), sizes, 2, 6, 0.1, 0.3);
    constexpr fp_mamba2_options options{.convolution = 3, .gate_outside = true};
    check_block_gradients(fprnn::models::fp_mamba2<options>(fprnn::kronecker), sizes, 2, 6, 0.1, 0.3);
}
TEST_CASE("mamba2: every gradient of the block is that of central differences, in one group and in two") {
    check_block_gradients(fprnn::models::mamba2(), {.d_in = 3, .d_inner = 8, .d_state = 2, .heads = 4}, 2, 9, 0.1);
    check_block_gradients(fprnn::models::mamba2<2, 2>(), {.d_in = 3, .d_inner = 8, .d_state = 2, .heads = 4}, 2, 19,
                          0.1);
}

TEST_CASE("fp_mamba2: tokens are solved in R numbers, for any number of states") {
    const auto text = explain(fprnn::layer(fprnn::models::fp_mamba2(fprnn::householder<2>)));
    INFO(text);
    CHECK(text.find("solved in 2 numbers") != std::string::npos);
}

TEST_CASE("fp_mamba2: heads that do not divide the channels are refused, and groups that do not divide the heads") {
    const fprnn::dims of_six{.d_in = 4, .d_inner = 6, .d_state = 3, .heads = 4};
    CHECK_THROWS_WITH_AS(fprnn::init<float>(fprnn::layer(fprnn::models::mamba2()), of_six),
                         "head_scan: u must have a multiple of 4 channels, as many for each of a's heads, got 6",
                         fprnn::argument_error);
    const fprnn::layer two_groups(fprnn::models::mamba2<4, 2>());
    using of_a_head = fprnn::quotient_width<fprnn::d_inner, fprnn::heads>;
    CHECK_THROWS_WITH_AS(of_a_head::of(of_six),
                         "width: 4 parts, such as heads, must divide the 6 channels that they are of",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(fprnn::init<float>(two_groups, {4, 6, 3, 1, 3}),
                         "head_scan: a must have a multiple of 2 channels, as many for each group, got 3",
                         fprnn::argument_error);
}

}  // namespace
