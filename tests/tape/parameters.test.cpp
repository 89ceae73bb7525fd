#include <fprnn/tape/parameters.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::index;
using fprnn::initialiser;
using fprnn::parameter_tree;
using rule = fprnn::initialiser::rule;

parameter_tree<float> example(fprnn::seed s = {}) {
    parameter_tree<float> tree;
    tree.add({"blocks.0.Q", {3, 4}, {rule::normal, 1, 0}}, s);
    tree.add({"blocks.0.bias", {4}, {rule::constant, 0.5, 0}, false}, s);
    tree.add({"head", {2, 4}, {rule::fan_in, 1, 0}}, s);
    return tree;
}

std::vector<double> start(const initialiser& init, fprnn::shape extents) {
    parameter_tree<double> tree;
    tree.add({"p", extents, init}, {1});
    return {tree.begin(), tree.end()};
}

double mean(const std::vector<double>& x) {
    double sum = 0;
    for (double v : x) sum += v;
    return sum / static_cast<double>(x.size());
}

TEST_CASE("parameters: entries lie one after the other in the order in which they were added") {
    const auto tree = example();
    REQUIRE(tree.entries().size() == 3);
    CHECK(tree.size() == 24);
    CHECK(tree.end() - tree.begin() == 24);
    CHECK(tree.entries()[0].name == "blocks.0.Q");
    CHECK(tree.entries()[0].offset == 0);
    CHECK(tree.entries()[1].offset == 12);
    CHECK(tree.entries()[2].offset == 16);
    CHECK(tree.entries()[2].shape == fprnn::shape{2, 4});
    CHECK(tree.entries()[0].decay);
    CHECK_FALSE(tree.entries()[1].decay);
}

TEST_CASE("parameters: a name gives a view into the flat array") {
    auto tree = example();
    tree["blocks.0.bias"][3] = 7;
    CHECK(tree.data()[15] == 7);
    const auto& constant = tree;
    CHECK(constant["blocks.0.bias"][3] == 7);
    CHECK(constant["head"].shape() == fprnn::shape{2, 4});
    CHECK(constant["head"].data() == constant.data() + 16);
    CHECK(tree.contains("head"));
    CHECK_FALSE(tree.contains("hea"));
}

TEST_CASE("parameters: a name used twice is refused and leaves the tree as it was") {
    auto tree = example();
    CHECK_THROWS_WITH_AS(tree.add({"head", {9}, {}}), "parameter_tree: the name 'head' is used twice", argument_error);
    CHECK(tree.size() == 24);
    CHECK(tree.entries().size() == 3);
}

TEST_CASE("parameters: an initialiser that needs another parameter before it leaves the tree as it was") {
    parameter_tree<float> tree;
    CHECK_THROWS_AS(tree.add({"g", {4}, {fprnn::initialiser::rule::row_norm}}), argument_error);
    CHECK(tree.size() == 0);
    CHECK(tree.entries().empty());
    CHECK_NOTHROW(tree.add({"g", {4}, {}}));
}

TEST_CASE("parameters: an unknown name is answered with the names that exist") {
    auto tree = example();
    CHECK_THROWS_WITH_AS((void)tree["tail"],
                         "parameter_tree: no parameter 'tail'; there are: blocks.0.Q, blocks.0.bias, head",
                         argument_error);
    const auto& constant = tree;
    CHECK_THROWS_AS((void)constant[""], argument_error);
}

TEST_CASE("parameters: adding a parameter keeps the values before it") {
    auto tree = example({5});
    const auto before = tree;
    tree.add({"more", {1000}, {rule::constant, 1, 0}});
    CHECK(std::equal(before.begin(), before.end(), tree.begin()));
    CHECK(tree["more"][999] == 1);
}

TEST_CASE("parameters: zeros_like has the same layout, no values, and memory of its own") {
    const auto tree = example();
    auto zero = tree.zeros_like();
    CHECK(std::all_of(zero.begin(), zero.end(), [](float x) { return x == 0; }));
    REQUIRE(zero.entries().size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(zero.entries()[i].name == tree.entries()[i].name);
        CHECK(zero.entries()[i].shape == tree.entries()[i].shape);
        CHECK(zero.entries()[i].offset == tree.entries()[i].offset);
        CHECK(zero.entries()[i].decay == tree.entries()[i].decay);
    }
    zero["blocks.0.bias"][0] = 3;
    CHECK(tree["blocks.0.bias"][0] == 0.5f);
}

