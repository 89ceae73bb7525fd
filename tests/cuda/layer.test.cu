// Layers on a GPU against the same layers on the host.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "layer_check.hpp"

// Not in an anonymous namespace, for the types of kernels must have names that nvcc can spell.
namespace layers {

TEST_CASE("layer: FP-RNN on a GPU is equivalent to the host's, there and back, whatever schedule and adjoint") {
    check_all(fprnn::models::fp_rnn<2>(), {5, 3, 4});
}
TEST_CASE("layer: FP-Mamba on a GPU is equivalent to the host's, there and back, whatever schedule and adjoint") {
    check_all(fprnn::models::fp_mamba<2>(), {5, 3, 4});
}
TEST_CASE("layer: many sequences, one long one, and more channels than a block has threads") {
    const chunked schedule{.length = 1, .tolerance = 1e-12, .ell_max = 200};
    const adjoint method = fprnn::implicit{.tolerance = 1e-13};
    check_equivalent(fprnn::models::fp_mamba<2>(), schedule, method, {600, 2, 4});
    check_equivalent(fprnn::models::fp_mamba<2>(), schedule, method, {1, 100, 4});
    check_equivalent(fprnn::models::fp_mamba<2>(), schedule, method, {3, 20, 4}, 300);
    check_equivalent(fprnn::models::fp_mamba<2>(), {.length = 20, .tolerance = 1e-12, .ell_max = 200}, method,
                     {3, 20, 4}, 300);
}

}  // namespace layers
