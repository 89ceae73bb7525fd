#include "models/block_gradients.hpp"

#include <fprnn/recurrences/gated_delta.hpp>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::affine;
using fprnn::fixed_width;
using fprnn::gated_delta;
using fprnn::index;
using fprnn::linear;

/// Two heads with keys of two numbers and values of d_inner / 2, n steps a token, of what `s` sees and of v.
template <int Steps = 1>
auto delta_rule(auto s, auto v) {
    using heads = fixed_width<2>;
    using keys = fixed_width<4>;
    return gated_delta<Steps>(sigmoid(affine<"alpha", heads>(s)), normalise(linear<"k", fixed_width<4 * Steps>>(s)), v,
                              sigmoid(affine<"beta", fixed_width<2 * Steps>>(s)), linear<"q", keys>(s));
}
constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6};

TEST_CASE("recurrence: the gated delta rule outside of a fixed point") {
    check_block_gradients(linear<"out", fprnn::d_in>(delta_rule(in, linear<"v">(in))), sizes, 2, 6, 0.1);
    // States that are kept every 16 tokens.
    check_block_gradients(linear<"out", fprnn::d_in>(delta_rule(in, linear<"v">(in))), {.d_in = 2, .d_inner = 2}, 1, 35,
                          0.1);
}

TEST_CASE("recurrence: several steps a token, DeltaProduct") {
    check_block_gradients(delta_rule<3>(in, linear<"v", fprnn::times_width<3, fprnn::d_inner>>(in)), sizes, 2, 5, 0.1);
}

TEST_CASE("recurrence: in a fixed point, keys of the token before and values of the iterate") {
    const auto s = cat(in, shift(prev));
    const auto Q = fprnn::householder<2>(s);
    const auto v = Q * linear<"v">(in) + (I - Q) * prev;
    const auto third = fprnn::constant<1, 3>();
    check_block_gradients(fixed_point(third * delta_rule(s, v)), sizes, 2, 6, 0.1);
    check_block_gradients(fixed_point(third * delta_rule(s, v)), {.d_in = 2, .d_inner = 2}, 1, 19, 0.1);
}

TEST_CASE("recurrence: in a fixed point, keys of the iterate itself") {
    const auto third = fprnn::constant<1, 3>();
    check_block_gradients(fixed_point(third * delta_rule(cat(in, prev), linear<"v">(in))), sizes, 2, 6, 0.1);
}

TEST_CASE("recurrence: in a fixed point, of what does not see the iterate") {
    const auto half = fprnn::constant<1, 2>();
    check_block_gradients(fixed_point(delta_rule(in, linear<"v">(in)) + half * prev), sizes, 2, 6, 0.1);
    check_block_gradients(fixed_point(delta_rule(cat(in, shift(prev)), linear<"v">(in)) + half * prev), sizes, 2, 6,
                          0.1);
}

TEST_CASE("recurrence: a call goes on where another ended, and sequences do not see their neighbours") {
    const auto s = cat(in, shift(prev));
    const auto y =
        fixed_point(fprnn::constant<1, 3>() * delta_rule(s, linear<"v">(in) + fprnn::constant<1, 4>() * prev));
    for (const index C : {1, 3}) {
        const fprnn::layer l(y, {.length = C, .tolerance = 1e-4, .ell_max = 50});
        const auto theta = fprnn::init<float>(l, sizes, fprnn::seed{3});
        CHECK(l.carry_width(sizes) == 2 * 2 * 3 + 6);
        const auto x = normal<float>({37, 6, 4}, 1);
        const auto whole = l(theta, x, {}, fprnn::eigen(2));
        auto first = l(theta, tokens(x, 0, 3), {}, fprnn::eigen(1));
        const auto rest = l(theta, tokens(x, 3, 3), first.carry, fprnn::eigen(1));
        CHECK(same_bits(first.value, tokens(whole.value, 0, 3)));
        CHECK(same_bits(rest.value, tokens(whole.value, 3, 3)));
        CHECK(same_bits(rest.carry, whole.carry));
        const auto alone = l(theta, sequences(x, 20, 1), {}, fprnn::eigen(1));
        CHECK(same_bits(alone.value, sequences(whole.value, 20, 1)));
    }
}

TEST_CASE("recurrence: explain says its inputs, and why tokens are not reduced") {
    const fprnn::layer l(fixed_point(fprnn::constant<1, 3>() * delta_rule(in, prev)));
    const std::string text = explain(l);
    INFO(text);
    CHECK(text.find("gated_delta(#") != std::string::npos);
}

TEST_CASE("recurrence: widths that do not fit are refused when parameters are made") {
    using three = fixed_width<3>;
    const auto beta = sigmoid(affine<"beta", three>(in));
    const fprnn::layer l(gated_delta(sigmoid(affine<"alpha", fixed_width<2>>(in)), linear<"k", fixed_width<4>>(in),
                                     linear<"v">(in), beta, linear<"q", fixed_width<4>>(in)));
    CHECK_THROWS_WITH_AS(fprnn::init(l, sizes),
                         "gated_delta: beta must have a multiple of 2 channels, one for each of alpha's heads, got 3",
                         fprnn::argument_error);
}

}  // namespace
