#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_fp_mamba(const architecture& a, fp::chunked schedule,
                                                              fp::adjoint adjoint) {
    return make_mixed<fp::eigen>([](auto mixer) { return fp::models::fp_mamba(mixer); },
                                 fp::dplr<architecture::dplr_directions>, a, schedule, adjoint);
}
