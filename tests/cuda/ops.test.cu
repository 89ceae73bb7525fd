// Operations by themselves on a GPU.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>
#include <fprnn/cuda/scan.cuh>

#include "ops_check.hpp"

namespace ops {

TEST_CASE_TEMPLATE("cuda ops: the same calls with a device for their backend have the host's results", T, float,
                   double) {
    check_all<T>();
}

}  // namespace ops
