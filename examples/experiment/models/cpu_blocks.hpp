#pragma once

#include "../blocks.hpp"

#include <fprnn/compiled.hpp>

namespace experiment {

/// The blocks of an architecture on the CPU; null where its mixer is not among the compiled. A source file
/// for each family; three of them are compiled together.
using maker = blocks_on<fp::eigen>(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

maker make_fp_mamba, make_fp_mamba_convolved, make_fp_mamba_dependent, make_fp_mamba_gated, make_fp_rnn_independent,
    make_fp_mamba2, make_fp_rnn, make_mamba, make_delta_rule, make_lstm, make_xlstm, make_transformer;

}  // namespace experiment
