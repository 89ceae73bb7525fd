#include "few_mixers.hpp"

experiment::blocks_on<fprnn::eigen> experiment::make_fp_mamba_convolved(const architecture& a, fp::chunked schedule,
                                                                        fp::adjoint adjoint) {
    constexpr fp::models::fp_mamba_options options{.convolution = architecture::convolved_tokens};
    return make_with_few_mixers<options>(a, schedule, adjoint);
}
