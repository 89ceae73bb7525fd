#include <fprnn/train/clip.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace {

using fprnn::clip_by_global_norm;
using fprnn::global_norm;
using fprnn::index;
using fprnn::parameter_tree;

template <class T>
parameter_tree<T> tree(T a, T b, T c) {
    parameter_tree<T> t;
    t.add({"first", {2}, {}});
    t.add({"second", {1}, {}});
    t["first"][0] = a;
    t["first"][1] = b;
    t["second"][0] = c;
    return t;
}

TEST_CASE_TEMPLATE("clip: the global norm runs over all parameters", T, float, double) {
    CHECK(global_norm(tree<T>(2, -3, 6)) == 7);
    CHECK(global_norm(tree<T>(0, 0, 0)) == 0);
    CHECK(global_norm(parameter_tree<T>{}) == 0);
}

TEST_CASE("clip: the norm of many floats is summed in double") {
    parameter_tree<float> many;
    const index n = 1 << 20;
    many.add({"many", {n}, {fprnn::initialiser::rule::constant, 1e-3, 0}});
    const double exact = std::sqrt(static_cast<double>(n)) * static_cast<double>(1e-3f);
    CHECK(global_norm(many) == doctest::Approx(exact).epsilon(1e-10));
    many.begin()[0] = 1e30f;  // its square is beyond float
    CHECK(global_norm(many) == doctest::Approx(static_cast<double>(1e30f)).epsilon(1e-12));
}

TEST_CASE_TEMPLATE("clip: a longer gradient keeps its direction, gets the norm asked for, and its old norm is returned",
                   T, float, double) {
    auto g = tree<T>(2, -3, 6);
    CHECK(clip_by_global_norm(g, 3.5) == 7);
    CHECK(g["first"][0] == T(1));
    CHECK(g["first"][1] == T(-1.5));
    CHECK(g["second"][0] == T(3));
    CHECK(global_norm(g) == 3.5);
}

TEST_CASE("clip: a gradient that is not longer is left to the bit") {
    for (const double limit : {7.0, 8.0, std::numeric_limits<double>::infinity()}) {
        auto g = tree<float>(2, -3, 6);
        CHECK(clip_by_global_norm(g, limit) == 7);
        CHECK(g["first"][0] == 2);
        CHECK(g["first"][1] == -3);
        CHECK(g["second"][0] == 6);
    }
}

TEST_CASE("clip: a gradient with NaN or Inf is reported by the norm and left as it is") {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    auto g = tree<float>(1, nan, 100);
    CHECK(std::isnan(clip_by_global_norm(g, 1)));
    CHECK(g["first"][0] == 1);
    CHECK(g["second"][0] == 100);
    g = tree<float>(1, 2, -inf);
    CHECK(std::isinf(clip_by_global_norm(g, 1)));
    CHECK(g["first"][1] == 2);
    CHECK(g["second"][0] == -inf);
}

TEST_CASE("clip: a limit that is not positive is refused") {
    auto g = tree<float>(2, -3, 6);
    CHECK_THROWS_WITH_AS(clip_by_global_norm(g, 0), "clip_by_global_norm: max_norm must be positive, got 0",
                         fprnn::argument_error);
    CHECK_THROWS_AS(clip_by_global_norm(g, -1), fprnn::argument_error);
    CHECK_THROWS_AS(clip_by_global_norm(g, std::numeric_limits<double>::quiet_NaN()), fprnn::argument_error);
}

}  // namespace
