#include "models/block_gradients.hpp"

namespace {

using fprnn::testing::check_block_gradients;

TEST_CASE("fp_mamba: every gradient of the block is that of central differences, R = 1") {
    check_block_gradients(fprnn::models::fp_mamba<1>(), {.d_in = 4, .d_inner = 5, .d_state = 3}, 2, 6, 0.1);
}

TEST_CASE("fp_mamba: every gradient of the block is that of central differences, R = 4 and odd widths") {
    check_block_gradients(fprnn::models::fp_mamba<4>(), {.d_in = 5, .d_inner = 7, .d_state = 3}, 2, 6, 0.1);
}

TEST_CASE("fp_mamba: with a gate in the loop that sees y every gradient is that of central differences") {
    using options = fprnn::models::fp_mamba_options;
    constexpr options plain{.gate = options::gating::inside_seeing_y};
    constexpr options weight_norm{.gate = options::gating::inside_seeing_y, .weight_norm = true};
    const fprnn::dims size{.d_in = 3, .d_inner = 4, .d_state = 2};
    check_block_gradients(fprnn::models::fp_mamba<plain>(fprnn::householder<1>), size, 2, 5, 0.1, 0.2);
    check_block_gradients(fprnn::models::fp_mamba<weight_norm>(fprnn::householder<1>), size, 2, 5, 0.1, 0.5);
}

TEST_CASE("fp_mamba: gradients hold across the blocks of tokens in which states are recomputed") {
    check_block_gradients(fprnn::models::fp_mamba<1>(), {.d_in = 2, .d_inner = 3, .d_state = 2}, 1, 35, 0.1, 0.3);
}

}  // namespace
