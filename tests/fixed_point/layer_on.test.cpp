#include "tools.hpp"

#include <fprnn/models/recorded.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::argument_error;
using fprnn::index;
using fprnn::linear;
using fprnn::tensor;

const fprnn::dims size{.d_in = 3, .d_inner = 4};

const fprnn::layer first(tanh(linear<"A">(in)));
const fprnn::layer second(tanh(fprnn::affine<"B">(in)) + linear<"C">(cat(in, shift(in))));

template <class Root>
fprnn::variable on_tape(fprnn::tape<double>& t, const fprnn::layer<Root>& l, const std::string& prefix) {
    const auto y = normal({2, 5, 4}, 2);
    return mean_square(t, l(t, size, prefix, t.leaf(normal({2, 5, 3}, 1))), y.view());
}

TEST_CASE("layer: on a tape it may stand where another one stood before") {
    for (const auto& [of_first, of_second] : std::vector<std::pair<std::string, std::string>>{{"a.", "b."}, {"", ""}}) {
        fprnn::parameter_tree<double> theta;
        fprnn::graph::add_parameters<double>(first.nodes, theta, size, of_first, {1});
        fprnn::graph::add_parameters<double>(second.nodes, theta, size, of_second, {2});
        fprnn::tape<double> fresh(theta), used(theta);
        const auto loss = on_tape(fresh, second, of_second);
        const auto expected = fresh.gradient(loss);
        used.gradient(on_tape(used, first, of_first));
        used.clear();
        const auto again = on_tape(used, second, of_second);
        CHECK(used.value(again)[0] == fresh.value(loss)[0]);
        CHECK(same_bits(used.gradient(again), expected));
    }
}

TEST_CASE("layer: it goes on in place, from the carry of the result that it overwrites") {
    const fprnn::layer l(scan(sigmoid(linear<"l">(in)), linear<"u">(in)));
    const auto theta = fprnn::init<double>(l, size);
    const auto x = normal({2, 5, 3}, 3);
    fprnn::eigen backend;
    auto sol = l(theta, x);
    const auto expected = l(theta, x, sol.carry);
    l.run<double>(size, theta.data(), x.view(), std::as_const(sol.carry).view(), backend, nullptr, sol);
    CHECK(same_bits(sol.value, expected.value));
    CHECK(same_bits(sol.carry, expected.carry));

    const fprnn::view<const double> a_row(sol.carry.data() + 4, {1, 4});
    CHECK_THROWS_WITH_AS(l.run<double>(size, theta.data(), tensor<double>({1, 5, 3}), a_row, backend, nullptr, sol),
                         "layer: carry is a part of the result's carry: expected all of it, or other memory",
                         argument_error);
    const fprnn::layer square(linear<"s", fprnn::d_in>(in));
    const auto of_square = fprnn::init<double>(square, size);
    auto y = square(of_square, x);
    CHECK_THROWS_WITH_AS(
        square.run<double>(size, of_square.data(), std::as_const(y.value).view(), {}, backend, nullptr, y),
        "layer: x is the result's value: expected other memory, or another result", argument_error);
    CHECK(same_bits(y.value, square(of_square, x).value));

    // The same of the other array of each: one token of a width that both have.
    const fprnn::layer step(fixed_point(tanh(linear<"W">(cat(in, shift(prev))))));
    const fprnn::dims three{.d_in = 3, .d_inner = 3};
    const auto of_step = fprnn::init<double>(step, three);
    auto one = step(of_step, normal({1, 1, 3}, 3));
    const fprnn::view<const double> value(one.value.data(), {1, 3}), carry(one.carry.data(), {1, 1, 3});
    CHECK_THROWS_WITH_AS(step.run<double>(three, of_step.data(), normal({1, 1, 3}, 4), value, backend, nullptr, one),
                         "layer: carry is the result's value: expected other memory, or another result",
                         argument_error);
    CHECK_THROWS_WITH_AS(step.run<double>(three, of_step.data(), carry, {}, backend, nullptr, one),
                         "layer: x is the result's carry: expected other memory, or another result", argument_error);
}

TEST_CASE("layer: a carry without numbers must be one that was left out, or have the right shape") {
    const fprnn::layer l(scan(sigmoid(linear<"l">(in)), linear<"u">(in)));
    const auto theta = fprnn::init<double>(l, size);
    const auto x = normal({2, 5, 3}, 3);
    CHECK(same_bits(l(theta, x, tensor<double>{}).value, l(theta, x).value));
    for (const fprnn::shape wrong : {fprnn::shape{7, 0}, {0, 4}, {2, 0}})
        CHECK_THROWS_WITH_AS(l(theta, x, tensor<double>(wrong)),
                             ("layer: carry must be [2,4], got " + wrong.to_string()).c_str(), argument_error);
    CHECK(l(theta, tensor<double>({0, 5, 3}), tensor<double>({0, 4})).value.shape() == fprnn::shape{0, 5, 4});
}

