#pragma once

#include <fprnn/models/fp_mamba2.hpp>

namespace fprnn::models {

struct delta_options {
    /// n_h: keys, values and β, and so reflections of the state, of a token.
    int steps = 1;
    /// K: q, k, v = SiLU(convolution of K tokens of their maps); 0: SiLU of their maps.
    int convolution = 4;
    /// The state is forgotten by α before each token; without, α = 1.
    bool forget_gate = true;
    /// β = 2 σ(…), so that the state's map has eigenvalues in (−1, 1), and not in (0, 1) alone.
    bool negative_eigenvalues = false;
    /// o ⊙ SiLU(W_g u) goes out; without, o.
    bool output_gate = true;
};

}  // namespace fprnn::models

namespace fprnn::detail {
/// What n steps of a token have.
template <index Steps, class Width>
using width_of_steps = std::conditional_t<Steps == 1, Width, times_width<Steps, Width>>;
/// SiLU of a map, or of its convolution of K tokens where K is not 0.
template <fixed_string Name, fixed_string NameOfConvolution, int K, class Width, class E>
auto activated_map(E u) {
    if constexpr (K == 0)
        return silu(linear<Name, Width>(u));
    else
        return convolved<NameOfConvolution, K>(linear<Name, Width>(u));
}
}  // namespace fprnn::detail

namespace fprnn::models {

/// (Gated) DeltaProduct, H heads whose state S [K,V] is multiplied by n_h generalised reflections a token
/// (Yang et al. 2024, Siems et al. 2025):
///
///     S ← α_t S;   for j < n_h:  S ← S + β_j k_j (v_j − Sᵀk_j)ᵀ;
///     o_t = RMSNorm_V(Sᵀq_t),   out = W_o (o ⊙ SiLU(W_g u))
///
/// with |q| = |k_j| = 1 in each head, β = σ(W_β u) and α = exp(−exp(A) ⊙ softplus(W_α u + bias)). Sizes:
/// heads, d_key = K, d_inner = H V.
///
///     constexpr fprnn::models::delta_options options{.steps = 4, .negative_eigenvalues = true};
///     auto block = fprnn::models::delta_product<options>();
template <delta_options Options = delta_options{}>
auto delta_product() {
    using namespace symbols;
    constexpr int n = Options.steps > 0 ? Options.steps : 1, K = Options.convolution;
    static_assert(Options.steps >= 1, "delta_options: steps, the number of keys of a token, must be at least 1");
    using keys = product_width<heads, d_key>;
    auto u = rms_norm<"norm">(in);
    auto q = normalise<d_key>(detail::activated_map<"q", "q_conv", K, keys>(u));
    auto k = normalise<d_key>(detail::activated_map<"k", "k_conv", K, detail::width_of_steps<n, keys>>(u));
    auto v = detail::activated_map<"v", "v_conv", K, detail::width_of_steps<n, d_inner>>(u);
    auto sigma = sigmoid(linear<"beta", detail::width_of_steps<n, heads>>(u));
    auto beta = detail::either<Options.negative_eigenvalues>(constant<2>() * sigma, sigma);
    auto step = softplus(affine<"alpha", heads, start::softplus_step<1, 100>>(u));
    // A recurrence takes sequences; this one is 1.
    auto one = 1 - constant<0>() * sum_parts<d_key>(q);
    auto alpha = detail::either<Options.forget_gate>(detail::decay_of_heads<0>(step), one);
    auto o = rms_norm<"o_norm", detail::channels_of_a_head>(gated_delta<n>(alpha, k, v, beta, q));
    return in + linear<"out", d_in>(detail::either<Options.output_gate>(o * silu(linear<"gate">(u)), o));
}

/// Gated DeltaNet: one step a token, short convolutions of K tokens (Yang et al. 2024).
template <int K = 4>
auto gated_deltanet() {
    return delta_product<delta_options{.convolution = K}>();
}
/// DeltaProduct of the state-tracking experiments: n_h steps, neither convolution nor forget gate, negative
/// eigenvalues.
template <int Steps>
auto state_tracking_delta_product() {
    return delta_product<delta_options{
        .steps = Steps, .convolution = 0, .forget_gate = false, .negative_eigenvalues = true}>();
}

}  // namespace fprnn::models
