#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/either.hpp>

namespace fprnn::models {

struct fp_rnn_options {
    /// Q sees x_t and h_{t−1}, or x_t alone.                                     (fig. fp-rnn-mixer-variants)
    bool mixer_sees_h = true;
};

/// FP-RNN with the given mixer, see fp_mamba.            (eq. fixed-point-iteration-in-depth-with-dependence)
///
///     h_t = λ_t ⊙ h_{t−1} + (1 − λ_t) ⊙ (Q_t (b_t ⊙ x_t) + (I − Q_t) h_t^{ℓ−1})
///
/// with b = SiLU(W_b x), λ = σ(W_λ x + bias), Q seeing x_t and h_{t−1}^{ℓ−1}; read out as c(x_t, h_{t−1}) ⊙
/// h_t, gated and normalised, as the authors' code does. `Options` changes this:
/// fp_rnn<fp_rnn_options{.mixer_sees_h = false}>(kronecker).
template <fp_rnn_options Options, class Mixer>
auto fp_rnn(Mixer mixer) {
    using namespace symbols;
    auto u = rms_norm<"norm">(in);
    auto x = linear<"x">(u);
    auto Q = detail::mixer_of(mixer, detail::either<Options.mixer_sees_h>(cat(x, shift(prev)), x));
    auto lambda = sigmoid(affine<"lambda">(x));
    auto v = silu(linear<"b">(x)) * x;
    auto h = fixed_point(scan(lambda, (1 - lambda) * (Q * v + (identity - Q) * prev)));

    auto c = silu(linear<"c">(cat(x, shift(h))));
    return in + linear<"out", d_in>(rms_norm<"out_norm">(silu(linear<"z">(u)) * (c * h)));
}

template <class Mixer>
auto fp_rnn(Mixer mixer) {
    return fp_rnn<fp_rnn_options{}>(mixer);
}

/// With R reflections, α = Scale · σ(…).
template <int R, int Scale = 1>
auto fp_rnn() {
    return fp_rnn(householder<R, "Q", Scale>);
}

}  // namespace fprnn::models
