#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/either.hpp>

/// Blocks [B,T,d_in] → [B,T,d_in], pre-norm and residual. Names are those of the parameters.
namespace fprnn::models {

/// What the paper and the authors' code do not agree on, or leave open. The values here are those of
/// fp_mamba(mixer).
struct fp_mamba_options {
    /// K: x = SiLU(convolution of K tokens of W_x u), as the code has it in all tasks but A5 and S5; 0: x =
    /// W_x u.
    int convolution = 0;
    /// Where the gate SiLU(z) stands and what z sees. outside: behind the loop, of u_t and y_{t−1}, the
    /// code's default; inside: before the norm, y = LayerNorm(SiLU(z) ⊙ …), of u_t, as the paper has it and
    /// the code for text; inside_seeing_y: the same of u_t and y_{t−1}, which neither has.
    enum class gating { outside, inside, inside_seeing_y } gate = gating::outside;
    /// Δ, and λ through it, sees y_{t−1}, too.                                                   (tab. h_t-1)
    bool delta_sees_y = false;
    /// b and c see y_{t−1}, too.                                                                 (tab. h_t-1)
    bool b_c_see_y = true;
    /// r: W_Δ of rank r, "delta" [D,r] after "delta_low"; sixteenth_of_d_in: the code's ⌈d_in/16⌉; 0: [D,D].
    int delta_rank = 0;
    /// b and c have length 1.
    bool normalise = true;
    /// What Q sees: x_t and y_{t−1} side by side, their sum, as in the authors' copying experiment, or x_t
    /// alone.
    enum class seen { side_by_side, sum, x } mixer_sees = seen::side_by_side;
    /// Weight-normalises the maps that the authors' code does: those of the mixer, and of y_{t−1} in b, c and
    /// z, "b_y", "c_y" and "z_y".
    bool weight_norm = false;

    static constexpr int sixteenth_of_d_in = -1;
};

}  // namespace fprnn::models

namespace fprnn::detail {
/// ⌈d_in / 16⌉
struct sixteenth_width {
    static index of(const dims& d) { return (d.d_in + 15) / 16; }
};
/// What the mixer sees of x_t and y_{t−1}.
template <models::fp_mamba_options::seen Seen, class X, class Y>
auto seen_by_mixer(X x, Y before) {
    using seen = models::fp_mamba_options::seen;
    if constexpr (Seen == seen::side_by_side)
        return cat(x, before);
    else if constexpr (Seen == seen::sum)
        return x + before;
    else
        return x;
}
/// SiLU of a convolution of K tokens, or x itself where K is 0.
template <fixed_string Name, int K, class E>
auto convolved(E x) {
    static_assert(K >= 0, "convolution, the number of tokens that it sees, must be at least 1, or 0 for none");
    if constexpr (K <= 0)
        return x;
    else
        return silu(convolution<Name, K>(x));
}
/// W x, weight-normalised or not.
template <bool WeightNorm, fixed_string Name, class Width = d_inner, class X>
auto map_of(X x) {
    if constexpr (WeightNorm)
        return weight_normed(linear<Name, Width>(x));
    else
        return linear<Name, Width>(x);
}
/// W [x; y], or W x + W_y y with W_y, "Name_y", weight-normalised.
template <bool WeightNorm, fixed_string Name, class Width = d_inner, class X, class Y>
auto map_of_both(X x, Y y) {
    if constexpr (WeightNorm)
        return linear<Name, Width>(x) + map_of<true, joined_name<Name>("_y"), Width>(y);
    else
        return linear<Name, Width>(cat(x, y));
}
/// b and c before they are normalised.
template <models::fp_mamba_options Options, fixed_string Name, class X, class Y>
auto state_map(X x, Y before) {
    if constexpr (Options.b_c_see_y)
        return map_of_both<Options.weight_norm, Name, d_state>(x, before);
    else
        return linear<Name, d_state>(x);
}
/// Δ of what it sees.
template <int Rank, class E>
auto steps(E seen) {
    static_assert(Rank >= models::fp_mamba_options::sixteenth_of_d_in,
                  "fp_mamba_options: delta_rank must be at least 1, 0 for a full map, or sixteenth_of_d_in");
    using from = start::softplus_step<1, 100>;
    if constexpr (Rank > 0)
        return softplus(affine<"delta", d_inner, from>(linear<"delta_low", fixed_width<Rank>>(seen)));
    else if constexpr (Rank < 0)
        return softplus(affine<"delta", d_inner, from>(linear<"delta_low", sixteenth_width>(seen)));
    else
        return softplus(affine<"delta", d_inner, from>(seen));
}
/// The fixed point y = LayerNorm(p), and its gate where Options have it.
template <models::fp_mamba_options Options, class U, class P>
auto gated(U u, P p) {
    using namespace symbols;
    using gating = models::fp_mamba_options::gating;
    if constexpr (Options.gate == gating::outside) {
        auto y = fixed_point(layer_norm<"y_norm">(p));
        return silu(map_of_both<Options.weight_norm, "z">(u, shift(y))) * y;
    } else {
        auto of_both = map_of_both<Options.weight_norm, "z">(u, shift(prev));
        auto z = either<Options.gate == gating::inside_seeing_y>(of_both, linear<"z">(u));
        return fixed_point(layer_norm<"y_norm">(silu(z) * p));
    }
}
}  // namespace fprnn::detail

