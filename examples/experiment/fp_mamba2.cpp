#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba2.hpp>

template <>
experiment::blocks_on<fprnn::eigen> experiment::make_fp_mamba2(const architecture& a, fp::chunked schedule,
                                                               fp::adjoint adjoint) {
    if (a.reflections == 1) return make<fp::eigen>(fp::models::fp_mamba2(fp::householder<1>), a, schedule, adjoint);
    return make<fp::eigen>(fp::models::fp_mamba2(fp::householder<4>), a, schedule, adjoint);
}
