#include <fprnn/tape/gradcheck.hpp>
#include <fprnn/tape/tape.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::index;
using fprnn::parameter_tree;
using fprnn::reference;
using fprnn::tensor;
using fprnn::variable;
using tape = fprnn::tape<double, reference>;

parameter_tree<double> example() {
    parameter_tree<double> theta;
    theta.add({"w", {3}, {fprnn::initialiser::rule::normal, 1, 0}}, {1});
    return theta;
}

/// y_i = w_i x_i
variable scale(tape& t, variable x) {
    tensor<double> y = t.value(x);
    for (index i = 0; i < y.size(); ++i) y[i] *= t.parameters()["w"][i];
    return t.record(std::move(y), [x](tape& tp, variable self) {
        for (index i = 0; i < 3; ++i) {
            tp.bar(x)[i] += tp.parameters()["w"][i] * tp.bar(self)[i];
            tp.parameter_bars()["w"][i] += tp.value(x)[i] * tp.bar(self)[i];
        }
    });
}
/// Σ_i a_i b_i
variable dot(tape& t, variable a, variable b) {
    tensor<double> s({1});
    for (index i = 0; i < 3; ++i) s[0] += t.value(a)[i] * t.value(b)[i];
    return t.record(std::move(s), [a, b](tape& tp, variable self) {
        for (index i = 0; i < 3; ++i) {
            tp.bar(a)[i] += tp.value(b)[i] * tp.bar(self)[0];
            tp.bar(b)[i] += tp.value(a)[i] * tp.bar(self)[0];
        }
    });
}

TEST_CASE("tape: cotangents of a value and of a parameter that are used more than once add up") {
    const auto theta = example();
    tensor<double> x({3}, {1, -2, 0.5});
    const auto loss = [&](const parameter_tree<double>& p, const tensor<double>& in) {
        double sum = 0;  // ⟨w ⊙ w ⊙ x, w ⊙ x⟩
        for (index i = 0; i < 3; ++i) sum += p["w"][i] * p["w"][i] * in[i] * p["w"][i] * in[i];
        return sum;
    };
    tape t(theta, {});
    const variable leaf = t.leaf(x), once = scale(t, leaf), twice = scale(t, once), l = dot(t, twice, once);
    CHECK(t.value(l)[0] == doctest::Approx(loss(theta, x)));
    CHECK(t.records() == 3);
    const auto gradient = t.gradient(l);
    CHECK(fprnn::gradcheck([&](const auto& p) { return loss(p, x); }, theta, gradient).error <= 1e-9);
    CHECK(fprnn::gradcheck([&] { return loss(theta, x); }, {{"x", x, t.bar(leaf)}}).error <= 1e-9);
    CHECK(t.records() == 0);
}

TEST_CASE("tape: what the loss does not use has a gradient of zero") {
    const auto theta = example();
    tape t(theta, {});
    const variable x = t.leaf(tensor<double>({3}, {1, 2, 3})), unused = scale(t, x), l = dot(t, x, x);
    const auto& gradient = t.gradient(l);
    for (double g : gradient["w"]) CHECK(g == 0);
    for (double g : t.bar(unused)) CHECK(g == 0);
    CHECK(t.bar(x)[2] == 6);
}

TEST_CASE("tape: bars begin at zero and what is added before the gradient is taken counts") {
    const auto theta = example();
    tape t(theta, {});
    const variable x = t.leaf(tensor<double>({3}, {1, 2, 3})), l = dot(t, x, x);
    CHECK(t.bar(x).shape() == fprnn::shape{3});
    CHECK(t.bar(x)[0] == 0);
    t.bar(x)[0] = 10;
    t.parameter_bars()["w"][1] = 5;
    const auto& gradient = t.gradient(l);
    CHECK(t.bar(x)[0] == 12);
    CHECK(gradient["w"][1] == 5);
}

TEST_CASE("tape: the gradient has the parameters' names and shapes") {
    const auto theta = example();
    tape t(theta, {});
    const variable l = t.leaf(tensor<double>({1}));
    const auto& gradient = t.gradient(l);
    REQUIRE(gradient.entries().size() == 1);
    CHECK(gradient.entries()[0].name == "w");
    CHECK(gradient["w"].shape() == fprnn::shape{3});
}

TEST_CASE("tape: a loss that is not one number is refused, and the records are kept") {
    const auto theta = example();
    tape t(theta, {});
    const variable x = t.leaf(tensor<double>({3}, {1, 2, 3})), y = scale(t, x), l = dot(t, x, y);
    CHECK_THROWS_WITH_AS(t.gradient(y), "tape.gradient: the loss must be one number, got [3]", argument_error);
    CHECK_THROWS_WITH_AS(t.gradient(t.leaf({})), "tape.gradient: the loss must be one number, got [0]", argument_error);
    CHECK(t.records() == 2);
    CHECK(t.gradient(l)["w"][1] == 4);
}

