#pragma once

#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>

namespace experiment {

/// FP-Mamba with options with which only some mixers are compiled; null for the others, which
/// check_options.cpp refuses.
template <fp::models::fp_mamba_options Options>
blocks_on<fp::eigen> make_with_few_mixers(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    const auto use = [&](auto mixer) {
        return make<fp::eigen>(fp::models::fp_mamba<Options>(mixer), a, schedule, adjoint);
    };
    if (a.mixer == architecture::mixing::kronecker) return use(fp::kronecker);
    if (a.mixer != architecture::mixing::householder || a.reflection_scale != 1) return nullptr;
    switch (a.reflections) {
        case 1: return use(fp::householder<1>);
        case 2: return use(fp::householder<2>);
        case 4: return use(fp::householder<4>);
        default: return nullptr;
    }
}

}  // namespace experiment
