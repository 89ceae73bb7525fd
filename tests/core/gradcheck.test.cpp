#include "locales.hpp"

#include <fprnn/core/gradcheck.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::argument_error;
using fprnn::gradcheck;
using fprnn::index;
using fprnn::tensor;

TEST_CASE("gradcheck: a right gradient passes far below 1e-7, whatever the size of its entries") {
    tensor<double> x({4}, {1e-3, 0.7, 5.0, -300.0}), g({4});
    const auto f = [&] {
        return std::sin(x[0]) * std::exp(x[1]) + 1e-3 * std::log(x[2]) * x[0] + std::cos(x[1] * x[2]) + x[3] * 1e-2;
    };
    g[0] = std::cos(x[0]) * std::exp(x[1]) + 1e-3 * std::log(x[2]);
    g[1] = std::sin(x[0]) * std::exp(x[1]) - x[2] * std::sin(x[1] * x[2]);
    g[2] = 1e-3 * x[0] / x[2] - x[1] * std::sin(x[1] * x[2]);
    g[3] = 1e-2;
    const auto before = x;
    const auto r = gradcheck(f, {{"x", x, g}});
    CHECK(r.error <= 1e-9);
    CHECK(r.entries == 4);
    for (index i = 0; i < 4; ++i) CHECK(x[i] == before[i]);
}

TEST_CASE("gradcheck: it names the entry that is wrong and both values, however small the mistake") {
    tensor<double> a({2, 2}, {1, 2, 3, 4}), b({2}, {5, 6}), a_bar({2, 2}, {2, 4, 6, 8}), b_bar({2}, {10, 12});
    const auto f = [&] {
        double sum = 0;
        for (double x : a) sum += x * x;
        for (double x : b) sum += x * x;
        return sum;
    };
    CHECK(gradcheck(f, {{"a", a, a_bar}, {"b", b, b_bar}}).error <= 1e-10);
    b_bar[1] += 1e-5;
    const auto r = gradcheck(f, {{"a", a, a_bar}, {"b", b, b_bar}});
    CHECK(r.error == doctest::Approx(1e-5 / 12.00001).epsilon(1e-10).scale(0));
    CHECK(r.name == "b");
    CHECK(r.entry == 1);
    CHECK(r.gradient == 12 + 1e-5);
    CHECK(r.difference == doctest::Approx(12).epsilon(1e-15));
    CHECK(r.entries == 6);
    CHECK(r.to_string().find("of 6 entries, worst at b[1]: gradient 12.00001, difference quotient 12") !=
          std::string::npos);
}

TEST_CASE("gradcheck: a small entry beside a large one is checked too") {
    tensor<double> x({2}, {1, 1}), g({2}, {1, 1e-3 * 1.001});
    const auto r = gradcheck([&] { return x[0] + 1e-3 * x[1]; }, {{"x", x, g}});
    CHECK(r.entry == 1);
    CHECK(r.error == doctest::Approx(1e-3 / 1.001).epsilon(5e-8).scale(0));
}

TEST_CASE("gradcheck: a missing, doubled or negated gradient is of order one") {
    for (double factor : {0.0, 2.0, -1.0}) {
        tensor<double> x({1}, {0.5}), g({1}, {factor});
        CHECK(gradcheck([&] { return x[0]; }, {{"x", x, g}}).error >= 0.5);
    }
}

TEST_CASE("gradcheck: numbers that are not finite never pass") {
    tensor<double> x({2}, {1, 1}), g({2}, {1, NAN});
    CHECK(gradcheck([&] { return x[0] + x[1]; }, {{"x", x, g}}).error == std::numeric_limits<double>::infinity());
    g[1] = 1;
    CHECK(gradcheck([&] { return x[0] + NAN; }, {{"x", x, g}}).error == std::numeric_limits<double>::infinity());
}

TEST_CASE("gradcheck: entries are put back, also when f throws") {
    tensor<double> x({2}, {1.0, 2.0}), g({2}, {1.0, 1.0});
    const auto f = [&]() -> double {
        if (x[1] != 2.0) throw argument_error("no more");
        return x[0] + x[1];
    };
    CHECK_THROWS_AS(gradcheck(f, {{"x", x, g}}), argument_error);
    CHECK(x[0] == 1.0);
    CHECK(x[1] == 2.0);
}

TEST_CASE("gradcheck: nothing to check is no pass, and shapes that do not match are named") {
    tensor<double> x({2}), g({3}), none({0, 4});
    const auto one = [] { return 1.0; };
    const char* nothing = "gradcheck: expected inputs with entries, got none";
    CHECK_THROWS_WITH_AS(gradcheck(one, {}), nothing, argument_error);
    CHECK_THROWS_WITH_AS(gradcheck(one, {{"none", none, none}}), nothing, argument_error);
    CHECK_THROWS_WITH_AS(gradcheck([] { return 1.0; }, {{"x", x, g}}), "gradcheck: x is [2] but its gradient is [3]",
                         argument_error);
}

TEST_CASE("gradcheck: the result says where it is worst, in the same text in any locale") {
    const fprnn::gradcheck_result r{
        .error = 0.25, .name = "W", .entry = 7, .gradient = 1.5, .difference = 1.0 / 3, .entries = 12345};
    const std::string expected =
        "relative error 0.25 of 12345 entries, worst at W[7]: gradient 1.5, difference quotient 0.333333333333";
    CHECK(r.to_string() == expected);
    fprnn::testing::with_decimal_commas([&] { CHECK(r.to_string() == expected); });
}

}  // namespace
