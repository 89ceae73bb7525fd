#include "models/block_gradients.hpp"

#include <fprnn/recurrences/gated_delta.hpp>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::affine;
using fprnn::d_head;
using fprnn::d_key;
using fprnn::heads;
using fprnn::linear;
using fprnn::product_width;
using fprnn::repeat;
using fprnn::sum_parts;

using channels = product_width<heads, d_head>;
constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .heads = 2, .d_head = 3, .d_key = 2};

TEST_CASE("repeat: a head's number for all of its channels, and the sum of a head") {
    const auto gate = repeat<d_head>(sigmoid(affine<"gate", heads>(in)));
    const auto v = linear<"v", channels>(in);
    check_block_gradients(linear<"out", fprnn::d_in>(gate * v), sizes, 2, 4, 0.1);
    check_block_gradients(linear<"out", fprnn::d_in>(sum_parts<d_head>(v * v)), sizes, 2, 4, 0.1);
    check_block_gradients(linear<"out", fprnn::d_in>(repeat<d_head>(tanh(sum_parts<d_head>(v))) * v),
                          {.d_in = 3, .d_inner = 1, .heads = 3, .d_head = 17}, 2, 3, 0.1);
}

TEST_CASE("repeat: a head's share of d_inner") {
    using share = fprnn::quotient_width<fprnn::d_inner, heads>;
    const auto v = linear<"v">(in);
    check_block_gradients(linear<"out", fprnn::d_in>(repeat<share>(tanh(sum_parts<share>(v))) * v), sizes, 2, 4, 0.1);
    const auto text = explain(fprnn::layer(linear<"out", share>(in)));
    INFO(text);
    CHECK(text.find("d_inner / heads") != std::string::npos);
}

TEST_CASE("repeat: its values") {
    // W = 1: v of head 0 is x, and so is that of the others.
    const fprnn::layer summed(sum_parts<d_head>(linear<"v", channels>(in)));
    const fprnn::layer repeated(repeat<d_head>(linear<"a", heads>(in)));
    const fprnn::dims one{.d_in = 1, .d_inner = 1, .heads = 2, .d_head = 3};
    auto theta = fprnn::init<double>(summed, one);
    for (int i = 0; i < 6; ++i) theta["v"].data()[i] = i;
    auto a = fprnn::init<double>(repeated, one);
    a["a"].data()[0] = 5, a["a"].data()[1] = 7;
    fprnn::tensor<double> x({1, 1, 1});
    x[0] = 2;
    const auto sums = summed(theta, x).value, numbers = repeated(a, x).value;
    CHECK(sums.shape() == fprnn::shape{1, 1, 2});
    CHECK(sums[0] == 2 * (0 + 1 + 2));
    CHECK(sums[1] == 2 * (3 + 4 + 5));
    const double expected[] = {10, 10, 10, 14, 14, 14};
    for (int i = 0; i < 6; ++i) CHECK(numbers[i] == expected[i]);
}

TEST_CASE("dims: a recurrence with heads by name") {
    const auto s = cat(in, shift(prev));
    const auto y = fprnn::gated_delta(sigmoid(affine<"alpha", heads>(s)),
                                      normalise(linear<"k", product_width<heads, d_key>>(s)), linear<"v", channels>(in),
                                      sigmoid(affine<"beta", heads>(s)), linear<"q", product_width<heads, d_key>>(s));
    check_block_gradients(fixed_point(linear<"o">(y * repeat<d_head>(silu(linear<"z", heads>(in))))), sizes, 2, 5, 0.1);
    const auto steps = fprnn::gated_delta<2>(
        sigmoid(affine<"alpha", heads>(in)), linear<"k", fprnn::times_width<2, product_width<heads, d_key>>>(in),
        linear<"v", fprnn::times_width<2, channels>>(in), sigmoid(affine<"beta", fprnn::times_width<2, heads>>(in)),
        linear<"q", product_width<heads, d_key>>(in));
    static_assert(std::is_same_v<decltype(steps)::width, channels>);
    CHECK(explain(fprnn::layer(steps)).find("2 (heads d_head)") == std::string::npos);
    CHECK(explain(fprnn::layer(steps)).find("2 heads d_head") != std::string::npos);
}

TEST_CASE("dims: an iterate of another width than d_inner") {
    constexpr auto y = fprnn::symbols::prev_of<fprnn::d_state>;
    const auto f =
        tanh(affine<"u", fprnn::d_state>(cat(in, shift(y))) + fprnn::constant<1, 3>() * linear<"w", fprnn::d_state>(y));
    check_block_gradients(fixed_point(f), {.d_in = 4, .d_inner = 9, .d_state = 5}, 2, 6, 0.1);
    const auto scanned =
        scan(sigmoid(affine<"l", fprnn::d_state>(in)), linear<"u", fprnn::d_state>(in) + fprnn::constant<1, 4>() * y);
    check_block_gradients(linear<"o", fprnn::d_out>(fixed_point(scanned)),
                          {.d_in = 4, .d_inner = 9, .d_state = 5, .d_out = 3}, 2, 6, 0.1);
}

TEST_CASE("dims: every named size must be positive") {
    const fprnn::layer l(linear<"v", channels>(in));
    for (const auto& [name, size] : fprnn::named_sizes) {
        fprnn::dims wrong{.d_in = 1, .d_inner = 1};
        wrong.*size = 0;
        CHECK_THROWS_WITH_AS(fprnn::init(l, wrong),
                             doctest::Contains((std::string("init: ") + name + " must be at least 1, got 0").c_str()),
                             fprnn::argument_error);
    }
}

}  // namespace