TEST_CASE("layer.back: it takes what the forward pass took") {
    const auto theta = fprnn::init<double>(first, size);
    const auto x = normal({2, 5, 3}, 1), y_bar = normal({2, 5, 4}, 2);
    fprnn::eigen backend;
    decltype(first)::record<double> kept;
    tensor<double> x_bar(x.shape());
    auto theta_bar = theta.zeros_like();
    const auto back = [&](const auto& l, const tensor<double>& of_x, const tensor<double>& of_y, tensor<double>& to_x) {
        l.template back<double>(kept, of_x.view(), of_y.view(), to_x.view(), theta_bar.data(), backend);
    };
    const char* none = "layer.back: expected a record of this layer's forward pass, got none or another layer's";
    CHECK_THROWS_WITH_AS(back(first, x, y_bar, x_bar), none, argument_error);
    first.run<double>(size, theta.data(), x.view(), {}, backend, &kept);
    CHECK_THROWS_WITH_AS(back(second, x, y_bar, x_bar), none, argument_error);
    tensor<double> fewer({1, 1, 4}), longer({2, 6, 3});
    CHECK_THROWS_WITH_AS(back(first, x, fewer, x_bar),
                         "layer.back: y_bar must be [2,5,4] as in the forward pass, got [1,1,4]", argument_error);
    CHECK_THROWS_WITH_AS(back(first, longer, y_bar, x_bar),
                         "layer.back: x must be [2,5,3] as in the forward pass, got [2,6,3]", argument_error);
    CHECK_THROWS_WITH_AS(back(first, x, y_bar, longer),
                         "layer.back: x_bar must be [2,5,3] as in the forward pass, got [2,6,3]", argument_error);
    CHECK(largest(theta_bar) == 0);
    back(first, x, y_bar, x_bar);
    CHECK(same_bits(x_bar, differentiate(first, theta, x, y_bar).x_bar));

    kept.kept.reset();
    CHECK_THROWS_WITH_AS(back(first, x, y_bar, x_bar),
                         "layer.back: the record has been used: expected one backward pass for each forward pass",
                         argument_error);
}

TEST_CASE("layer.back: it takes the schedule of the forward pass alone") {
    fprnn::layer l(fixed_point(scan(sigmoid(linear<"l">(in)), fprnn::constant<1, 2>() * prev + linear<"u">(in))));
    const auto theta = fprnn::init<double>(l, size);
    const auto x = normal({2, 5, 3}, 1), y_bar = normal({2, 5, 4}, 2);
    fprnn::eigen backend;
    decltype(l)::record<double> kept;
    tensor<double> x_bar(x.shape());
    auto theta_bar = theta.zeros_like();
    const auto back = [&] { l.back<double>(kept, x.view(), y_bar.view(), x_bar.view(), theta_bar.data(), backend); };
    l.schedule.length = fprnn::whole_sequence;
    (void)l.run<double>(size, theta.data(), x.view(), {}, backend, &kept);
    l.schedule.length = 1;
    CHECK_THROWS_WITH_AS(back(), "layer.back: expected the schedule of the forward pass, chunks of 5 tokens, got 1",
                         argument_error);
    CHECK(largest(x_bar) == 0);
    l.schedule.length = 7;  // of five tokens the same
    l.stop = fprnn::share{} || fprnn::iterations{100};
    CHECK_THROWS_WITH_AS(back(), "layer.back: expected the stop of the forward pass, no share of the batch, got one",
                         argument_error);
    CHECK(largest(x_bar) == 0);
    l.stop.reset();
    CHECK_NOTHROW(back());
}

TEST_CASE("layer: sizes that are none are refused, also where no parameter has them") {
    const fprnn::layer head(linear<"W", fprnn::d_out>(in));
    const auto theta = fprnn::init<double>(head, {.d_in = 3, .d_inner = 1, .d_out = 2});
    fprnn::tape<double> t(theta);
    CHECK_THROWS_WITH_AS((void)head(t, {.d_in = 3, .d_out = 2}, "", t.leaf(normal({2, 5, 3}, 1))),
                         "layer: d_inner must be at least 1, got 0", argument_error);
    fprnn::eigen backend(2);
    CHECK_THROWS_WITH_AS(
        head.run<double>({.d_in = 3, .d_out = 2}, theta.data(), normal({2, 5, 3}, 1).view(), {}, backend, nullptr),
        "layer: d_inner must be at least 1, got 0", argument_error);
}

}  // namespace
