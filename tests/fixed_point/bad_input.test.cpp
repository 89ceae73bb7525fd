#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/transformer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

namespace {

using namespace fprnn::testing;
using fprnn::argument_error;
using fprnn::chunked;
using fprnn::implicit;
using fprnn::index;
using fprnn::tensor;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

auto rnn() {
    using namespace fprnn::symbols;
    auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * prev)));
}

TEST_CASE("chunked: a length, tolerance or ell_max that means nothing is refused when the layer is made") {
    const auto make = [](chunked s) { return fprnn::layer(rnn(), s); };
    CHECK_THROWS_WITH_AS(make({.length = 0}), "chunked: length must be at least 1, got 0", argument_error);
    CHECK_THROWS_WITH_AS(make({.length = -3}), "chunked: length must be at least 1, got -3", argument_error);
    CHECK_THROWS_WITH_AS(make({.tolerance = 0}), "chunked: tolerance must be positive and finite, got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.tolerance = -0.5}), "chunked: tolerance must be positive and finite, got -0.5",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.tolerance = nan}), "chunked: tolerance must be positive and finite, got nan",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.tolerance = infinity}), "chunked: tolerance must be positive and finite, got inf",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.ell_max = 0}), "chunked: ell_max must be at least 1, got 0", argument_error);
    CHECK_THROWS_AS(make(fprnn::parallel({.ell_max = -1})), argument_error);
    CHECK_NOTHROW(make({.length = fprnn::whole_sequence, .tolerance = 1e-300, .ell_max = 1}));
}

TEST_CASE("implicit: a tolerance or ell_max that means nothing is refused when the layer is made") {
    const auto make = [](implicit a) { return fprnn::layer(rnn(), {}, a); };
    CHECK_THROWS_WITH_AS(make({.tolerance = 0}), "implicit: tolerance must be positive and finite, got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.tolerance = nan}), "implicit: tolerance must be positive and finite, got nan",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.ell_max = 0}), "implicit: ell_max must be at least 1, got 0", argument_error);
}

TEST_CASE("layer: x and carry of the wrong shape are refused with the shape that was expected") {
    fprnn::layer l(rnn());
    const auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 5});
    CHECK_THROWS_WITH_AS(l(theta, normal({2, 4, 4}, 1)), "layer: x must be [B,T,3], got [2,4,4]", argument_error);
    CHECK_THROWS_WITH_AS(l(theta, normal({2, 3}, 1)), "layer: x must be [B,T,3], got [2,3]", argument_error);
    CHECK_THROWS_WITH_AS(l(theta, tensor<double>()), "layer: x must be [B,T,3], got [0]", argument_error);
    const auto x = normal({2, 4, 3}, 1);
    CHECK(l.carry_width(theta.widths) == 10);  // h and y
    CHECK_THROWS_WITH_AS(l(theta, x, normal({2, 9}, 1)), "layer: carry must be [2,10], got [2,9]", argument_error);
    CHECK_THROWS_WITH_AS(l(theta, x, normal({3, 10}, 1)), "layer: carry must be [2,10], got [3,10]", argument_error);
    CHECK_THROWS_WITH_AS(l(theta, x, normal({2, 5, 2}, 1)), "layer: carry must be [2,10], got [2,5,2]", argument_error);
    CHECK_NOTHROW(l(theta, x, normal({2, 10}, 1)));
}

TEST_CASE("layer: x and the carry may be tensors or views, of const numbers or not") {
    const fprnn::layer l(rnn());
    const auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 5});
    auto x = normal({2, 4, 3}, 1);
    const auto whole = l(theta, x);
    auto carry = whole.carry;
    const auto expected = l(theta, x, carry);
    const fprnn::view<const double> x_const = x, carry_const = carry;
    for (const auto& next :
         {l(theta, x.view(), carry), l(theta, x.view(), carry.view()), l(theta, x_const, carry_const),
          l(theta, x, carry.view()), l(theta, x, carry_const), l(theta, x_const, carry)})
        CHECK(std::equal(next.value.begin(), next.value.end(), expected.value.begin()));
    CHECK(l(theta, x.view()).value[7] == whole.value[7]);
}

TEST_CASE("layer: parameters of another layer, and options changed to nonsense, are refused") {
    fprnn::layer l(rnn());
    const fprnn::layer other(fprnn::models::fp_mamba<2>());
    const auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 5});
    const auto x = normal({2, 4, 3}, 1);
    CHECK_THROWS_AS(other(theta, x), argument_error);
    auto wrong = theta;
    wrong.widths.d_inner = 6;
    try {
        l(wrong, x);
        FAIL("parameters of other widths were taken");
    } catch (const argument_error& e) {
        CHECK(std::string(e.what()).find("layer: parameter '") == 0);
        CHECK(std::string(e.what()).find("must be [") != std::string::npos);
    }
    using namespace fprnn::symbols;
    const fprnn::layer one(fprnn::linear<"W">(in));
    const fprnn::layer two(fprnn::linear<"V">(fprnn::linear<"W">(in)));
    const fprnn::dims size{.d_in = 3, .d_inner = 3};
    CHECK_THROWS_WITH_AS(one(fprnn::init<double>(two, size), x),
                         "layer: the parameters must be this layer's own, 9 numbers, got 18", argument_error);
    l.schedule.length = 0;
    CHECK_THROWS_WITH_AS(l(theta, x), "chunked: length must be at least 1, got 0", argument_error);
    l.schedule = {};
    l.adjoint = implicit{.tolerance = 0};
    CHECK_THROWS_WITH_AS(l(theta, x), "implicit: tolerance must be positive and finite, got 0", argument_error);
}

