#include <fprnn/train/adamw.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using fprnn::adamw;
using fprnn::argument_error;
using fprnn::index;
using fprnn::initialiser;
using fprnn::parameter_tree;

constexpr initialiser normal{initialiser::rule::normal, 1.0, 0.0};

template <class T>
parameter_tree<T> two_parameters(fprnn::seed s = {1}) {
    parameter_tree<T> tree;
    tree.add({"weight", {3, 4}, normal, true}, s);
    tree.add({"bias", {4}, normal, false}, s);
    return tree;
}

const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

TEST_CASE_TEMPLATE("adamw: five steps are those of the published algorithm, computed one number at a time", T, float,
                   double) {
    const fprnn::adamw_options o{
        .learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.3};
    auto theta = two_parameters<T>();
    adamw<T> optimizer(theta, o);
    const auto size = static_cast<std::size_t>(theta.size());
    std::vector<double> x(theta.begin(), theta.end()), m(size), v(size);
    for (int k = 1; k <= 5; ++k) {
        const auto gradient = two_parameters<T>({100u + static_cast<unsigned>(k)});
        const double rate = 0.02 * k;
        optimizer.step(theta, gradient, rate);
        for (std::size_t i = 0; i < size; ++i) {
            const auto g = static_cast<double>(gradient.data()[i]);
            m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
            v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
            const double m_hat = m[i] / (1 - std::pow(o.beta1, k)), v_hat = v[i] / (1 - std::pow(o.beta2, k));
            const double w = i < 12 ? o.weight_decay : 0;
            x[i] = x[i] - rate * w * x[i] - rate * m_hat / (std::sqrt(v_hat) + o.epsilon);
            CHECK(static_cast<double>(theta.data()[i]) ==
                  doctest::Approx(x[i]).epsilon(64 * static_cast<double>(std::numeric_limits<T>::epsilon())));
        }
    }
    CHECK(optimizer.steps() == 5);
}

TEST_CASE("adamw: the first step moves every parameter by the learning rate against its gradient's sign") {
    auto theta = two_parameters<double>();
    const auto before = theta;
    auto gradient = two_parameters<double>({2});
    for (index i = 0; i < gradient.size(); ++i) gradient.data()[i] = (i % 2 ? -1.0 : 1.0) * std::pow(10.0, i % 5 - 2);
    adamw<double>(theta, {.weight_decay = 0}).step(theta, gradient, 0.01);
    for (index i = 0; i < theta.size(); ++i)
        CHECK(theta.data()[i] - before.data()[i] == doctest::Approx(i % 2 ? 0.01 : -0.01).epsilon(1e-5).scale(0));
}

TEST_CASE("adamw: without a gradient only the entries marked for decay shrink, by 1 - rate times decay") {
    auto theta = two_parameters<double>();
    const auto before = theta;
    adamw<double> optimizer(theta, {.weight_decay = 0.5});
    const auto zero = theta.zeros_like();
    for (int k = 0; k < 3; ++k) optimizer.step(theta, zero, 0.1);
    for (index i = 0; i < 12; ++i)
        CHECK(theta["weight"][i] == doctest::Approx(before["weight"][i] * 0.95 * 0.95 * 0.95).epsilon(1e-14));
    for (index i = 0; i < 4; ++i) CHECK(theta["bias"][i] == before["bias"][i]);
}

TEST_CASE("adamw: the decay does not pass through the moments, so it does not change the gradient's part") {
    auto plain = two_parameters<double>(), decayed = plain;
    const auto before = plain, gradient = two_parameters<double>({9});
    adamw<double>(plain, {.weight_decay = 0}).step(plain, gradient, 0.1);
    adamw<double>(decayed, {.weight_decay = 0.5}).step(decayed, gradient, 0.1);
    for (index i = 0; i < 12; ++i)
        CHECK(plain["weight"][i] - decayed["weight"][i] ==
              doctest::Approx(0.05 * before["weight"][i]).epsilon(1e-12).scale(0));
    for (index i = 0; i < 4; ++i) CHECK(plain["bias"][i] == decayed["bias"][i]);
}

TEST_CASE("adamw: a quadratic is brought to its minimum") {
    auto theta = two_parameters<float>();
    adamw<float> optimizer(theta, {.weight_decay = 0});
    auto gradient = theta.zeros_like();
    for (int k = 0; k < 2000; ++k) {
        for (index i = 0; i < theta.size(); ++i)
            gradient.data()[i] = static_cast<float>(i + 1) * (theta.data()[i] - 3.0f);
        optimizer.step(theta, gradient, 0.05 * (1 - k / 2000.0));
    }
    for (float x : theta) CHECK(x == doctest::Approx(3.0).epsilon(1e-3));
}

TEST_CASE("adamw: the step without a learning rate takes the options' own") {
    auto a = two_parameters<double>(), b = a;
    const auto gradient = two_parameters<double>({4});
    adamw<double>(a, {.learning_rate = 0.07}).step(a, gradient);
    adamw<double>(b).step(b, gradient, 0.07);
    for (index i = 0; i < a.size(); ++i) CHECK(a.data()[i] == b.data()[i]);
}

