#include "cpu_blocks.hpp"

#include <fprnn/models/fp_rnn.hpp>

template <>
state_tracking::blocks_on<fprnn::eigen> state_tracking::make_fp_rnn(const architecture& a, fp::chunked schedule,
                                                                    fp::adjoint adjoint) {
    return make_mixed<fp::eigen>([](auto mixer) { return fp::models::fp_rnn(mixer); }, a, schedule, adjoint);
}
