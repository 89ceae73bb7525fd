#include "cpu_blocks.hpp"

#include <fprnn/models/delta_product.hpp>

template <>
experiment::blocks_on<fprnn::eigen> experiment::make_delta_product(const architecture& a, fp::chunked schedule,
                                                                   fp::adjoint adjoint) {
    architecture with_keys = a;
    with_keys.size.d_key = a.size.d_state;
    const auto block = fp::models::state_tracking_delta_product<architecture::delta_steps>();
    return make<fp::eigen>(block, with_keys, schedule, adjoint);
}
