#include "cpu_blocks.hpp"

#include <fprnn/models/lstm.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_lstm(const architecture& a, fp::chunked schedule,
                                                          fp::adjoint adjoint) {
    return make<fp::eigen>(fp::models::lstm(), a, schedule, adjoint);
}
