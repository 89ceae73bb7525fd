#include "cpu_blocks.hpp"

#include <fprnn/models/fp_rnn.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_fp_rnn(const architecture& a, fp::chunked schedule,
                                                            fp::adjoint adjoint) {
    // No norm bounds what is iterated: without a bound the loss is NaN after 230 steps of A5.
    const auto dplr = fp::contractive<9, 10>(fp::dplr<architecture::dplr_directions>);
    return make_mixed<fp::eigen>([](auto mixer) { return fp::models::fp_rnn(mixer); }, dplr, a, schedule, adjoint);
}
