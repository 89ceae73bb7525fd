#include "models/block_gradients.hpp"

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::affine_of_parts;
using fprnn::heads;
using fprnn::index;
using fprnn::linear;
using fprnn::linear_of_parts;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .heads = 2};
using thirds = fprnn::fixed_width<3>;

TEST_CASE("linear_of_parts: it is the map whose matrix is block-diagonal") {
    const fprnn::layer of_parts(affine_of_parts<"W", heads>(in));
    const fprnn::layer of_all(fprnn::affine<"W">(in));
    auto theta = fprnn::init<double>(of_parts, sizes);
    shake(theta, 0.5);
    REQUIRE(theta["W"].shape() == fprnn::shape{2, 3, 2});
    REQUIRE(theta["W.bias"].shape() == fprnn::shape{6});
    auto whole = fprnn::init<double>(of_all, sizes);
    std::copy_n(theta["W.bias"].data(), 6, whole["W.bias"].data());
    for (index r = 0; r < 6; ++r)
        for (index c = 0; c < 4; ++c) whole["W"](r, c) = r / 3 == c / 2 ? theta["W"][r * 2 + c % 2] : 0;
    const auto x = normal({19, 7, 4}, 1), y_bar = normal({19, 7, 6}, 2);
    const auto got = differentiate(of_parts, theta, x, y_bar), expected = differentiate(of_all, whole, x, y_bar);
    CHECK(distance(got.sol.value, expected.sol.value) <= 1e-14 * largest(expected.sol.value));
    CHECK(distance(got.x_bar, expected.x_bar) <= 1e-14 * largest(expected.x_bar));
    for (index r = 0; r < 6; ++r) {
        CHECK(got.theta_bar["W.bias"][r] == doctest::Approx(expected.theta_bar["W.bias"][r]).epsilon(1e-13));
        for (index c = r / 3 * 2; c < r / 3 * 2 + 2; ++c)
            CHECK(got.theta_bar["W"][r * 2 + c % 2] ==
                  doctest::Approx(expected.theta_bar["W"](r, c)).epsilon(1e-12).scale(1));
    }
}

TEST_CASE("linear_of_parts: gradients outside of a fixed point, and of what has been solved") {
    check_block_gradients(silu(affine_of_parts<"W", heads>(in)), sizes, 2, 5, 0.3);
    const auto y = fixed_point(scan(sigmoid(fprnn::affine<"l">(in)), linear<"u">(cat(in, shift(prev)))));
    check_block_gradients(linear_of_parts<"W", thirds, fprnn::times_width<2, fprnn::d_inner>>(shift(y)), sizes, 2, 5,
                          0.3);
}

TEST_CASE("linear_of_parts: gradients in a fixed point that sees the token before, and in one that sees its own") {
    const auto before = affine_of_parts<"R", thirds>(shift(prev));
    const auto u = tanh(linear<"u">(in) + before);
    check_block_gradients(fixed_point(scan(sigmoid(linear<"l">(in) + linear_of_parts<"L", heads>(shift(prev))), u)),
                          sizes, 2, 6, 0.2);
    check_block_gradients(fixed_point(fprnn::constant<1, 2>() * tanh(u + linear_of_parts<"P", heads>(prev))), sizes, 2,
                          6, 0.2);
    check_block_gradients(fixed_point(linear_of_parts<"x", heads>(in) + fprnn::constant<1, 3>() * tanh(prev)), sizes, 2,
                          5, 0.2);
}

TEST_CASE("linear_of_parts: a call goes on where another ended, and sequences do not see their neighbours") {
    const auto y = fixed_point(fprnn::constant<1, 2>() * tanh(affine_of_parts<"R", thirds>(shift(prev)) +
                                                              linear_of_parts<"P", heads>(prev) + linear<"x">(in)));
    for (const index C : {1, 3}) {
        const fprnn::layer l(y, {.length = C, .tolerance = 1e-4, .ell_max = 50});
        const auto theta = fprnn::init<float>(l, sizes, fprnn::seed{3});
        const auto x = normal<float>({37, 6, 4}, 1);
        const auto whole = l(theta, x, {}, fprnn::eigen(2));
        const auto first = l(theta, tokens(x, 0, 3), {}, fprnn::eigen(1));
        const auto rest = l(theta, tokens(x, 3, 3), first.carry, fprnn::eigen(1));
        CHECK(same_bits(first.value, tokens(whole.value, 0, 3)));
        CHECK(same_bits(rest.value, tokens(whole.value, 3, 3)));
        CHECK(same_bits(rest.carry, whole.carry));
        const auto alone = l(theta, sequences(x, 20, 1), {}, fprnn::eigen(1));
        CHECK(same_bits(alone.value, sequences(whole.value, 20, 1)));
    }
}

TEST_CASE("linear_of_parts: parts must divide both widths, and explain names their number") {
    const fprnn::layer layer(affine_of_parts<"W", heads>(in));
    CHECK_THROWS_WITH_AS((void)fprnn::init<double>(layer, {.d_in = 3, .d_inner = 6, .heads = 2}),
                         "W: 2 parts must divide what the map takes, got 3 channels", fprnn::argument_error);
    CHECK_THROWS_WITH_AS((void)fprnn::init<double>(layer, {.d_in = 4, .d_inner = 5, .heads = 2}),
                         "W: 2 parts must divide what it gives, got 5 channels", fprnn::argument_error);
    const std::string text = explain(layer);
    INFO(text);
    CHECK(text.find("W = W (in) of each of heads + bias") != std::string::npos);
    const auto theta = fprnn::init<double>(layer, sizes);
    for (const auto& e : theta.entries()) CHECK(e.decay == (e.name == "W"));
}

}  // namespace
