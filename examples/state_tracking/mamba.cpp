#include "network.hpp"

#include <fprnn/models/fp_mamba.hpp>

std::unique_ptr<state_tracking::network> state_tracking::make_mamba(const architecture& a, fp::chunked schedule,
                                                                    fp::adjoint adjoint) {
    return make(fp::models::mamba(), a, schedule, adjoint);
}
