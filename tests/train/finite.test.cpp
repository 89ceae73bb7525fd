#include <fprnn/train/finite.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

using fprnn::first_nonfinite;
using fprnn::parameter_tree;

TEST_CASE_TEMPLATE("finite: the first parameter with a NaN or an Inf is named, wherever in it the number stands", T,
                   float, double) {
    parameter_tree<T> tree;
    tree.add({"a", {2, 2}, {fprnn::initialiser::rule::normal, 1, 0}});
    tree.add({"empty", {0, 7}, {}});
    tree.add({"blocks.0.Q", {3}, {}});
    tree.add({"c", {1}, {fprnn::initialiser::rule::constant, std::numeric_limits<double>::denorm_min(), 0}});
    CHECK_FALSE(first_nonfinite(tree).has_value());
    tree["a"][0] = std::numeric_limits<T>::max();
    CHECK_FALSE(first_nonfinite(tree).has_value());

    tree["c"][0] = std::numeric_limits<T>::quiet_NaN();
    CHECK(first_nonfinite(tree) == "c");
    for (const T bad :
         {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()})
        for (const fprnn::index at : {0, 1, 2}) {
            auto spoilt = tree;
            spoilt["blocks.0.Q"][at] = bad;
            CHECK(first_nonfinite(spoilt) == "blocks.0.Q");
        }
}

TEST_CASE("finite: a tree without parameters is finite") {
    CHECK_FALSE(first_nonfinite(parameter_tree<float>{}).has_value());
}

}  // namespace
