#include "few_mixers.hpp"

experiment::blocks_on<fprnn::eigen> experiment::make_fp_mamba_gated(const architecture& a, fp::chunked schedule,
                                                                    fp::adjoint adjoint) {
    using options = fp::models::fp_mamba_options;
    constexpr options of_u{.gate = options::gating::inside}, of_both{.gate = options::gating::inside_seeing_y};
    const auto make_it =
        a.gate == architecture::gating::inside ? make_with_few_mixers<of_u> : make_with_few_mixers<of_both>;
    return make_it(a, schedule, adjoint);
}
