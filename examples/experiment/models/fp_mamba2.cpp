#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba2.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_fp_mamba2(const architecture& a, fp::chunked schedule,
                                                               fp::adjoint adjoint) {
    const auto use = [&](auto mixer) { return make<fp::eigen>(fp::models::fp_mamba2(mixer), a, schedule, adjoint); };
    if (a.mixer == architecture::mixing::kronecker) return use(fp::kronecker);
    if (a.mixer != architecture::mixing::householder || a.reflection_scale != 1) return nullptr;
    switch (a.reflections) {
        case 1: return use(fp::householder<1>);
        case 4: return use(fp::householder<4>);
        default: return nullptr;
    }
}
