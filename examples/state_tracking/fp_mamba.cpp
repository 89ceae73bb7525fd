#include "network.hpp"

#include <fprnn/models/fp_mamba.hpp>

std::unique_ptr<state_tracking::network> state_tracking::make_fp_mamba(const architecture& a, fp::chunked schedule,
                                                                       fp::adjoint adjoint) {
    return make_mixed([]<int R, int Scale>() { return fp::models::fp_mamba<R, Scale>(); }, a, schedule, adjoint);
}
