#include "cpu_blocks.hpp"

#include <fprnn/models/delta_product.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_delta_rule(const architecture& a, fp::chunked schedule,
                                                                fp::adjoint adjoint) {
    architecture with_keys = a;
    with_keys.size.d_key = a.size.d_state;
    if (a.kind == architecture::block::gated_deltanet)
        return make<fp::eigen>(fp::models::gated_deltanet(), with_keys, schedule, adjoint);
    return make<fp::eigen>(fp::models::state_tracking_delta_product<architecture::delta_steps>(), with_keys, schedule,
                           adjoint);
}
