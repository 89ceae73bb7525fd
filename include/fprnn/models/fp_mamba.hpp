#pragma once

#include <fprnn/fixed_point/layer.hpp>

/// Blocks [B,T,d_in] → [B,T,d_in], pre-norm and residual. Names are those of the parameters.
namespace fprnn::models {

/// FP-Mamba with the given mixer: householder<4>, dplr<2>, kronecker and others of fprnn/expression/mixers.hpp,
/// or a function of one's own from what Q sees to Q.
///                                          (eq. fp-mamba-iteration, app. fixed-point-mamba-parametrization)
///
///     H_t = λ_t ⊙ H_{t−1} + b̄_t (Δ_t ⊙ x̃_t)ᵀ,   x̃_t = Q_t x_t + (I − Q_t) y_t^{ℓ−1}
///     y_t = LayerNorm(c̄_tᵀ H_t + D ⊙ x̃_t)
///
/// Q, b, c see x_t and y_{t−1}^{ℓ−1}; λ and Δ see x_t; the gate stands outside of the loop and sees y_{t−1}.
template <class Mixer>
auto fp_mamba(Mixer mixer) {
    using namespace symbols;
    auto u = rms_norm<"norm">(in);
    auto x = linear<"x">(u);
    auto s = cat(x, shift(prev));

    auto Q = detail::mixer_of(mixer, s);
    auto delta = softplus(affine<"delta", d_inner, start::softplus_step<1, 100>>(x));
    auto b = normalise(linear<"b", d_state>(s));
    auto c = normalise(linear<"c", d_state>(s));
    auto x_tilde = Q * x + (identity - Q) * prev;
    auto y =
        fixed_point(layer_norm<"y_norm">(selective_scan<"ssm">(delta, b, c, x_tilde) + parameter<"D">() * x_tilde));

    auto z = linear<"z">(cat(u, shift(y)));
    return in + linear<"out", d_in>(silu(z) * y);
}

/// With R reflections, α = Scale · σ(…).
template <int R, int Scale = 1>
auto fp_mamba() {
    return fp_mamba(householder<R, "Q", Scale>);
}

/// The diagonal baseline: FP-Mamba with Q = I and nothing that sees y. One evaluation, no iteration.
inline auto mamba() {
    using namespace symbols;
    auto u = rms_norm<"norm">(in);
    auto x = linear<"x">(u);
    auto delta = softplus(affine<"delta", d_inner, start::softplus_step<1, 100>>(x));
    auto b = normalise(linear<"b", d_state>(x));
    auto c = normalise(linear<"c", d_state>(x));
    auto y = layer_norm<"y_norm">(selective_scan<"ssm">(delta, b, c, x) + parameter<"D">() * x);
    return in + linear<"out", d_in>(silu(linear<"z">(u)) * y);
}

}  // namespace fprnn::models
