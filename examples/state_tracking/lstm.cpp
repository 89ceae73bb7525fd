#include "network.hpp"

#include <fprnn/models/lstm.hpp>

std::unique_ptr<state_tracking::network> state_tracking::make_lstm(const architecture& a, fp::chunked schedule,
                                                                   fp::adjoint adjoint) {
    return make(fp::models::lstm(), a, schedule, adjoint);
}
