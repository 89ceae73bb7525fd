#pragma once

#include <fprnn/fixed_point/layer.hpp>

namespace fprnn::models {

/// The block without time that stands between others in a stack (Shazeer 2020): Width channels inside, 3 d_in where nothing else is said.
///
///     out = in + W_down (SiLU(W_gate u) ⊙ W_up u),   u = RMSNorm(in)
template <class Width = times_width<3, d_in>>
auto swiglu() {
    using namespace symbols;
    auto u = rms_norm<"norm">(in);
    return in + linear<"down", d_in>(silu(linear<"gate", Width>(u)) * linear<"up", Width>(u));
}

}  // namespace fprnn::models
