#include "cpu_blocks.hpp"

#include <fprnn/models/delta_product.hpp>

namespace {
constexpr int steps = experiment::architecture::delta_steps;
// As the paper's table mod-arithm has them, with eigenvalues in (−1, 1).
constexpr fprnn::models::delta_options deltanet{
    .forget_gate = false, .negative_eigenvalues = true, .output_gate = false},
    gated{.steps = steps, .negative_eigenvalues = true};
}  // namespace

experiment::blocks_on<fprnn::eigen> experiment::make_delta_rule(const architecture& a, fp::chunked schedule,
                                                                fp::adjoint adjoint) {
    architecture with_keys = a;
    with_keys.size.d_key = a.size.d_state;
    const auto use = [&](auto block) { return make<fp::eigen>(block, with_keys, schedule, adjoint); };
    using kind = architecture::block;
    switch (a.kind) {
        case kind::deltanet: return use(fp::models::delta_product<deltanet>());
        case kind::gated_deltanet: return use(fp::models::gated_deltanet());
        case kind::gated_delta_product: return use(fp::models::delta_product<gated>());
        default: return use(fp::models::state_tracking_delta_product<steps>());
    }
}
