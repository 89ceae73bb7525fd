#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

namespace {

using namespace fprnn::symbols;
using fprnn::dependence;
using fprnn::index;

using lists = std::vector<std::string>;

/// "name [shape]", with a star when AdamW decays it.
template <class Root>
lists listed(Root root, const fprnn::dims& size) {
    lists text;
    const auto theta = fprnn::init<double>(fprnn::layer(root), size);
    for (const auto& p : theta.entries()) text.push_back(p.name + " " + p.shape.to_string() + (p.decay ? "*" : ""));
    std::sort(text.begin(), text.end());
    return text;
}

TEST_CASE("expression: the type of a node says when it is evaluated") {
    auto x = fprnn::linear<"x">(in);
    auto s = cat(x, shift(prev));
    static_assert(decltype(x)::depends == dependence::input);
    static_assert(decltype(shift(in))::depends == dependence::input);
    static_assert(decltype(shift(prev))::depends == dependence::shifted);
    static_assert(decltype(s)::depends == dependence::shifted);
    static_assert(decltype(fprnn::linear<"a">(s))::depends == dependence::shifted);
    static_assert(decltype(fprnn::linear<"a">(prev))::depends == dependence::current);
    static_assert(decltype(sigmoid(x) * prev)::depends == dependence::current);
    static_assert(decltype(1 - sigmoid(x))::depends == dependence::input);
    auto Q = fprnn::householder<2, "Q">(s);
    static_assert(decltype(Q * x)::depends == dependence::shifted);
    static_assert(decltype(Q * x + (I - Q) * prev)::depends == dependence::current);
    static_assert(decltype(scan(sigmoid(x), (I - Q) * prev))::depends == dependence::current);
    auto y = fixed_point(scan(sigmoid(x), (I - Q) * prev));
    static_assert(decltype(y)::depends == dependence::output);
    static_assert(decltype(shift(y))::depends == dependence::output);
    static_assert(decltype(x * y)::depends == dependence::output);
    CHECK(true);
}

TEST_CASE("expression: a constant is a factor on either side, and one Q may stand behind another") {
    const auto half = fprnn::constant<1, 2>();
    static_assert(std::same_as<decltype(sigmoid(in) * half), decltype(half * sigmoid(in))>);
    auto Q = fprnn::householder<2, "Q">(in);
    auto P = fprnn::householder<2, "P">(in);
    static_assert(fprnn::expression<decltype(Q * (P * prev))>);
    CHECK(true);
}

TEST_CASE("expression: Q v + (I - Q) w is one application, in either order") {
    auto Q = fprnn::householder<2, "Q">(in);
    auto v = fprnn::linear<"v">(in);
    using both = fprnn::mix_node<decltype(Q), decltype(v), fprnn::previous_node>;
    static_assert(std::same_as<decltype(Q * v + (I - Q) * prev), both>);
    static_assert(std::same_as<decltype((I - Q) * prev + Q * v), both>);
    static_assert(!std::same_as<decltype(Q * v + Q * prev), both>);
    CHECK(true);
}

TEST_CASE("expression: equal types are one node, so two uses of one Q share parameters and work") {
    auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    auto v = fprnn::linear<"v">(in);
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    auto twice = fixed_point(scan(lambda, (1 - lambda) * (Q * (Q * v) + (I - Q) * prev)));
    const fprnn::dims size{.d_in = 3, .d_inner = 5};
    CHECK(listed(twice, size) ==
          lists{"Q.alpha [2,8]*", "Q.alpha.bias [2]", "Q.u [10,8]*", "lambda [5,3]*", "lambda.bias [5]", "v [5,3]*"});
    fprnn::layer l(twice);
    const auto theta = fprnn::init<double>(l, size);
    const auto sol = l(theta, fprnn::testing::normal({16, 4, 3}, 1));
    CHECK(sol.work.matrix_products == 2 * 4);  // Q.u and Q.alpha, once a token
    // Q v is applied once a token, Q (Q v) once for the token's equation, Q (Q v) + (I − Q) y with every
    // evaluation.
    CHECK(sol.work.mixer_applications == sol.work.evaluations + 2 * 16 * 4);

    auto other = fprnn::householder<2, "P">(cat(in, shift(prev)));
    auto two = fixed_point(scan(lambda, (1 - lambda) * (other * (Q * v) + (I - Q) * prev)));
    CHECK(listed(two, size).size() == 9);
}

TEST_CASE("expression: one name for two nodes is refused, also when a mixer makes it") {
    const auto make = [](auto root) { return fprnn::init<float>(fprnn::layer(root), {.d_in = 4, .d_inner = 4}); };
    CHECK_THROWS_WITH_AS(make(fprnn::linear<"W">(in) * fprnn::linear<"W">(shift(in))),
                         "parameter_tree: the name 'W' is used twice", fprnn::argument_error);
    CHECK_THROWS_WITH_AS(make(fprnn::householder<2, "Q">(in) * fprnn::linear<"Q.u">(in)),
                         "parameter_tree: the name 'Q.u' is used twice", fprnn::argument_error);
    CHECK_THROWS_WITH_AS(make(fprnn::rms_norm<"n">(in) * fprnn::linear<"n.weight", fprnn::d_in>(in)),
                         "parameter_tree: the name 'n.weight' is used twice", fprnn::argument_error);
    CHECK_NOTHROW(make(fprnn::linear<"W">(in) * sigmoid(fprnn::linear<"W">(in))));
}

TEST_CASE("expression: the gates of every mixer start half closed") {
    const auto gates = [](auto mixer) {
        const auto theta = fprnn::init<float>(fprnn::layer(mixer(in) * linear<"v">(in)), {.d_in = 4, .d_inner = 4});
        const auto bias = theta["Q.gate.bias"];
        return std::vector<float>(bias.begin(), bias.end());
    };
    CHECK(gates(fprnn::kronecker) == std::vector<float>(4, 0.0f));  // 2 + 2 of 2 × 2
    CHECK(gates(fprnn::block_diagonal<2>) == std::vector<float>(2, 0.0f));
    CHECK(gates(fprnn::published_kronecker) == std::vector<float>(4, 0.0f));
    CHECK(gates(fprnn::published_kronecker_spectral) == std::vector<float>(4, 0.0f));
}

/// The same product, whole: an outer input [x, y] instead of cat(x, y).
TEST_CASE("expression: linear(cat(a, b)) is the product with a and b side by side") {
    auto a = fprnn::linear<"a">(in);
    auto b = fprnn::linear<"b", fprnn::fixed_width<3>>(shift(in));
    fprnn::layer split(fprnn::affine<"W">(cat(a, b, in)));
    const fprnn::dims size{.d_in = 4, .d_inner = 5};
    auto theta = fprnn::init<double>(split, size, fprnn::seed{1});
    fprnn::testing::shake(theta, 0.1);
    CHECK(theta["W"].shape() == fprnn::shape{5, 12});
    const auto x = fprnn::testing::normal({2, 3, 4}, 1);
    const auto y = split(theta, x);
    for (index s = 0; s < 2; ++s)
        for (index t = 0; t < 3; ++t) {
            std::vector<double> side;
            const auto append = [&](const char* name, index rows, index at) {
                for (index i = 0; i < rows; ++i) {
                    double sum = 0;
                    for (index j = 0; j < 4; ++j) sum += at < 0 ? 0.0 : theta[name](i, j) * x(s, at, j);
                    side.push_back(sum);
                }
            };
            append("a", 5, t);
            append("b", 3, t - 1);
            for (index j = 0; j < 4; ++j) side.push_back(x(s, t, j));
            for (index i = 0; i < 5; ++i) {
                double expected = theta["W.bias"][i];
                for (index j = 0; j < 12; ++j) expected += theta["W"](i, j) * side[static_cast<std::size_t>(j)];
                CHECK(y.value(s, t, i) == doctest::Approx(expected).epsilon(1e-12));
            }
        }
}

TEST_CASE("expression: a cat within a cat stands for its operands") {
    const auto s = fprnn::cat(in, shift(prev));
    const auto flat = fprnn::cat(in, shift(prev), prev);
    static_assert(std::is_same_v<decltype(fprnn::cat(s, prev)), std::remove_const_t<decltype(flat)>>);
    static_assert(std::is_same_v<decltype(fprnn::cat(in, fprnn::cat(fprnn::cat(shift(prev)), prev))),
                                 std::remove_const_t<decltype(flat)>>);
}

template <int I>
consteval auto letter() {
    return fprnn::fixed_string({'a', static_cast<char>('0' + I), '\0'});
}
TEST_CASE("expression: an elementwise sum may have more operands than a mask has bits") {
    const auto sum_of = []<int... I>(std::integer_sequence<int, I...>) {
        return (fprnn::linear<"W">(in) + ... + fprnn::parameter<letter<I>()>());
    };
    const fprnn::layer l(sum_of(std::make_integer_sequence<int, 33>()));
    auto theta = fprnn::init<double>(l, {.d_in = 2, .d_inner = 3}, fprnn::seed{1});
    for (index i = 0; i < 3; ++i) theta["W"](i, 0) = static_cast<double>(i), theta["W"](i, 1) = 2;
    const auto y = l(theta, fprnn::tensor<double>({1, 1, 2}, {3, 5})).value;
    for (index i = 0; i < 3; ++i) CHECK(y[i] == 33 + 3 * static_cast<double>(i) + 10);  // whole numbers: exact
}

/// y_t = tanh(W [x_t, y_{t−1}] + bias): the hoisted and the iterated half together are the unsplit product.
TEST_CASE("expression: linear(cat(in, shift(prev))) splits into halves that sum to the unsplit product") {
    for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
        CAPTURE(C);
        fprnn::layer l(fixed_point(tanh(fprnn::affine<"W">(cat(in, shift(prev))))),
                       fprnn::chunked{.length = C, .tolerance = 1e-14, .ell_max = 100});
        auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 4}, fprnn::seed{1});
        fprnn::testing::shake(theta, 0.3);
        const auto x = fprnn::testing::normal({2, 5, 3}, 1);
        const auto y = l(theta, x);
        CHECK(y.all_converged());
        CHECK(y.work.hoisted_products == 1);
        for (index b = 0; b < 2; ++b)
            for (index t = 0; t < 5; ++t)
                for (index i = 0; i < 4; ++i) {
                    double sum = theta["W.bias"][i];
                    for (index j = 0; j < 3; ++j) sum += theta["W"](i, j) * x(b, t, j);
                    for (index j = 0; t > 0 && j < 4; ++j) sum += theta["W"](i, 3 + j) * y.value(b, t - 1, j);
                    CHECK(y.value(b, t, i) == doctest::Approx(std::tanh(sum)).epsilon(1e-12));
                }
    }
}