TEST_CASE("layer: no sequences or no tokens give values of that shape, no gradient, and the carry as it came") {
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence}) {
        fprnn::layer l(fprnn::models::fp_mamba<2>(), chunked{.length = C});
        const auto theta = fprnn::init<double>(l, {.d_in = 4, .d_inner = 5, .d_state = 3});
        const auto none = differentiate(l, theta, tensor<double>({0, 6, 4}), tensor<double>({0, 6, 4}));
        CHECK(none.sol.value.shape() == fprnn::shape{0, 6, 4});
        CHECK(none.sol.status.empty());
        CHECK(none.sol.all_converged());
        const auto instant = differentiate(l, theta, tensor<double>({3, 0, 4}), tensor<double>({3, 0, 4}));
        CHECK(instant.sol.value.shape() == fprnn::shape{3, 0, 4});
        CHECK(instant.sol.status.size() == 3);
        CHECK(instant.sol.iterations == std::vector<int>(3, 0));
        CHECK(largest(instant.sol.carry) == 0);
        CHECK(largest(instant.theta_bar) == 0);
        const auto before = l(theta, normal({3, 2, 4}, 1)).carry;
        CHECK(same_bits(l(theta, tensor<double>({3, 0, 4}), before).carry, before));
    }
}

TEST_CASE("layer: one token, one sequence and odd widths are as good as any") {
    for (const index D : {1, 3, 7})
        for (const index T : {1, 2, 3})
            for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
                CAPTURE(D);
                CAPTURE(T);
                CAPTURE(C);
                fprnn::layer l(fprnn::models::fp_rnn<1>(), chunked{.length = C, .tolerance = 1e-12, .ell_max = 2000},
                               implicit{.tolerance = 1e-12, .ell_max = 2000});
                const auto theta = fprnn::init<double>(l, {.d_in = D, .d_inner = D});
                const auto x = normal({1, T, D}, 1), y_bar = normal({1, T, D}, 2);
                const auto fast = differentiate(l, theta, x, y_bar);
                const auto plain = differentiate(l, theta, x, y_bar, fprnn::reference{});
                CHECK(fast.sol.all_converged());
                CHECK(distance(fast.sol.value, plain.sol.value) <= 1e-10 * largest(plain.sol.value));
                CHECK(compare(fast, plain).worst <= 1e-8);
            }
}

TEST_CASE("init: a mixer's maps must have the widths that it needs") {
    using namespace fprnn::symbols;
    const auto u = fprnn::linear<"u">(in);
    const auto alpha = fprnn::affine<"alpha", fprnn::fixed_width<2>>(in);
    const fprnn::mixer_node<fprnn::householder_mixer<2>, std::remove_const_t<decltype(u)>,
                            std::remove_const_t<decltype(alpha)>>
        Q;
    fprnn::layer l(fprnn::fixed_point(scan(sigmoid(fprnn::linear<"l">(in)), (I - Q) * prev)), chunked{});
    CHECK_THROWS_WITH_AS(fprnn::init<double>(l, {.d_in = 3, .d_inner = 5}), "mixer: map 0 must have width 10, got 5",
                         argument_error);
}

TEST_CASE("layer: its widths are those of sizes that are some") {
    const fprnn::layer l(fprnn::models::transformer());
    CHECK_THROWS_WITH_AS(l.carry_width({.d_in = 8, .d_inner = 8, .heads = 0}), doctest::Contains("heads"),
                         argument_error);
    CHECK_THROWS_WITH_AS(l.output_width({.d_in = 0, .d_inner = 8}), doctest::Contains("d_in"), argument_error);
}

TEST_CASE("init: widths below one are refused by name") {
    fprnn::layer l(rnn());
    const auto make = [&](fprnn::dims size) { return fprnn::init<double>(l, size); };
    CHECK_THROWS_WITH_AS(make({.d_in = 0, .d_inner = 5}), "init: d_in must be at least 1, got 0", argument_error);
    CHECK_THROWS_WITH_AS(make({.d_in = 3, .d_inner = 0}), "init: d_inner must be at least 1, got 0", argument_error);
    CHECK_THROWS_WITH_AS(make({.d_in = -3, .d_inner = 5}), "init: d_in must be at least 1, got -3", argument_error);
    CHECK_THROWS_WITH_AS(make({.d_in = 3, .d_inner = 5, .d_state = 0}), "init: d_state must be at least 1, got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(make({.d_in = 3, .d_inner = 5, .d_out = 0}), "init: d_out must be at least 1, got 0",
                         argument_error);
}

TEST_CASE("householder: more reflections than channels are refused when parameters are made") {
    fprnn::layer l(fprnn::models::fp_rnn<8>());
    CHECK_THROWS_WITH_AS(fprnn::init<double>(l, {.d_in = 4, .d_inner = 5}),
                         "householder: R = 8 reflections need d_inner >= 8, got 5", argument_error);
    CHECK_NOTHROW(fprnn::init<double>(l, {.d_in = 4, .d_inner = 8}));
}

TEST_CASE("init: two nodes of one name are refused") {
    using namespace fprnn::symbols;
    fprnn::layer l(fprnn::linear<"W">(in) + fprnn::affine<"W">(in));
    CHECK_THROWS_WITH_AS(fprnn::init<double>(l, {.d_in = 3, .d_inner = 5}),
                         "parameter_tree: the name 'W' is used twice", argument_error);
}

}  // namespace
