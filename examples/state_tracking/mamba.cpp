#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>

template <>
state_tracking::blocks_on<fprnn::eigen> state_tracking::make_mamba(const architecture& a, fp::chunked schedule,
                                                                   fp::adjoint adjoint) {
    return make<fp::eigen>(fp::models::mamba(), a, schedule, adjoint);
}
