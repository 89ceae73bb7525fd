#include "models/block_gradients.hpp"

namespace {

using fprnn::testing::check_block_gradients;

TEST_CASE("fp_mamba: every gradient of the block is that of central differences, reflection_scale = 2") {
    check_block_gradients(fprnn::models::fp_mamba<1, 2>(), {.d_in = 4, .d_inner = 5, .d_state = 3}, 2, 6, 0.1, 0.3);
}

TEST_CASE("mamba: every gradient of the block is that of central differences") {
    check_block_gradients(fprnn::models::mamba(), {.d_in = 4, .d_inner = 7, .d_state = 3}, 3, 6, 0.2);
}

}  // namespace
