#include "bf16_check.hpp"
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

namespace {

TEST_CASE("cuda bf16: layers of sequences that are stored so are those of float, whatever schedule and adjoint") {
    bf16_layers::check_all();
}

TEST_CASE("cuda bf16: a model whose sequences are stored so has the gradient and the training of float") {
    bf16_layers::check_training();
}

}  // namespace
