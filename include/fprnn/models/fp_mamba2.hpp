#pragma once

#include <fprnn/models/fp_mamba.hpp>

namespace fprnn::models {

struct fp_mamba2_options {
    /// K: x, b and c = SiLU(convolution of K tokens of their maps); 0: without either.
    int convolution = 0;
    /// out = W_out(SiLU(W_gate [u; y_{t−1}]) ⊙ y): a second gate, outside of the loop, as the published block
    /// has it.
    bool gate_outside = false;
    /// G: heads of a group share b̄ and c̄.
    int groups = 1;
    /// b̄ and c̄ have length 1 in each group.
    bool normalise = true;
    /// Weight-normalises the maps that the authors' code does: those of the mixer, and of y_{t−1} in b, c and
    /// the second gate, "gate_y".
    bool weight_norm = false;
};

}  // namespace fprnn::models

namespace fprnn::detail {
/// A number of each head for all channels of the head.
using channels_of_a_head = quotient_width<d_inner, heads>;
/// a = exp(−exp(A) ⊙ Δ), where exp(A) starts uniform between Least and 16.
template <int Least = 1, class Delta>
auto decay_of_heads(Delta delta) {
    return exp(-(exp(parameter<"A", heads, start::log_uniform<Least, 16>>()) * delta));
}
inline auto skip_of_heads() { return repeat<channels_of_a_head>(constant<1>() * parameter<"D", heads>()); }
}  // namespace fprnn::detail

namespace fprnn::models {

/// FP-Mamba2 with the given mixer, H heads of D/H channels that share b and c: the paper's framework applied
/// to Mamba-2. The paper gives no equations for it, and the block in the authors' code cannot run. As in
/// Mamba-2, the gate stands before the norm, and therefore inside the loop.
///
///     S_h ← a_h S_h + b̄ (Δ_h x̃_h)ᵀ,   x̃ = Q x + (I − Q) y^{ℓ−1},
///     y = RMSNorm((S_hᵀ c̄ + D_h x̃_h)_h ⊙ SiLU(W_z u))
///
/// Q sees x_t and y_{t−1}; b̄ and c̄, of length 1 in each group, see u_t and y_{t−1}; Δ [H] and a =
/// exp(−exp(A) ⊙ Δ) see u_t.
template <fp_mamba2_options Options = fp_mamba2_options{}, class Mixer>
auto fp_mamba2(Mixer mixer) {
    using namespace symbols;
    constexpr int K = Options.convolution, G = Options.groups > 0 ? Options.groups : 1;
    static_assert(Options.groups >= 1, "fp_mamba2_options: groups, of heads that share b and c, must be at least 1");
    using states = times_width<G, d_state>;
    auto u = rms_norm<"norm">(in);
    auto x = detail::convolved<"x_conv", K>(linear<"x">(u));
    auto before = shift(prev);

    auto plain_Q = detail::mixer_of(mixer, cat(x, before));
    auto Q = detail::either<Options.weight_norm>(weight_normed(plain_Q), plain_Q);
    auto delta = softplus(affine<"delta", heads, start::softplus_step<1, 100>>(u));
    auto b_of_y = detail::map_of<Options.weight_norm, "b_y", states>(before);
    auto c_of_y = detail::map_of<Options.weight_norm, "c_y", states>(before);
    auto b_seen = detail::convolved<"b_conv", K>(linear<"b", states>(u)) + b_of_y;
    auto c_seen = detail::convolved<"c_conv", K>(linear<"c", states>(u)) + c_of_y;
    auto b = detail::either<Options.normalise>(normalise<d_state>(b_seen), b_seen);
    auto c = detail::either<Options.normalise>(normalise<d_state>(c_seen), c_seen);
    auto x_tilde = Q * x + (identity - Q) * prev;
    auto p = head_scan<G>(detail::decay_of_heads(delta), b, repeat<detail::channels_of_a_head>(delta) * x_tilde, c) +
             detail::skip_of_heads() * x_tilde;
    auto y = fixed_point(rms_norm<"y_norm">(p * silu(linear<"z">(u))));
    if constexpr (Options.gate_outside)
        return in + linear<"out", d_in>(silu(detail::map_of_both<Options.weight_norm, "gate">(u, shift(y))) * y);
    else
        return in + linear<"out", d_in>(y);
}

/// Mamba-2: short convolutions of K tokens, heads that share the b and c of G groups, gate before the norm,
/// which is of each group.
template <int K = 4, int G = 1>
auto mamba2() {
    using namespace symbols;
    static_assert(K >= 1, "mamba2<K, G>: K, the number of tokens that its convolutions see, must be at least 1");
    using states = times_width<G, d_state>;
    auto u = rms_norm<"norm">(in);
    auto x = detail::convolved<"x_conv", K>(linear<"x">(u));
    auto b = detail::convolved<"b_conv", K>(linear<"b", states>(u));
    auto c = detail::convolved<"c_conv", K>(linear<"c", states>(u));
    auto delta = softplus(affine<"delta", heads, start::softplus_step<1, 100>>(u));
    auto p = head_scan<G>(detail::decay_of_heads(delta), b, repeat<detail::channels_of_a_head>(delta) * x, c) +
             detail::skip_of_heads() * x;
    using group = quotient_width<d_inner, fixed_width<G>>;
    return in + linear<"out", d_in>(rms_norm<"y_norm", group, d_inner>(p * silu(linear<"z">(u))));
}

}  // namespace fprnn::models
