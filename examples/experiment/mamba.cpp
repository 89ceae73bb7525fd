#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>

template <>
experiment::blocks_on<fprnn::eigen> experiment::make_mamba(const architecture& a, fp::chunked schedule,
                                                           fp::adjoint adjoint) {
    return make<fp::eigen>(fp::models::mamba(), a, schedule, adjoint);
}
