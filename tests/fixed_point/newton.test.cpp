#include "tools.hpp"

#include <fprnn/fixed_point/newton.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_mamba2.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::index;
using fprnn::linear;
using fprnn::newton;
using fprnn::sequential;
using fprnn::status;
using fprnn::tensor;

constexpr fprnn::dims sizes{.d_in = 5, .d_inner = 6, .d_state = 3};
constexpr fprnn::newton_options exactly{.tolerance = 1e-10};

const auto mamba = fprnn::layer(fprnn::models::fp_mamba<2>(), sequential({.tolerance = 1e-11, .ell_max = 1000}));

/// Parameters that are large enough for a state to be remembered.
template <class Layer>
auto parameters_of(const Layer& l) {
    auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
    for (double& x : theta) x *= 1.5;
    return theta;
}

template <class Root>
void check_as_token_by_token(Root root, int most) {
    const fprnn::layer l(root, sequential({.tolerance = 1e-11, .ell_max = 1000}));
    const auto theta = parameters_of(l);
    const auto x = normal({3, 24, 5}, 1);
    const auto expected = l(theta, x);
    const auto found = newton(l, theta, x, exactly);
    REQUIRE(expected.all_converged());
    CHECK(found.all_converged());
    CHECK(distance(found.value, expected.value) < 5e-10);
    CHECK(distance(found.carry, expected.carry) < 1e-10);
    for (std::size_t b = 0; b < 3; ++b) {
        CHECK(found.iterations[b] <= most);
        CHECK(found.residual[b] < exactly.tolerance);
        CHECK(found.tokens_converged[b] == 24);
        CHECK(found.total_iterations[b] > 24);
    }

    const auto first = newton(l, theta, tokens(x, 0, 10), exactly);
    const auto second = newton(l, theta, tokens(x, 10, 14), exactly, first.carry);
    CHECK(distance(first.value, tokens(expected.value, 0, 10)) < 5e-10);
    CHECK(distance(second.value, tokens(expected.value, 10, 14)) < 5e-9);
}

TEST_CASE("newton's solution is that of token by token, in fewer iterations than there are tokens") {
    check_as_token_by_token(fprnn::models::fp_rnn<2>(), 8);
    check_as_token_by_token(fprnn::models::fp_mamba<2>(), 10);
    check_as_token_by_token(fprnn::models::fp_mamba(fprnn::kronecker), 12);
    check_as_token_by_token(fprnn::models::lstm(), 8);
    constexpr fprnn::models::fp_mamba_options all{
        .convolution = 4, .delta_sees_y = true, .mixer_sees = fprnn::models::fp_mamba_options::seen::sum};
    check_as_token_by_token(fprnn::models::fp_mamba<all>(fprnn::householder<1>), 16);
    check_as_token_by_token(fprnn::models::fp_mamba2(fprnn::householder<1>), 10);
    // Two fixed points, a scan before them, and one that reads the state.
    auto first = fprnn::fixed_point(tanh(linear<"A">(shift(prev)) + linear<"B", fprnn::d_inner>(in)));
    auto second = fprnn::fixed_point(tanh(linear<"C">(cat(first, shift(prev)))));
    check_as_token_by_token(
        scan(sigmoid(fprnn::affine<"lambda", fprnn::d_in>(in)), in) + linear<"D", fprnn::d_in>(second), 8);
}

TEST_CASE("one step of newton solves what is linear, and another one sees it") {
    const fprnn::layer l(fprnn::fixed_point(linear<"A">(shift(prev)) + linear<"B", fprnn::d_inner>(in)));
    const auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
    const auto x = normal({2, 40, 5}, 1);
    const auto found = newton(l, theta, x, {.tolerance = 1e-9});
    CHECK(found.iterations == std::vector{2, 2});
    CHECK(distance(found.value, l(theta, x).value) < 1e-12);

    // All that is Newton's is the Jacobian: without it an iteration is one token.
    const auto plain = newton(l, theta, x, {.tolerance = 1e-15, .dense = 0});
    CHECK(plain.iterations[0] > 35);
    CHECK(distance(plain.value, found.value) < 1e-12);
}

