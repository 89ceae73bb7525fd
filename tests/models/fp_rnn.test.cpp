#include "models/block_gradients.hpp"

namespace {

using fprnn::testing::check_block_gradients;

TEST_CASE("fp_rnn: every gradient of the block is that of central differences, R = 1") {
    check_block_gradients(fprnn::models::fp_rnn<1>(), {.d_in = 5, .d_inner = 7}, 2, 6, 0.2);
}

TEST_CASE("fp_rnn: every gradient of the block is that of central differences, R = 4 and odd widths") {
    check_block_gradients(fprnn::models::fp_rnn<4>(), {.d_in = 5, .d_inner = 5}, 2, 6, 0.2);
}

}  // namespace
