#include "models/block_gradients.hpp"

#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/convolution.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::convolution;
using fprnn::index;
using fprnn::linear;
using numbers = std::vector<double>;

std::size_t at(index i) { return static_cast<std::size_t>(i); }

template <int K>
fprnn::recurrence_verdict verdict() {
    using M = fprnn::convolution_recurrence<K>;
    return fprnn::check_recurrence<M>(
        {.widths = {{1}, {3}, {17}},
         .plain = [](const typename M::sizes& of, const numbers& p, const auto& x, numbers& S) {
             const index D = of.channels;
             S.insert(S.end(), x[0].begin(), x[0].end());  // K tokens
             numbers y(p.end() - D, p.end());
             for (index i = 0; i < K * D; ++i) y[at(i % D)] += p[at(i)] * S[at(i)];
             S.erase(S.begin(), S.begin() + D);
             return y;
         }});
}
TEST_CASE_TEMPLATE("convolution: the laws of a recurrence", Kernel, std::integral_constant<int, 1>,
                   std::integral_constant<int, 2>, std::integral_constant<int, 4>) {
    const auto v = verdict<Kernel::value>();
    INFO(v.to_string());
    CHECK(v.ok());
}

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6};

TEST_CASE("convolution: of the input, of what has been solved, and in a fixed point") {
    const auto x = silu(convolution<"conv">(linear<"x">(in)));
    const auto lambda = sigmoid(fprnn::affine<"lambda">(cat(x, shift(prev))));
    const auto y = fixed_point(scan(lambda, (1 - lambda) * (x + fprnn::constant<1, 3>() * tanh(prev))));
    check_block_gradients(x, sizes, 2, 6, 0.1);
    check_block_gradients(convolution<"conv", 1>(in), {.d_in = 3, .d_inner = 3}, 2, 3, 0.1);
    check_block_gradients(y, sizes, 2, 7, 0.1);
    check_block_gradients(convolution<"after", 3>(y), sizes, 2, 6, 0.1);
    check_block_gradients(fixed_point(x + fprnn::constant<1, 4>() * tanh(convolution<"inside", 2>(prev))), sizes, 2, 6,
                          0.1);
    // States that are kept every 16 tokens.
    check_block_gradients(x, {.d_in = 2, .d_inner = 2}, 1, 35, 0.1);
}

TEST_CASE("convolution: parameters, and where they begin") {
    const fprnn::layer l(convolution<"conv", 4>(linear<"x">(in)));
    const auto theta = fprnn::init<double>(l, sizes, fprnn::seed{1});
    REQUIRE(theta.contains("conv"));
    CHECK(theta["conv"].shape() == fprnn::shape{4, 6});
    CHECK(theta["conv.bias"].shape() == fprnn::shape{6});
    double least = 0, most = 0;
    for (const char* name : {"conv", "conv.bias"})
        for (const double w : theta[name]) least = std::min(least, w), most = std::max(most, w);
    CHECK(least >= -0.5);
    CHECK(most <= 0.5);
    CHECK(most - least > 0.8);
    for (const auto& e : theta.entries()) CHECK(e.decay == (e.name != "conv.bias"));
    const std::string text = explain(l);
    INFO(text);
    CHECK(text.find("convolution(") != std::string::npos);
}

TEST_CASE("convolution: tokens before the first are zero, and a call goes on where another ended") {
    const fprnn::layer l(silu(convolution<"conv", 4>(in)));
    const fprnn::dims two{.d_in = 2, .d_inner = 2};
    auto theta = fprnn::init<float>(l, two, fprnn::seed{3});
    CHECK(l.carry_width(two) == 3 * 2);
    const auto x = normal<float>({37, 9, 2}, 1);
    const auto whole = l(theta, x, {}, fprnn::eigen(2));
    const auto [w, bias] = std::pair{theta["conv"], theta["conv.bias"]};
    for (index t = 0; t < 9; ++t)
        for (index d = 0; d < 2; ++d) {
            double sum = double(bias[d]);
            for (index j = 0; j < 4; ++j)
                if (t - 3 + j >= 0) sum += double(w[j * 2 + d]) * double(x[(5 * 9 + t - 3 + j) * 2 + d]);
            CHECK(double(whole.value[(5 * 9 + t) * 2 + d]) ==
                  doctest::Approx(sum / (1 + std::exp(-sum))).epsilon(1e-6));
        }
    for (const index first : {1, 2, 5}) {
        const auto a = l(theta, tokens(x, 0, first), {}, fprnn::eigen(1));
        const auto b = l(theta, tokens(x, first, 9 - first), a.carry, fprnn::eigen(1));
        CHECK(same_bits(a.value, tokens(whole.value, 0, first)));
        CHECK(same_bits(b.value, tokens(whole.value, first, 9 - first)));
        CHECK(same_bits(b.carry, whole.carry));
    }
}

}  // namespace
