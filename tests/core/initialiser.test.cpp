#include <fprnn/core/initialiser.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace {

using fprnn::index;
using fprnn::initialiser;
using fprnn::tensor;
using rule = initialiser::rule;

tensor<double> start(const initialiser& init, fprnn::shape extents, const char* name = "p", fprnn::seed s = {1}) {
    tensor<double> x(extents);
    fprnn::initialise(x.view(), init, name, s);
    return x;
}

TEST_CASE("initialiser: fan_in is uniform on ±a/√columns, whatever the number of rows") {
    for (index columns : {1, 4, 100}) {
        const auto x = start({rule::fan_in, 3, 0}, {20000 / columns, columns});
        const double bound = 3 / std::sqrt(static_cast<double>(columns));
        double largest = 0, mean = 0, squares = 0;
        for (double v : x) largest = std::max(largest, std::abs(v)), mean += v / 20000, squares += v * v / 20000;
        CHECK(largest <= bound);
        CHECK(largest >= 0.999 * bound);
        CHECK(std::abs(mean) <= 4 * bound / std::sqrt(3 * 20000.0));
        CHECK(squares == doctest::Approx(bound * bound / 3).epsilon(0.005).scale(0));
    }
}

TEST_CASE("initialiser: a start depends on rule, name and seed, and on nothing else") {
    const initialiser normal{rule::normal, 1, 0};
    const auto x = start(normal, {4, 5}), again = start(normal, {4, 5}), flat = start(normal, {20});
    for (index i = 0; i < 20; ++i) {
        CHECK(x[i] == again[i]);
        CHECK(x[i] == flat[i]);
    }
    CHECK(start(normal, {1}, "q")[0] != x[0]);
    CHECK(start(normal, {1}, "p", {2})[0] != x[0]);
}

TEST_CASE("initialiser: float starts are the double ones, rounded") {
    for (const initialiser& init : {initialiser{rule::normal, 2, 0}, initialiser{rule::uniform, -1, 4},
                                    initialiser{rule::softplus_step, 1e-3, 0.1}, initialiser{rule::log_uniform, 1, 16},
                                    initialiser{rule::log_row}}) {
        tensor<float> single({6, 3});
        fprnn::initialise(single.view(), init, "p", fprnn::seed{1});
        const auto x = start(init, {6, 3});
        for (index i = 0; i < 18; ++i) CHECK(single[i] == static_cast<float>(x[i]));
    }
}

TEST_CASE("initialiser: numbers of a tensor and of different names do not repeat") {
    std::set<double> seen;
    for (const char* name : {"a", "b", "ab", "ba", "blocks.0.Q", "blocks.1.Q"})
        for (double x : start({rule::uniform, 0, 1}, {500}, name)) seen.insert(x);
    CHECK(seen.size() == 3000);
}

TEST_CASE("initialiser: softplus_step with equal limits is that step") {
    for (double x : start({rule::softplus_step, 0.01, 0.01}, {5}))
        CHECK(std::log1p(std::exp(x)) == doctest::Approx(0.01).epsilon(1e-12));
}

TEST_CASE("initialiser: log_uniform is the logarithm of what is uniform on [a,b)") {
    double least = 99, most = 0, mean = 0;
    for (double x : start({rule::log_uniform, 1, 16}, {20000})) {
        const double u = std::exp(x);
        least = std::min(least, u), most = std::max(most, u), mean += u / 20000;
    }
    CHECK(least >= 1);
    CHECK(least <= 1.01);
    CHECK(most <= 16);
    CHECK(most >= 15.99);
    CHECK(std::abs(mean - 8.5) <= 4 * 15 / std::sqrt(12 * 20000.0));
}

TEST_CASE("initialiser: row_norm gives the lengths of the rows of the parameter before, which has to be there") {
    tensor<float> v({3, 2}), g({3}), none({0});
    const float numbers[] = {3, -4, 0, 0, 1e-30F, 0};
    std::copy_n(numbers, 6, v.data());
    const initialiser of_rows{rule::row_norm};
    const auto start_behind = [&](tensor<float>& x, fprnn::view<const float> before) {
        fprnn::initialise(x.view(), of_rows, "g", fprnn::seed{1}, before);
    };
    start_behind(g, v.view());
    CHECK(g[0] == 5);
    CHECK(g[1] == 0);
    CHECK(g[2] == 1e-30F);
    for (const fprnn::view<const float> before : {fprnn::view<const float>(), fprnn::view<const float>(g.view())})
        CHECK_THROWS_AS(start_behind(g, before), fprnn::argument_error);
    CHECK_THROWS_WITH_AS(start_behind(none, v.view()),
                         "initialise: 'g' [0] starts at the lengths of rows: expected [n] behind a parameter [n,k], "
                         "got [3,2]",
                         fprnn::argument_error);
    start_behind(none, tensor<float>({0, 2}).view());
}

TEST_CASE("initialiser: log_row gives row n of [N,D] log(n + 1), and empty parameters nothing") {
    const auto x = start({rule::log_row}, {16, 2});
    for (index i = 0; i < 32; ++i) CHECK(x[i] == std::log(static_cast<double>(i / 2 + 1)));
    CHECK(start({rule::fan_in, 1, 0}, {0, 7}).empty());
    CHECK(start({rule::fan_in, 1, 0}, {7, 0}).empty());
}

}  // namespace
