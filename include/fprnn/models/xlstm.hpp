#pragma once

#include <fprnn/models/fp_mamba2.hpp>

namespace fprnn::models {

/// xLSTM's block with a matrix cell for each of H heads of D/H channels (Beck et al. 2024): x_m = W_up u, c =
/// SiLU(convolution of K tokens of x_m), q and k are maps of c and v one of x_m, each block-diagonal with
/// blocks of Block × Block; the gates are maps of [q; k; v].
///
///     u = LayerNorm(in),   h = mLSTM(i, f, k, v, q),
///     out = in + W_down ((LayerNorm_head(h) + skip ⊙ c) ⊙ SiLU(W_z u))
///
/// Sizes: heads, d_inner = D, which Block and heads must divide. The gates' maps start at 0, i's bias
/// normal with deviation 0.1, f's uniform on [3, 6).
template <int K = 4, int Block = 4>
auto mlstm_block() {
    using namespace symbols;
    static_assert(K >= 1,
                  "mlstm_block<K, Block>: K, the number of tokens that its convolution sees, must be at least 1");
    static_assert(Block >= 1, "mlstm_block<K, Block>: Block, the rows of a block of q, k and v, must be at least 1");
    using blocks = quotient_width<d_inner, fixed_width<(Block > 0 ? Block : 1)>>;
    using zero = start::constant<0>;
    auto u = layer_norm<"norm">(in);
    auto x = linear<"up">(u);
    auto c = detail::convolved<"conv", (K > 0 ? K : 1)>(x);
    auto q = linear_of_parts<"q", blocks>(c);
    auto k = linear_of_parts<"k", blocks>(c);
    auto v = linear_of_parts<"v", blocks>(x);
    auto i = affine<"i", heads, start::normal<1, 10>, zero>(cat(q, k, v));
    auto f = affine<"f", heads, start::between<3, 6>, zero>(cat(q, k, v));
    auto h = layer_norm<"h_norm", detail::channels_of_a_head, d_inner>(mlstm(i, f, k, v, q));
    return in + linear<"down", d_in>((h + parameter<"skip">() * c) * silu(linear<"z">(u)));
}

/// xLSTM's block with a scalar cell for each channel, as wide as the input: a gate sees its own head's
/// channels of the input and of y_{t−1}. i and f see SiLU(convolution of K tokens of u), or u where K is 0, z
/// and o see u = LayerNorm(in).
///
///     y = sLSTM(i, f, z, o),   each gate W u + R y_{t−1} + bias, W and R block-diagonal,
///     out = in + LayerNorm_head(y)
///
/// As a fixed point it sees y_{t−1}^{ℓ−1} and nothing of its own token: one-token chunks take one evaluation.
/// heads must divide d_in. R starts at 0, f's bias uniform on [−7, 5). The published block has an MLP
/// besides, which is another block of a stack here: stack(slstm_block(), swiglu()).
template <int K = 4>
auto slstm_block() {
    using namespace symbols;
    using zero = start::constant<0>;
    auto u = layer_norm<"norm">(in);
    auto x = detail::convolved<"conv", K>(u);
    auto before = shift(prev_of<d_in>);
    auto i = affine_of_parts<"i", heads, d_in>(x) + linear_of_parts<"i_y", heads, d_in, zero>(before);
    auto f =
        affine_of_parts<"f", heads, d_in, start::between<-7, 5>>(x) + linear_of_parts<"f_y", heads, d_in, zero>(before);
    auto z = affine_of_parts<"z", heads, d_in>(u) + linear_of_parts<"z_y", heads, d_in, zero>(before);
    auto o = affine_of_parts<"o", heads, d_in>(u) + linear_of_parts<"o_y", heads, d_in, zero>(before);
    auto y = fixed_point(slstm(i, f, z, o));
    return in + layer_norm<"y_norm", quotient_width<d_in, heads>, d_in>(y);
}

}  // namespace fprnn::models