TEST_CASE("tape: a second gradient is refused until clear(), for its records are spent") {
    const auto theta = example();
    tape t(theta, {});
    for (int step = 0; step < 2; ++step) {
        t.clear();
        const variable x = t.leaf(tensor<double>({3}, {1, 2, 3})), y = scale(t, x), l = dot(t, x, y), m = dot(t, x, x);
        CHECK(t.gradient(l)["w"][1] == 4);
        const char* refusal =
            "tape.gradient: the gradient must be the first since clear(), which spends the records, got a second";
        CHECK_THROWS_WITH_AS(t.gradient(m), refusal, argument_error);
        CHECK_THROWS_WITH_AS(t.back(l), refusal, argument_error);
    }
}

TEST_CASE("tape: a variable that it has not got is refused, and it holds on to no temporary") {
    const auto theta = example();
    tape t(theta, {});
    CHECK_THROWS_WITH_AS(t.gradient(variable{}), "tape: a variable must be one of the 0 since clear(), got number 0",
                         argument_error);
    const variable x = t.leaf(tensor<double>({1}, {1}));
    CHECK_NOTHROW(t.value(x));
    CHECK_THROWS_AS(t.value({7}), argument_error);
    CHECK_THROWS_AS(t.bar({1}), argument_error);
    t.clear();
    CHECK_THROWS_AS(t.value(x), argument_error);
    static_assert(std::is_constructible_v<fprnn::tape<double>, const fprnn::parameter_tree<double>&>);
    static_assert(!std::is_constructible_v<fprnn::tape<double>, fprnn::parameter_tree<double>>);
}

TEST_CASE("tape: a step after clear() is that of a new tape, in the memory of the step before") {
    auto theta = example();
    tape kept(theta, {});
    const double* memory = nullptr;
    for (int step = 0; step < 3; ++step) {
        // Other shapes, too: the second step is longer.
        const tensor<double> x({3}, {1.0 + step, -2, 0.5});
        const auto run = [&](tape& t) {
            variable at = t.leaf(x), first = at;
            for (int i = 0; i < (step == 1 ? 4 : 2); ++i) at = scale(t, at);
            const variable loss = dot(t, at, first);
            t.gradient(loss);
            return std::array<double, 5>{t.value(loss)[0], t.parameter_bars()["w"][0], t.parameter_bars()["w"][1],
                                         t.bar(first)[0], t.bar(at)[2]};
        };
        kept.clear();
        CHECK(kept.records() == 0);
        tape fresh(theta, {});
        CHECK(run(kept) == run(fresh));
        theta["w"][1] += 0.5;
    }
    for (int step = 0; step < 2; ++step) {
        kept.clear();
        kept.record(kept.make({100}), [](tape&, variable) {});
        if (step == 1) CHECK(kept.value({0}).data() == memory);
        memory = kept.value({0}).data();
    }
}

TEST_CASE("tape: what a record keeps is there again after clear(), unless it is of another type") {
    const auto theta = example();
    tape t(theta, {});
    t.keep<std::vector<int>>().push_back(1);
    t.record(t.make({1}), [](tape&, variable) {});
    CHECK(t.keep<std::vector<int>>().empty());  // the next record's
    t.clear();
    CHECK(t.keep<std::vector<int>>().size() == 1);
    CHECK(t.keep<double>() == 0);
    CHECK(t.keep<std::vector<int>>().empty());
}

TEST_CASE("tape: a callback that has run, or whose tape was cleared, holds nothing any more") {
    const auto theta = example();
    const auto held = std::make_shared<int>(1);
    tape t(theta, {});
    t.gradient(t.record(t.make({1}), [held](tape&, variable) {}));
    CHECK(held.use_count() == 1);
    t.clear();
    t.record(t.make({1}), [held](tape&, variable) {});
    t.clear();
    CHECK(held.use_count() == 1);
}

TEST_CASE("tape: a value is made in the shape of another one, and stays where it is as others are added") {
    const auto theta = example();
    tape t(theta, {});
    variable last = t.leaf(tensor<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
    const auto& first = t.value(last);
    auto& bar = t.bar(last);
    for (int i = 0; i < 1000; ++i) last = t.record(t.make(t.value(last).shape()), [](tape&, variable) {});
    CHECK(t.value(last).shape() == fprnn::shape{2, 3});
    CHECK(first[5] == 6);
    bar[5] = 7;
    CHECK(&first == &t.value({0}));
    CHECK(t.bar({0})[5] == 7);
}

TEST_CASE("tape: parameters that somebody else keeps where the backend works, and the gradient that stays there") {
    const auto theta = example();
    reference on;
    const fprnn::parameters_on<double, reference> there(on, theta);
    tape t(theta, there, on);
    CHECK(t.parameters_there().data() == theta.data());
    const variable x = t.leaf(tensor<double>({3}, {1, -2, 0.5}));
    t.back(dot(t, scale(t, x), x));
    const parameter_tree<double> gradient = t.parameter_bars();
    CHECK(gradient["w"][1] == doctest::Approx(4));
    CHECK(t.fetch_gradient()["w"][1] == gradient["w"][1]);
}

}  // namespace
