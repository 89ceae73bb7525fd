#pragma once

#include <fprnn/fixed_point/layer.hpp>

namespace fprnn::models {

/// LSTM (Hochreiter and Schmidhuber 1997; forget gate: Gers, Schmidhuber and Cummins 2000), the dense
/// baseline.
///
///     c_t = f_t ⊙ c_{t−1} + i_t ⊙ g_t,   y_t = o_t ⊙ tanh(c_t)
///     i, f, o = σ(W s_t + bias),   g = tanh(W_g s_t + bias),   s_t = [u_t; y_{t−1}]
///
/// As a fixed point it sees y_{t−1}^{ℓ−1} and nothing of its own token. Guaranteed: one fixed point, which a
/// one-token chunk reaches in one evaluation, an LSTM step, and a chunk of C tokens in at most C + 1. f's
/// bias starts at 1.
inline auto lstm() {
    using namespace symbols;
    auto u = rms_norm<"norm">(in);
    auto s = cat(u, shift(prev));
    auto i = sigmoid(affine<"i">(s));
    auto f = sigmoid(affine<"f", d_inner, start::constant<1>>(s));
    auto o = sigmoid(affine<"o">(s));
    auto g = tanh(affine<"g">(s));
    auto y = fixed_point(o * tanh(scan(f, i * g)));
    return in + linear<"out", d_in>(y);
}

}  // namespace fprnn::models