TEST_CASE("expression: the parameters of FP-RNN are these") {
    CHECK(listed(fprnn::models::fp_rnn<4>(), {.d_in = 6, .d_inner = 8}) ==
          lists{"Q.alpha [4,16]*", "Q.alpha.bias [4]", "Q.u [32,16]*", "b [8,8]*", "c [8,16]*", "lambda [8,8]*",
                "lambda.bias [8]", "norm.weight [6]", "out [6,8]*", "out_norm.weight [8]", "x [8,6]*", "z [8,6]*"});
}

TEST_CASE("expression: the parameters of FP-Mamba are these, and Mamba's are those without Q") {
    const fprnn::dims size{.d_in = 6, .d_inner = 8, .d_state = 3};
    CHECK(listed(fprnn::models::fp_mamba<4>(), size) ==
          lists{"D [8]", "Q.alpha [4,16]*", "Q.alpha.bias [4]", "Q.u [32,16]*", "b [3,16]*", "c [3,16]*",
                "delta [8,8]*", "delta.bias [8]", "norm.weight [6]", "out [6,8]*", "ssm.omega [3,8]", "x [8,6]*",
                "y_norm.bias [8]", "y_norm.weight [8]", "z [8,14]*"});
    CHECK(listed(fprnn::models::mamba(), size) ==
          lists{"D [8]", "b [3,8]*", "c [3,8]*", "delta [8,8]*", "delta.bias [8]", "norm.weight [6]", "out [6,8]*",
                "ssm.omega [3,8]", "x [8,6]*", "y_norm.bias [8]", "y_norm.weight [8]", "z [8,6]*"});
}

TEST_CASE("expression: a parameter's start depends on its name, shape and seed alone") {
    const fprnn::dims size{.d_in = 6, .d_inner = 8, .d_state = 3};
    const auto bits = [](const auto& theta, const char* name) {
        const auto v = theta[name];
        return std::vector<double>(v.begin(), v.end());
    };
    const auto mamba = fprnn::init<double>(fprnn::layer(fprnn::models::mamba()), size, fprnn::seed{1});
    const auto fp_mamba = fprnn::init<double>(fprnn::layer(fprnn::models::fp_mamba<4>()), size, fprnn::seed{1});
    for (const char* name : {"x", "delta", "delta.bias", "ssm.omega", "out", "D"})
        CHECK(bits(mamba, name) == bits(fp_mamba, name));
    const auto other_seed = fprnn::init<double>(fprnn::layer(fprnn::models::mamba()), size, fprnn::seed{2});
    CHECK(bits(mamba, "x") != bits(other_seed, "x"));
    CHECK(bits(mamba, "x") != bits(mamba, "z"));  // equal shapes, other names
    CHECK(bits(mamba, "D") == std::vector<double>(8, 1.0));
}

}  // namespace
