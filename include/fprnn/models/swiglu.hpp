#pragma once

#include <fprnn/fixed_point/layer.hpp>

namespace fprnn::detail {
/// a + W_down (SiLU(W_gate w) ⊙ W_up w), w = RMSNorm(a)
template <fixed_string Norm, class Width, class E>
auto swiglu_of(E a) {
    auto w = rms_norm<Norm>(a);
    return a + linear<"down", d_in>(silu(linear<"gate", Width>(w)) * linear<"up", Width>(w));
}
}  // namespace fprnn::detail

namespace fprnn::models {

/// The block without time that stands between others in a stack (Shazeer 2020): Width channels inside, 3 d_in
/// where nothing else is said.
///
///     out = in + W_down (SiLU(W_gate u) ⊙ W_up u),   u = RMSNorm(in)
template <class Width = times_width<3, d_in>>
auto swiglu() {
    return detail::swiglu_of<"norm", Width>(symbols::in);
}

}  // namespace fprnn::models
