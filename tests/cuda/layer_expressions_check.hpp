#pragma once

#include "../../examples/own_mixer/rotation.hpp"
#include "layer_check.hpp"

#include <fprnn/models/fp_mamba2.hpp>
#include <fprnn/models/lstm.hpp>

#include <algorithm>

/// Expressions that the models do not have, on cuda::device against the CPU.
namespace layers {

inline auto without_reduced_numbers() {
    using namespace fprnn::symbols;
    const auto s = cat(in, shift(prev));
    return fixed_point(tanh(affine<"A">(s) + sigmoid(affine<"gate">(in)) * prev));
}
inline auto mixer_under_functions() {
    using namespace fprnn::symbols;
    const auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    const auto lambda = sigmoid(affine<"lambda">(in));
    return fixed_point(layer_norm<"norm">(scan(lambda, tanh(Q * linear<"B">(in) + (I - Q) * prev))));
}
/// The mixer of the tutorial, in which channels meet that are other threads'.
inline auto mixer_of_the_tutorial() {
    using namespace fprnn::symbols;
    const auto Q = rotation<3, "Q">(cat(in, shift(prev)));
    const auto lambda = sigmoid(affine<"lambda">(in));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * linear<"B">(in) + (I - Q) * prev)));
}
/// A product of mixers of which one has full rank, and one that is the same for all tokens.
inline auto mixers_of_every_kind() {
    using namespace fprnn::symbols;
    const auto Q = (kronecker * fprnn::contractive<9, 10>(dplr<2>))(cat(in, shift(prev)));
    const auto lambda = sigmoid(affine<"lambda">(in));
    const auto h = fixed_point(scan(lambda, (1 - lambda) * (Q * linear<"B">(in) + (I - Q) * prev)));
    return orthogonal.named<"R">(in) * h + block_diagonal<3, "M">(in) * linear<"v">(in);
}
inline auto product_of_iterate() {
    using namespace fprnn::symbols;
    return fixed_point(tanh(affine<"B">(in) + fprnn::constant<1, 5>() * linear<"R">(prev) + linear<"S">(shift(prev))));
}

/// Two steps a token of a recurrence that no kernel is made for, of what sees y_{t−1} and of the iterate.
inline auto delta_rule_of_iterate() {
    using namespace fprnn::symbols;
    using two = fprnn::fixed_width<2>;
    using keys = fprnn::times_width<4, two>;
    const auto s = cat(in, shift(prev));
    const auto k = fprnn::normalise<two>(fprnn::layer_norm<"k_norm", two, keys>(linear<"k", keys>(in)));
    const auto v = linear<"v", fprnn::times_width<2, fprnn::d_inner>>(cat(in, prev));
    const auto y =
        fprnn::gated_delta<2>(sigmoid(affine<"alpha", two>(s)), k, v, sigmoid(affine<"beta", fprnn::fixed_width<4>>(s)),
                              linear<"q", fprnn::fixed_width<4>>(s));
    return fixed_point(fprnn::constant<1, 20>() * y + linear<"u">(in));
}

/// Recurrences with parameters, of the input and of the iterate.
inline auto convolutions() {
    using namespace fprnn::symbols;
    const auto x = silu(fprnn::convolution<"conv">(linear<"x">(in)));
    return fixed_point(x + fprnn::constant<1, 4>() * tanh(fprnn::convolution<"inside", 2>(prev)));
}

/// A block as others have it, Δ, skip and gate around one scan.
inline auto gated_scan() {
    using namespace fprnn::symbols;
    using fprnn::d_in, fprnn::d_state;
    const auto x = linear<"x">(in);
    const auto S =
        selective_scan<"ssm">(softplus(affine<"delta">(x)), linear<"b", d_state>(x), linear<"c", d_state>(x), x);
    return linear<"out", d_in>(silu(linear<"z">(in)) * (S + fprnn::parameter<"D">() * x));
}
/// The same in an iteration, where the step sees y_{t−1} and the gate y_t.
inline auto gated_scan_of_iterate() {
    using namespace fprnn::symbols;
    using fprnn::d_state;
    const auto s = cat(in, shift(prev));
    const auto Q = fprnn::householder<2, "Q">(s);
    const auto u = Q * linear<"B">(in) + (I - Q) * prev;
    const auto S =
        selective_scan<"ssm">(softplus(affine<"delta">(s)), linear<"b", d_state>(in), linear<"c", d_state>(in), u);
    return fprnn::fixed_point(
        layer_norm<"norm">(sigmoid(linear<"z">(cat(in, prev))) * (S + fprnn::parameter<"D">() * u)));
}

/// In an iteration whose scan sees the iterate as its input alone.
inline auto gated_scan_of_mixed() {
    using namespace fprnn::symbols;
    using fprnn::d_state;
    const auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    const auto u = Q * linear<"B">(in) + (I - Q) * prev;
    const auto S =
        selective_scan<"ssm">(softplus(affine<"delta">(in)), linear<"b", d_state>(in), linear<"c", d_state>(in), u);
    return fprnn::fixed_point(layer_norm<"norm">(sigmoid(linear<"z">(in)) * (S + fprnn::parameter<"D">() * u)));
}

/// Whose tokens no R numbers are solved for, and whose iteration need not contract.
inline auto expanding_mixer() {
    using namespace fprnn::symbols;
    const auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    return fixed_point(fprnn::constant<3>() * tanh(Q * linear<"B">(in) + fprnn::constant<2>() * ((I - Q) * prev)));
}
/// It has not settled in most sequences, and w is solved for all the same.
inline void check_expanding() {
    const chunked schedule{.length = 1, .tolerance = 1e-12, .ell_max = 9};
    const adjoint exact = fprnn::implicit{.tolerance = 1e-11, .ell_max = 40};
    check_equivalent(expanding_mixer(), schedule, exact, {5, 3, 4}, 7, 3, 1e-9);
    const fprnn::layer layer(expanding_mixer(), schedule, exact);
    const auto theta = fprnn::init<double>(layer, {.d_in = 4, .d_inner = 7}, fprnn::seed{4});
    const auto out = differentiate(layer, theta, gpu::random<double>({5, 3, 4}, 1),
                                   tensor<double>({5, layer.carry_width(theta.widths)}),
                                   gpu::random<double>({5, 3, 7}, 3), cuda::device());
    CHECK(std::count(out.forward.status.begin(), out.forward.status.end(), fprnn::status::converged) <= 2);
    CHECK(out.back.all_converged());
}

template <class Expression>
void check_expression(Expression expression, double apart, index d_inner = 7) {
    const adjoint exact = fprnn::implicit{.tolerance = 1e-14};
    for (const index C : {index(1), index(2)})
        check_equivalent(expression, {.length = C, .tolerance = 1e-13, .ell_max = 300}, exact, {5, 3, 4}, 6, 3,
                         std::max(apart, most));
    // Sequences that are done at other times, and one that is not.
    check_equivalent(expression, {.length = 1, .tolerance = 1e-3, .ell_max = 6}, fprnn::one_step{}, {5, 3, 4}, d_inner);
}

/// FP-Mamba2, whose iteration need not contract: a few of them.
inline void check_heads() {
    check_equivalent(fprnn::models::fp_mamba2(fprnn::householder<2>), {.length = 1, .tolerance = 1e-3, .ell_max = 6},
                     fprnn::one_step{}, {5, 3, 4}, 6);
}

}  // namespace layers
