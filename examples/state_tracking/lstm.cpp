#include "cpu_blocks.hpp"

#include <fprnn/models/lstm.hpp>

template <>
state_tracking::blocks_on<fprnn::eigen> state_tracking::make_lstm(const architecture& a, fp::chunked schedule,
                                                                  fp::adjoint adjoint) {
    return make<fp::eigen>(fp::models::lstm(), a, schedule, adjoint);
}