TEST_CASE("parameters: empty parameters and empty trees have no values") {
    parameter_tree<float> tree;
    CHECK(tree.size() == 0);
    CHECK(tree.begin() == tree.end());
    tree.add({"none", {0, 8}, {rule::fan_in, 1, 0}});
    tree.add({"one", {1}, {rule::constant, 2, 0}});
    CHECK(tree["none"].empty());
    CHECK(tree["one"][0] == 2);
}

TEST_CASE("parameters: a start depends on seed, name and shape, not on what was added before") {
    parameter_tree<float> alone;
    alone.add({"head", {2, 4}, {rule::fan_in, 1, 0}}, {3});
    const auto tree = example({3}), other = example({4});
    CHECK(std::equal(alone.begin(), alone.end(), tree["head"].begin()));
    CHECK_FALSE(std::equal(alone.begin(), alone.end(), other["head"].begin()));
    parameter_tree<float> renamed;
    renamed.add({"tail", {2, 4}, {rule::fan_in, 1, 0}}, {3});
    CHECK_FALSE(std::equal(alone.begin(), alone.end(), renamed.begin()));
}

TEST_CASE("initialiser: constant, uniform, normal and fan_in have the moments and ranges they name") {
    CHECK(start({rule::constant, -2, 0}, {5}) == std::vector<double>(5, -2.0));

    const auto uniform = start({rule::uniform, 2, 5}, {20000});
    CHECK(*std::min_element(uniform.begin(), uniform.end()) >= 2);
    CHECK(*std::max_element(uniform.begin(), uniform.end()) < 5);
    CHECK(mean(uniform) == doctest::Approx(3.5).epsilon(0.01));

    auto normal = start({rule::normal, 3, 0}, {20000});
    CHECK(std::abs(mean(normal)) < 4 * 3 / std::sqrt(20000.0));
    for (double& x : normal) x *= x;
    CHECK(mean(normal) == doctest::Approx(9).epsilon(0.04));

    auto fan_in = start({rule::fan_in, 2, 0}, {1000, 16});
    CHECK(std::abs(mean(fan_in)) < 4 * 0.5 / std::sqrt(3 * 16000.0));
    CHECK(*std::max_element(fan_in.begin(), fan_in.end()) == doctest::Approx(0.5).epsilon(0.01));
    CHECK(*std::min_element(fan_in.begin(), fan_in.end()) == doctest::Approx(-0.5).epsilon(0.01));
}

TEST_CASE("initialiser: log_row is log(n+1) in every column of row n") {
    const auto values = start({rule::log_row, 0, 0}, {4, 3});
    for (std::size_t i = 0; i < 12; ++i) CHECK(values[i] == doctest::Approx(std::log(static_cast<double>(i / 3 + 1))));
}

TEST_CASE("initialiser: softplus of softplus_step is log-uniform between its two steps") {
    auto steps = start({rule::softplus_step, 1e-3, 0.1}, {20000});
    for (double& x : steps) x = std::log(std::log1p(std::exp(x)));
    CHECK(*std::min_element(steps.begin(), steps.end()) >= std::log(1e-3) - 1e-9);
    CHECK(*std::max_element(steps.begin(), steps.end()) <= std::log(0.1) + 1e-9);
    CHECK(std::abs(mean(steps) - 0.5 * std::log(1e-3 * 0.1)) < 4 * std::log(100.0) / std::sqrt(12 * 20000.0));
}

TEST_CASE("parameters: one too large for 64 bits is refused by name, and the tree stays as it was") {
    auto tree = example();
    CHECK_THROWS_WITH_AS(tree.add({"large", {index{1} << 61}, {}}),
                         "parameter_tree: 'large' [2305843009213693952] after 24 others needs more bytes than 64 bits "
                         "can address, 4 an element",
                         argument_error);
    CHECK_THROWS_AS(tree.add({"larger", {std::numeric_limits<index>::max()}, {}}), argument_error);
    CHECK(tree.size() == 24);
    CHECK(tree.entries().size() == 3);
}

}  // namespace
