#include <fprnn/models/xlstm.hpp>

#include "models/block_gradients.hpp"

namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;
using fprnn::models::mlstm_block;
using fprnn::models::slstm_block;

constexpr fprnn::dims sizes{.d_in = 6, .d_inner = 8, .heads = 2};

TEST_CASE("xlstm: every gradient of the mLSTM block is that of central differences") {
    check_block_gradients(mlstm_block<2>(), {.d_in = 3, .d_inner = 8, .heads = 2}, 2, 4, 0.2);
}

/// slstm_block's fixed point without a bias of i, whose gradient is zero: differences have nothing but
/// rounding to say of it.
TEST_CASE("xlstm: every gradient of sLSTM in a fixed point is that of central differences") {
    using namespace fprnn::symbols;
    using fprnn::affine_of_parts, fprnn::d_in, fprnn::heads, fprnn::linear_of_parts;
    const auto before = shift(prev_of<d_in>);
    const auto i = linear_of_parts<"i", heads, d_in>(in) + linear_of_parts<"i_y", heads, d_in>(before);
    const auto f = affine_of_parts<"f", heads, d_in>(in) + linear_of_parts<"f_y", heads, d_in>(before);
    const auto z = affine_of_parts<"z", heads, d_in>(in) + linear_of_parts<"z_y", heads, d_in>(before);
    const auto o = affine_of_parts<"o", heads, d_in>(in) + linear_of_parts<"o_y", heads, d_in>(before);
    check_block_gradients(in + fixed_point(fprnn::slstm(i, f, z, o)), sizes, 2, 4, 0.2);
}

TEST_CASE("xlstm: where parameters begin") {
    const auto matrix = fprnn::init<double>(fprnn::layer(mlstm_block()), sizes, fprnn::seed{2});
    CHECK(matrix["q"].shape() == fprnn::shape{2, 4, 4});
    CHECK(matrix["i"].shape() == fprnn::shape{2, 24});
    for (const char* zero : {"i", "f"})
        for (const double w : matrix[zero]) CHECK(w == 0);
    for (const double b : matrix["f.bias"]) CHECK((3 <= b && b < 6));
    for (const double b : matrix["i.bias"]) CHECK((b != 0 && std::abs(b) < 0.5));
    for (const double s : matrix["skip"]) CHECK(s == 1);
    const auto scalar = fprnn::init<double>(fprnn::layer(slstm_block()), sizes, fprnn::seed{2});
    CHECK(scalar["i"].shape() == fprnn::shape{2, 3, 3});
    for (const char* zero : {"i_y", "f_y", "z_y", "o_y", "i.bias", "z.bias", "o.bias"})
        for (const double w : scalar[zero]) CHECK(w == 0);
    double least = 9, most = -9;
    for (const double b : scalar["f.bias"]) least = std::min(least, b), most = std::max(most, b);
    CHECK((-7 <= least && least < most && most < 5));
}

TEST_CASE("xlstm: tokens one by one, after a prompt, have the bits of one call") {
    const auto check = [](const auto& block, index carry_width) {
        const fprnn::layer layer(block);
        CHECK(layer.carry_width(sizes) == carry_width);
        auto theta = fprnn::init<float>(layer, sizes, fprnn::seed{1});
        shake(theta, 0.3);
        const auto x = normal<float>({3, 12, 6}, 1);
        const auto once = layer(theta, x);
        tensor<float> carry;
        index at = 0;
        for (const index n : {7, 1, 1, 3}) {
            const auto part = layer(theta, tokens(x, at, n), carry);
            CHECK(same_bits(part.value, tokens(once.value, at, n)));
            carry = part.carry;
            at += n;
        }
        CHECK(same_bits(carry, once.carry));
    };
    check(mlstm_block(), 3 * 8 + 2 * (4 * 4 + 4 + 1));
    check(slstm_block(), 3 * 6 + 3 * 6 + 6);
    check(slstm_block<0>(), 3 * 6 + 6);
}

TEST_CASE("xlstm: sLSTM's one-token chunks take one evaluation, chunks of C tokens at most C + 1, and all agree") {
    fprnn::layer l(slstm_block(), fprnn::chunked{.length = 1, .tolerance = 1e-14, .ell_max = 100});
    auto theta = fprnn::init<double>(l, sizes, fprnn::seed{4});
    shake(theta, 0.5);
    const auto x = normal({3, 9, 6}, 1);
    const auto expected = l(theta, x);
    CHECK(expected.iterations == std::vector<int>(3, 1));
    for (const index C : {index{4}, fprnn::whole_sequence}) {
        l.schedule.length = C;
        const auto sol = l(theta, x);
        CHECK(sol.all_converged());
        CHECK(distance(sol.value, expected.value) <= 1e-12 * largest(expected.value));
        CHECK(*std::max_element(sol.iterations.begin(), sol.iterations.end()) <= std::min<index>(C, 9) + 1);
    }
}

TEST_CASE("xlstm: in float, gates of any size leave values and gradients finite") {
    const auto check = [](const auto& block) {
        const fprnn::layer l(block);
        auto theta = fprnn::init<float>(l, sizes, fprnn::seed{4});
        shake(theta, 0.5);
        const auto x = normal<float>({3, 9, 6}, 1), y_bar = normal<float>({3, 9, 6}, 2);
        for (const float bias : {-300.0f, 60.0f, 300.0f}) {
            for (float& b : theta["i.bias"]) b = bias;
            const auto got = differentiate(l, theta, x, y_bar);
            for (const float y : got.sol.value) CHECK(fprnn::math::is_finite(y));
            for (const float g : got.x_bar) CHECK(fprnn::math::is_finite(g));
        }
    };
    check(mlstm_block());
    check(slstm_block());
}

TEST_CASE("xlstm: sizes that do not fit are refused") {
    const fprnn::layer refused(mlstm_block());
    CHECK_THROWS_WITH_AS((void)fprnn::init<double>(refused, {.d_in = 6, .d_inner = 10, .heads = 2}),
                         "width: 4 parts, such as heads, must divide the 10 channels that they are of",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS((void)fprnn::init<double>(refused, {.d_in = 6, .d_inner = 8, .heads = 3}),
                         doctest::Contains("mlstm: k must have a multiple of 3 channels"), fprnn::argument_error);
}

}  // namespace
