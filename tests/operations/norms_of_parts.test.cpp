#include "models/block_gradients.hpp"

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::d_head;
using fprnn::heads;
using fprnn::linear;
using fprnn::product_width;
using fprnn::tensor;

using channels = product_width<heads, d_head>;
using share = fprnn::quotient_width<fprnn::d_inner, heads>;
constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .heads = 2, .d_head = 3};

/// The rows of x, each cut into its parts.
tensor<double> parts(const tensor<double>& x, fprnn::index width) {
    tensor<double> y({x.size() / width, width});
    std::copy(x.begin(), x.end(), y.begin());
    return y;
}

TEST_CASE("norms of parts: each part is what the norm over all channels makes of it alone") {
    const auto x = linear<"x", channels>(in);
    const auto u = normal({2, 3, 4}, 1);
    const fprnn::layer plain(x);
    const fprnn::layer each(fprnn::rms_norm<"norm", d_head>(x));
    const fprnn::layer own(fprnn::layer_norm<"norm", d_head, channels>(x));
    const fprnn::layer unit(fprnn::normalise<d_head>(x));
    auto theta = fprnn::init<double>(plain, sizes);
    const auto with = [&](const auto& layer) {
        auto t = fprnn::init<double>(layer, sizes);
        fprnn::testing::shake(t, 0.5);
        std::copy(theta["x"].begin(), theta["x"].end(), t["x"].data());
        return t;
    };
    const auto values = parts(plain(theta, u).value, 3);

    auto shared = with(each);
    REQUIRE(shared["norm.weight"].shape() == fprnn::shape{3});
    CHECK(same_bits(parts(each(shared, u).value, 3), fprnn::rms_norm(values, shared["norm.weight"], fprnn::eigen{})));
    CHECK(same_bits(parts(unit(with(unit), u).value, 3), fprnn::l2_normalise(values, fprnn::eigen{})));

    auto of_channels = with(own);
    REQUIRE(of_channels["norm.weight"].shape() == fprnn::shape{6});
    REQUIRE(of_channels["norm.bias"].shape() == fprnn::shape{6});
    const auto y = parts(own(of_channels, u).value, 3);
    for (fprnn::index h = 0; h < 2; ++h) {
        tensor<double> weight({3}), bias({3});
        std::copy_n(of_channels["norm.weight"].data() + 3 * h, 3, weight.data());
        std::copy_n(of_channels["norm.bias"].data() + 3 * h, 3, bias.data());
        const auto expected = fprnn::layer_norm(values, weight.view(), bias.view(), fprnn::eigen{});
        for (fprnn::index r = h; r < y.shape()[0]; r += 2)
            for (fprnn::index i = 0; i < 3; ++i) CHECK(y(r, i) == expected(r, i));
    }
}

TEST_CASE("norms of parts: their gradients are those of differences") {
    const auto v = linear<"v", channels>(in);
    const auto out = [](auto e) { return linear<"out", fprnn::d_in>(e); };
    check_block_gradients(out(fprnn::rms_norm<"n", d_head>(v)), sizes, 2, 4, 0.3);
    check_block_gradients(out(fprnn::rms_norm<"n", d_head, channels>(v)), sizes, 2, 4, 0.3);
    check_block_gradients(out(fprnn::layer_norm<"n", d_head>(v)), sizes, 2, 4, 0.3);
    check_block_gradients(out(fprnn::layer_norm<"n", d_head, channels>(v)), sizes, 2, 4, 0.3);
    check_block_gradients(out(fprnn::normalise<d_head>(v)), sizes, 2, 4, 0.3);
}

TEST_CASE("norms of parts: in an iteration, at its end and before it") {
    const auto s = cat(in, shift(prev));
    const auto x = linear<"x">(in) + fprnn::constant<1, 4>() * linear<"y">(shift(prev));
    check_block_gradients(fixed_point(fprnn::rms_norm<"n", share>(x + fprnn::constant<1, 8>() * prev)), sizes, 2, 5,
                          0.2);
    check_block_gradients(
        fixed_point(fprnn::scan(sigmoid(fprnn::affine<"l">(in)), fprnn::normalise<share>(linear<"b">(s)))), sizes, 2, 5,
        0.1);
    const auto Q = fprnn::householder<1, "Q">(s);
    const auto mixed = fprnn::layer_norm<"n", share, fprnn::d_inner>(Q * linear<"x">(in) + (identity - Q) * prev);
    check_block_gradients(fixed_point(mixed), sizes, 2, 4, 0.1);
    const auto text = explain(fprnn::layer(fixed_point(mixed)));
    INFO(text);
    CHECK(text.find("of each d_inner / heads") != std::string::npos);
    CHECK_FALSE(fprnn::graph::reduce(fprnn::graph::view_of<decltype(fixed_point(mixed))>));
}

TEST_CASE("norms of parts: heads must divide the channels that they are of") {
    const fprnn::layer layer(fprnn::rms_norm<"n", share>(linear<"x">(in)));
    CHECK_THROWS_WITH_AS((void)fprnn::init<double>(layer, {.d_in = 2, .d_inner = 6, .heads = 4}),
                         "width: 4 parts, such as heads, must divide the 6 channels that they are of",
                         fprnn::argument_error);
}

}  // namespace