namespace fprnn::models {

/// FP-Mamba with the given mixer: householder<4>, dplr<2>, kronecker and others of
/// fprnn/expression/mixers.hpp, or a function of one's own from what Q sees to Q.
///                                          (eq. fp-mamba-iteration, app. fixed-point-mamba-parametrization)
///
///     H_t = λ_t ⊙ H_{t−1} + b̄_t (Δ_t ⊙ x̃_t)ᵀ,   x̃_t = Q_t x_t + (I − Q_t) y_t^{ℓ−1}
///     y_t = LayerNorm(c̄_tᵀ H_t + D ⊙ x̃_t)
///
/// Q, b, c see x_t and y_{t−1}^{ℓ−1}; λ and Δ see x_t; the gate stands outside of the loop and sees y_{t−1}.
/// `Options` changes these choices:
///
///     constexpr fprnn::models::fp_mamba_options options{
///         .convolution = 4, .gate = fprnn::models::fp_mamba_options::gating::inside};
///     auto block = fprnn::models::fp_mamba<options>(fprnn::kronecker);
template <fp_mamba_options Options, class Mixer>
auto fp_mamba(Mixer mixer) {
    using namespace symbols;
    auto u = rms_norm<"norm">(in);
    auto x = detail::convolved<"conv", Options.convolution>(linear<"x">(u));
    auto s = cat(x, shift(prev));

    auto plain_Q = detail::mixer_of(mixer, detail::seen_by_mixer<Options.mixer_sees>(x, shift(prev)));
    auto Q = detail::either<Options.weight_norm>(weight_normed(plain_Q), plain_Q);
    auto delta = detail::steps<Options.delta_rank>(detail::either<Options.delta_sees_y>(s, x));
    auto b_map = detail::state_map<Options, "b">(x, shift(prev));
    auto c_map = detail::state_map<Options, "c">(x, shift(prev));
    auto b = detail::either<Options.normalise>(normalise(b_map), b_map);
    auto c = detail::either<Options.normalise>(normalise(c_map), c_map);
    auto x_tilde = Q * x + (identity - Q) * prev;
    auto p = selective_scan<"ssm">(delta, b, c, x_tilde) + parameter<"D">() * x_tilde;
    return in + linear<"out", d_in>(detail::gated<Options>(u, p));
}
template <class Mixer>
auto fp_mamba(Mixer mixer) {
    return fp_mamba<fp_mamba_options{}>(mixer);
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

/// Mamba as published: short convolution of K tokens, Δ of rank ⌈d_in/16⌉, b and c as their maps give them,
/// and no norm behind the scan.
template <int K = 4>
auto published_mamba() {
    using namespace symbols;
    static_assert(K >= 1, "published_mamba<K>: K, the number of tokens that its convolution sees, must be at least 1");
    auto u = rms_norm<"norm">(in);
    auto x = detail::convolved<"conv", K>(linear<"x">(u));
    auto delta = detail::steps<fp_mamba_options::sixteenth_of_d_in>(x);
    auto y = selective_scan<"ssm">(delta, linear<"b", d_state>(x), linear<"c", d_state>(x), x) + parameter<"D">() * x;
    return in + linear<"out", d_in>(silu(linear<"z">(u)) * y);
}

}  // namespace fprnn::models
