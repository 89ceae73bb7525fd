#include "cpu_blocks.hpp"

#include <fprnn/models/fp_rnn.hpp>

/// Of a mixer that sees x_t alone.
experiment::blocks_on<fprnn::eigen> experiment::make_fp_rnn_independent(const architecture& a, fp::chunked schedule,
                                                                        fp::adjoint adjoint) {
    constexpr fp::models::fp_rnn_options options{.mixer_sees_h = false};
    const auto use = [&](auto mixer) {
        return make<fp::eigen>(fp::models::fp_rnn<options>(mixer), a, schedule, adjoint);
    };
    if (a.mixer == architecture::mixing::kronecker) return use(fp::kronecker);
    return use(fp::householder<4>);
}