TEST_CASE("adamw: an optimiser that becomes another one goes on with its bits, and keeps its own options") {
    auto a = two_parameters<float>();
    adamw<float> one(a);
    for (unsigned k = 0; k < 3; ++k) one.step(a, two_parameters<float>({k}));
    auto b = a, c = a;
    adamw<float> other(b), faster(c, {.learning_rate = 0.5});
    other.restore(one.steps(), one.first_moment(), one.second_moment());
    faster.restore(one.steps(), one.first_moment(), one.second_moment());
    for (unsigned k = 3; k < 5; ++k) {
        one.step(a, two_parameters<float>({k}));
        other.step(b, two_parameters<float>({k}));
        faster.step(c, two_parameters<float>({k}));
    }
    CHECK(std::equal(a.begin(), a.end(), b.begin()));
    CHECK(other.steps() == 5);
    CHECK(faster.options().learning_rate == 0.5);
    CHECK_FALSE(std::equal(a.begin(), a.end(), c.begin()));

    parameter_tree<float> narrow;
    narrow.add({"weight", {3, 4}, normal});
    const auto before = other.first_moment();
    CHECK_THROWS_WITH_AS(other.restore(9, one.second_moment(), narrow),
                         "adamw: second_moment has 1 parameters, expected 2", argument_error);
    CHECK_THROWS_WITH_AS(other.restore(-1, one.second_moment(), one.second_moment()),
                         "adamw: steps must be at least 0, got -1", argument_error);
    CHECK(other.steps() == 5);
    CHECK(std::equal(before.begin(), before.end(), other.first_moment().begin()));
}

TEST_CASE("adamw: parameters that never had a gradient stay finite") {
    auto theta = two_parameters<float>();
    const auto before = theta;
    adamw<float> optimizer(theta, {.weight_decay = 0});
    optimizer.step(theta, theta.zeros_like(), 1.0);
    for (index i = 0; i < theta.size(); ++i) CHECK(theta.data()[i] == before.data()[i]);
    CHECK_THROWS_AS(adamw<float>(theta, {.epsilon = 1e-60}), argument_error);
    CHECK_THROWS_AS(adamw<float>(theta, {.epsilon = 1e39}), argument_error);
    CHECK_NOTHROW(adamw<double>(two_parameters<double>(), {.epsilon = 1e-60}));
}

TEST_CASE("adamw: a learning rate that is not a positive number is refused and changes nothing") {
    auto theta = two_parameters<double>();
    const auto before = theta;
    adamw<double> optimizer(theta);
    for (const double rate : {0.0, -1e-3, not_a_number, infinity}) {
        CHECK_THROWS_WITH_AS(
            optimizer.step(theta, before, rate),
            ("adamw: learning_rate must be positive and finite, got " + fprnn::detail::number_text(rate)).c_str(),
            argument_error);
        CHECK_THROWS_AS(adamw<double>(theta, {.learning_rate = rate}), argument_error);
    }
    for (index i = 0; i < theta.size(); ++i) CHECK(theta.data()[i] == before.data()[i]);
    CHECK(optimizer.steps() == 0);
}

TEST_CASE("adamw: options out of their range are refused by name") {
    const auto theta = two_parameters<double>();
    CHECK_THROWS_WITH_AS(adamw<double>(theta, {.beta1 = 1.0}), "adamw: beta1 must be in [0,1), got 1", argument_error);
    CHECK_THROWS_WITH_AS(adamw<double>(theta, {.beta2 = -0.5}), "adamw: beta2 must be in [0,1), got -0.5",
                         argument_error);
    for (const double bad : {not_a_number, infinity, -1.0}) {
        CHECK_THROWS_AS(adamw<double>(theta, {.beta1 = bad}), argument_error);
        CHECK_THROWS_AS(adamw<double>(theta, {.beta2 = bad}), argument_error);
        CHECK_THROWS_AS(adamw<double>(theta, {.epsilon = bad}), argument_error);
        CHECK_THROWS_AS(adamw<double>(theta, {.weight_decay = bad}), argument_error);
    }
    CHECK_THROWS_AS(adamw<double>(theta, {.epsilon = 0.0}), argument_error);
    CHECK_NOTHROW(adamw<double>(theta, {.beta1 = 0.0, .beta2 = 0.0, .weight_decay = 0.0}));
}

TEST_CASE("adamw: a tree of another layout is refused with the parameter that differs") {
    auto theta = two_parameters<double>();
    adamw<double> optimizer(theta);

    parameter_tree<double> fewer;
    fewer.add({"weight", {3, 4}, normal});
    CHECK_THROWS_WITH_AS(optimizer.step(theta, fewer, 0.1), "adamw: gradient has 1 parameters, expected 2",
                         argument_error);

    parameter_tree<double> transposed;
    transposed.add({"weight", {4, 3}, normal});
    transposed.add({"bias", {4}, normal});
    CHECK_THROWS_WITH_AS(optimizer.step(theta, transposed, 0.1),
                         "adamw: gradient's parameter 0 is weight [4,3], expected weight [3,4]", argument_error);
    CHECK_THROWS_WITH_AS(optimizer.step(transposed, theta, 0.1),
                         "adamw: theta's parameter 0 is weight [4,3], expected weight [3,4]", argument_error);

    parameter_tree<double> renamed;
    renamed.add({"weight", {3, 4}, normal});
    renamed.add({"offset", {4}, normal});
    CHECK_THROWS_WITH_AS(optimizer.step(theta, renamed, 0.1),
                         "adamw: gradient's parameter 1 is offset [4], expected bias [4]", argument_error);
    CHECK(optimizer.steps() == 0);
}

}  // namespace
