#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>

namespace {

using fprnn::models::fp_mamba_options;

/// Of a gate in the loop.
template <fp_mamba_options::gating Gate>
experiment::blocks_on<fprnn::eigen> make_gated(const experiment::architecture& a, fprnn::chunked schedule,
                                               fprnn::adjoint adjoint) {
    using experiment::architecture;
    constexpr fp_mamba_options options{.gate = Gate};
    const auto use = [&](auto mixer) {
        return experiment::make<fprnn::eigen>(fprnn::models::fp_mamba<options>(mixer), a, schedule, adjoint);
    };
    if (a.mixer == architecture::mixing::kronecker) return use(fprnn::kronecker);
    if (a.mixer != architecture::mixing::householder || a.reflection_scale != 1) return nullptr;
    switch (a.reflections) {
        case 1: return use(fprnn::householder<1>);
        case 2: return use(fprnn::householder<2>);
        case 4: return use(fprnn::householder<4>);
        default: return nullptr;
    }
}

}  // namespace

experiment::blocks_on<fprnn::eigen> experiment::make_gated_fp_mamba(const architecture& a, fp::chunked schedule,
                                                                    fp::adjoint adjoint) {
    using enum fp_mamba_options::gating;
    return a.gate == architecture::gating::inside ? make_gated<inside>(a, schedule, adjoint)
                                                  : make_gated<inside_seeing_y>(a, schedule, adjoint);
}
