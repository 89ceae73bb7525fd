#include <fprnn/tape/gradcheck.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::argument_error;
using fprnn::gradcheck;
using fprnn::parameter_tree;

TEST_CASE("gradcheck: parameters are checked by name") {
    parameter_tree<double> theta;
    theta.add({"W", {2, 2}, {fprnn::initialiser::rule::constant, 0.5, 0}});
    theta.add({"b", {2}, {fprnn::initialiser::rule::constant, 2, 0}});
    auto gradient = theta.zeros_like();
    for (double& x : gradient["W"]) x = 2 * 0.5 * 4;
    for (double& x : gradient["b"]) x = 2 * 0.25;
    const auto f = [](const parameter_tree<double>& t) {
        double w = 0, b = 0;
        for (double x : t["W"]) w += x * x;
        for (double x : t["b"]) b += x;
        return w * b;
    };
    const auto expected = gradient;
    CHECK(gradcheck(f, theta, expected).error > 0.1);  // ∂/∂b is Σ W² = 1, not 1/2
    for (double& x : gradient["b"]) x = 1;
    const auto r = gradcheck(f, theta, gradient);
    CHECK(r.error <= 1e-10);
    CHECK(r.entries == 6);
    gradient["b"][1] = 1.1;
    CHECK(gradcheck(f, theta, gradient).name == "b");
    auto more = gradient;
    more.add({"c", {2}, {fprnn::initialiser::rule::constant, 0, 0}});
    CHECK_THROWS_WITH_AS(gradcheck(f, theta, more), "gradcheck: gradient must be of the 6 parameters, got 8 numbers",
                         argument_error);
    parameter_tree<double> other;
    CHECK_THROWS_WITH_AS(gradcheck(f, theta, other), "parameter_tree: no parameter 'W'; there are: ", argument_error);
}

}  // namespace
