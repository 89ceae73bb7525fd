#include "network.hpp"

#include <fprnn/models/fp_rnn.hpp>

std::unique_ptr<state_tracking::network> state_tracking::make_fp_rnn(const architecture& a, fp::chunked schedule,
                                                                     fp::adjoint adjoint) {
    return make_mixed([]<int R, int Scale>() { return fp::models::fp_rnn<R, Scale>(); }, a, schedule, adjoint);
}
