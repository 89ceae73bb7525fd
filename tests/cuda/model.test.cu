// Models on a GPU against the same on the host.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "model_check.hpp"

namespace models {

TEST_CASE("model: training and evaluation on a GPU are equivalent to the host's") { check_equivalent(5, 1e-9); }

}  // namespace models
