#pragma once

#include <fprnn/models/swiglu.hpp>

namespace fprnn::models {

/// A Transformer's block: causal attention of H heads with rotary positions, and SwiGLU of Width channels,
/// each behind a norm (Vaswani et al. 2017; Su et al. 2021; Shazeer 2020):
///
///     a = in + W_o attention(W_q u, W_k u, W_v u),   u = RMSNorm(in)
///     out = a + W_down (SiLU(W_gate w) ⊙ W_up w),    w = RMSNorm(a)
///
/// Sizes: heads, d_key = K, which is even, d_inner = H V, and context, the tokens that there is room for.
template <class Width = times_width<3, d_in>>
auto transformer() {
    using namespace symbols;
    using keys = product_width<heads, d_key>;
    auto u = rms_norm<"norm">(in);
    auto y = attention<positions::rotary>(linear<"q", keys>(u), linear<"k", keys>(u), linear<"v">(u));
    auto a = in + linear<"out", d_in>(y);
    return detail::swiglu_of<"mlp_norm", Width>(a);
}

}  // namespace fprnn::models