TEST_CASE("a state that does not fit is corrected by its own factors") {
    // The state of the scan, [6,3], is not dense; what it reads of y is.
    const auto theta = parameters_of(mamba);
    const auto x = normal({2, 40, 5}, 1);
    const auto expected = mamba(theta, x);
    const auto some = newton(mamba, theta, x, {.tolerance = 1e-9, .dense = 6});
    const auto all = newton(mamba, theta, x, {.tolerance = 1e-9, .dense = 100});
    CHECK(distance(some.value, expected.value) < 5e-9);
    CHECK(distance(all.value, expected.value) < 5e-9);
    CHECK(all.iterations[0] <= some.iterations[0]);
    CHECK(some.iterations[0] < 16);
}

TEST_CASE("newton: a factor keeps its digits beside what is added to a state, however large that is") {
    const auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    const fprnn::layer l(
        fprnn::fixed_point(scan(lambda, linear<"B", fprnn::d_inner>(in)) + fprnn::constant<1, 10>() * prev),
        sequential({.tolerance = 1e-14, .ell_max = 1000}));
    for (const double size : {1.0, 1e14}) {
        CAPTURE(size);
        auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
        for (double& b : theta["B"]) b *= size;
        const auto x = normal({2, 40, 5}, 1);
        const auto found = newton(l, theta, x, {.tolerance = 1e-9, .dense = 0});
        CHECK(found.iterations == std::vector{2, 2});
        CHECK(distance(found.value, l(theta, x).value) < 1e-10 * size);
    }
}

TEST_CASE("newton: a sequence is solved as if it were alone") {
    const auto theta = parameters_of(mamba);
    const auto x = normal({3, 20, 5}, 1);
    const auto all = newton(mamba, theta, x, exactly);
    for (index b = 0; b < 3; ++b) {
        const auto one = newton(mamba, theta, sequences(x, b, 1), exactly);
        CHECK(same_bits(one.value, sequences(all.value, b, 1)));
        CHECK(one.iterations[0] == all.iterations[static_cast<std::size_t>(b)]);
    }
}

TEST_CASE("newton: not converging is data") {
    const auto theta = parameters_of(mamba);
    auto x = normal({2, 20, 5}, 1);
    const auto first = newton(mamba, theta, x, {.tolerance = 1e-10, .ell_max = 1});
    CHECK(first.status == std::vector{status::max_iterations, status::max_iterations});
    CHECK(first.iterations == std::vector{1, 1});
    CHECK(first.tokens_converged[0] < 20);
    CHECK(first.residual[0] > 0.99);
    CHECK(std::isfinite(largest(first.value)));

    x(1, 7, 2) = std::numeric_limits<double>::quiet_NaN();
    const auto poisoned = newton(mamba, theta, x, exactly);
    CHECK(poisoned.status == std::vector{status::converged, status::nonfinite});
    CHECK(same_bits(sequences(poisoned.value, 0, 1), newton(mamba, theta, sequences(x, 0, 1), exactly).value));
    CHECK(poisoned.tokens_converged[1] == 7);
    CHECK(distance(tokens(sequences(poisoned.value, 1, 1), 0, 7),
                   tokens(mamba(theta, sequences(x, 1, 1)).value, 0, 7)) < 5e-10);
    for (index t = 7; t < 20; ++t) CHECK(std::isnan(poisoned.value(1, t, 0)));
}

/// All that a solution says of its sequences but iterations.
template <class T>
void check_says_the_same(const fprnn::solution<T>& found, const fprnn::solution<T>& expected) {
    CHECK(found.status == expected.status);
    CHECK(found.tokens_converged == expected.tokens_converged);
    CHECK(same_bits(found.value, expected.value));
    CHECK(same_bits(found.carry, expected.carry));
}

TEST_CASE("newton: what is not finite at a state that is no solution's is forgotten") {
    // Overflows while the state before token 1 is still 0: y_1 = e^{800 − 800 y_0} v + c.
    const fprnn::layer l(fprnn::fixed_point(
        exp(linear<"a">(in) - linear<"b">(shift(prev))) * linear<"v">(in) + linear<"c">(in), sequential()));
    auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 1});
    for (const auto& [name, w] :
         {std::pair("a", std::vector{1.0, 0.0, 0.0}), std::pair("b", std::vector{800.0}),
          std::pair("v", std::vector{0.0, 1.0, 0.0}), std::pair("c", std::vector{0.0, 0.0, 1.0})})
        std::copy(w.begin(), w.end(), theta[name].begin());
    tensor<double> x({2, 5, 3});
    for (index b = 0; b < 2; ++b)
        for (index t = 0; t < 5; ++t) x(b, t, 2) = 1;
    for (index b = 0; b < 2; ++b) x(b, 1, 0) = 800;
    x(0, 1, 1) = 1, x(0, 1, 2) = 0;
    const auto expected = l(theta, x);
    REQUIRE(expected.all_converged());
    for (const index dense : {0, 256})
        check_says_the_same(newton(l, theta, x, {.tolerance = 1e-8, .dense = dense}), expected);
}

TEST_CASE("newton: a state outside of the fixed point may overflow") {
    const auto y = fprnn::fixed_point(fprnn::constant<1, 2>() * prev + linear<"c", fprnn::d_inner>(in));
    const fprnn::layer l(scan(fprnn::constant<1>() * fprnn::parameter<"l">(), linear<"o">(in)) + y, sequential());
    auto theta = fprnn::init<float>(l, {.d_in = 1, .d_inner = 2});
    theta["l"][0] = 1000, theta["l"][1] = 0;
    tensor<float> x({1, 20, 1});
    std::fill(x.begin(), x.end(), 1.f);
    const auto expected = l(theta, x), found = newton(l, theta, x, {.tolerance = 1e-3});
    REQUIRE(std::isinf(expected.value(0, 19, 0)));
    REQUIRE(std::isfinite(expected.value(0, 19, 1)));
    CHECK(found.iterations[0] < 20);
    check_says_the_same(found, expected);
}

TEST_CASE("newton: tokens that do not converge are counted as the layer counts them, with its limit") {
    const tensor<double> x({2, 3, 1}, {1, 1, 1, 2, -1, 1});
    const auto check = [&](const auto& l) {
        const auto theta = fprnn::init<double>(l, {.d_in = 1, .d_inner = 1});
        const auto expected = l(theta, x);
        const auto found = newton(l, theta, x, {.tolerance = 1e-5});  // F's own is a tenth, as the layer's
        check_says_the_same(found, expected);
        CHECK(found.residual == expected.residual);
        return expected.status[0];
    };
    CHECK(check(fprnn::fixed_point(fprnn::constant<2>() * prev + linear<"c">(in), sequential({.tolerance = 1e-6}))) ==
          status::diverged);
    // Contracts by 0.95: 100 iterations, the schedule's limit, do not suffice.
    const auto slow =
        fprnn::constant<95, 100>() * prev + linear<"c">(in) + fprnn::constant<1, 100>() * tanh(shift(prev));
    CHECK(check(fprnn::fixed_point(
              slow, {.schedule = {.length = 1}, .stop = fprnn::residual{1e-6} || fprnn::iterations{5000}})) ==
          status::converged);
}

TEST_CASE("newton: bad input") {
    const auto theta = parameters_of(mamba);
    const auto x = normal({2, 4, 5}, 1);
    const auto refuses = [&](const char* what, const auto& call) {
        CHECK_THROWS_WITH_AS(call(), what, fprnn::argument_error);
    };
    refuses("newton: x must be [B,T,5], got [2,5,4]", [&] { newton(mamba, theta, normal({2, 5, 4}, 1)); });
    refuses("newton: x must be [B,T,5], got [2,5]", [&] { newton(mamba, theta, normal({2, 5}, 1)); });
    refuses("newton: carry must be [2,30], got [1,30]", [&] { newton(mamba, theta, x, {}, normal({1, 30}, 2)); });
    refuses("newton: tolerance must be positive and finite, got 0", [&] { newton(mamba, theta, x, {.tolerance = 0}); });
    refuses("newton: ell_max must be at least 1, got 0", [&] { newton(mamba, theta, x, {.ell_max = 0}); });
    refuses("newton: dense must be at least 0, got -1", [&] { newton(mamba, theta, x, {.dense = -1}); });

    CHECK(newton(mamba, theta, tensor<double>({0, 4, 5})).value.shape() == fprnn::shape{0, 4, 5});
    const auto carry = normal({2, mamba.carry_width(sizes)}, 2);
    const auto none = newton(mamba, theta, tensor<double>({2, 0, 5}), {}, carry);
    CHECK(none.value.shape() == fprnn::shape{2, 0, 5});
    CHECK(same_bits(none.carry, carry));
    CHECK(none.all_converged());
}

}  // namespace
