#include "tools.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/ops/cross_entropy.hpp>

#include <doctest/doctest.h>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::index;
using fprnn::linear;
using fprnn::tensor;
using fprnn::view;
using tape = fprnn::tape<double, fprnn::eigen>;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .d_out = 4};

/// ⟨y, y_bar⟩ + ⟨carry out, carry_bar⟩ as a variable.
fprnn::variable product(tape& t, fprnn::variable v, const tensor<double>& with) {
    tensor<double> sum({1});
    for (index i = 0; i < with.size(); ++i) sum[0] += t.value(v)[i] * with[i];
    return t.record(std::move(sum), [v, with](tape& tp, fprnn::variable self) {
        const double g = tp.bar(self)[0];
        auto& bar = tp.bar(v);
        for (index i = 0; i < with.size(); ++i) bar[i] += g * with[i];
    });
}
fprnn::variable sum(tape& t, fprnn::variable a, fprnn::variable b) {
    tensor<double> s({1});
    s[0] = t.value(a)[0] + t.value(b)[0];
    return t.record(std::move(s), [a, b](tape& tp, fprnn::variable self) {
        tp.bar(a)[0] += tp.bar(self)[0];
        tp.bar(b)[0] += tp.bar(self)[0];
    });
}

struct gradients {
    double loss;
    tensor<double> x, carry;
    fprnn::parameter_tree<double> theta;
};

/// Of a sequence in windows that end where `ends` says.
template <class Layer>
gradients in_windows(const Layer& l, const fprnn::layer_parameters<double>& theta, const tensor<double>& x,
                     const tensor<double>& carry, const tensor<double>& y_bar, const tensor<double>& carry_bar,
                     const std::vector<index>& ends) {
    tape t(theta);
    auto at = t.leaf(tensor<double>(carry));
    const auto first_carry = at;
    std::vector<fprnn::variable> inputs, losses;
    index begin = 0;
    for (const index end : ends) {
        inputs.push_back(t.leaf(tokens(x, begin, end - begin)));
        const auto [y, next] = l(t, theta.widths, "", inputs.back(), at);
        losses.push_back(product(t, y, tokens(y_bar, begin, end - begin)));
        at = next;
        begin = end;
    }
    losses.push_back(product(t, at, carry_bar));
    auto loss = losses[0];
    for (std::size_t i = 1; i < losses.size(); ++i) loss = sum(t, loss, losses[i]);
    gradients g{t.value(loss)[0], tensor<double>(x.shape()), {}, t.gradient(loss)};
    g.carry = t.bar(first_carry);
    begin = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const auto& bar = t.bar(inputs[i]);
        for (index b = 0; b < x.shape()[0]; ++b)
            for (index k = begin; k < ends[i]; ++k)
                for (index d = 0; d < x.shape()[2]; ++d) g.x(b, k, d) = bar(b, k - begin, d);
        begin = ends[i];
    }
    return g;
}

template <class Expression>
void check(Expression expression) {
    const index B = 19, T = 7;
    const auto x = normal({B, T, 4}, 1);
    for (const fprnn::adjoint& adjoint :
         {fprnn::adjoint(fprnn::implicit{.tolerance = 1e-13, .ell_max = 2000}), fprnn::adjoint(fprnn::unrolled{}),
          fprnn::adjoint(fprnn::one_step{}), fprnn::adjoint(fprnn::truncated{2}), fprnn::adjoint(fprnn::neumann{3})}) {
        CAPTURE(adjoint.index());
        fprnn::layer l(expression, {.length = 1, .tolerance = 1e-13, .ell_max = 2000}, adjoint);
        auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
        shake(theta, 0.1);
        const auto y_bar = normal({B, T, l.output_width(sizes)}, 2), carry = normal({B, l.carry_width(sizes)}, 3, 0.3),
                   carry_bar = normal(carry.shape(), 4);
        const auto whole = in_windows(l, theta, x, carry, y_bar, carry_bar, {T});
        const auto compare = [&](const gradients& got, double apart) {
            CHECK(got.loss == doctest::Approx(whole.loss).epsilon(apart));
            CHECK(distance(got.x, whole.x) < apart * largest(whole.x));
            CHECK(distance(got.carry, whole.carry) < apart * largest(whole.carry));
            CHECK(distance(got.theta, whole.theta) < apart * largest(whole.theta));
        };
        compare(in_windows(l, theta, x, carry, y_bar, carry_bar, {3, T}), 1e-12);
        compare(in_windows(l, theta, x, carry, y_bar, carry_bar, {1, 2, 6, T}), 1e-12);
        if (adjoint.index() > 2) continue;  // gradients of these depend on the schedule
        if (std::holds_alternative<fprnn::one_step>(adjoint)) continue;
        l.schedule.length = 2;
        compare(in_windows(l, theta, x, carry, y_bar, carry_bar, {3, T}), 1e-8);
        l.schedule.length = fprnn::whole_sequence;
        compare(in_windows(l, theta, x, carry, y_bar, carry_bar, {4, T}), 1e-8);
        if (!std::holds_alternative<fprnn::implicit>(adjoint)) continue;
        // Some entries of the carry's gradient against differences.
        auto moved = carry;
        for (index i = 0; i < carry.size(); i += 1 + carry.size() / 23) {
            const auto at = [&](double h) {
                moved[i] = carry[i] + h;
                const double loss = in_windows(l, theta, x, moved, y_bar, carry_bar, {4, T}).loss;
                moved[i] = carry[i];
                return loss;
            };
            const double h = 1e-3, fd = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
            CHECK(std::abs(fd - whole.carry[i]) < 1e-7 * largest(whole.carry));
        }
    }
}

TEST_CASE(
    "carry: a sequence window by window has the gradient of the whole: FP-RNN's like, with everything that carries") {
    const auto s = cat(in, shift(prev));
    const auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    const auto Q = fprnn::contractive<9, 10>(fprnn::householder<2>(s));
    const auto y = fixed_point(scan(lambda, (1 - lambda) * (Q * linear<"B">(s) + (I - Q) * prev)));
    check(linear<"out", fprnn::d_out>(cat(shift(y), y, shift(in))));
}
TEST_CASE("carry: a sequence window by window has the gradient of the whole: recurrences with states") {
    const auto s = cat(in, shift(prev));
    const auto v = linear<"v">(in) + fprnn::constant<1, 4>() * prev;
    const auto S = fprnn::selective_scan<"ssm">(softplus(fprnn::affine<"delta">(s)), linear<"b", fprnn::d_state>(in),
                                                linear<"c", fprnn::d_state>(s), v);
    check(scan(sigmoid(linear<"l">(in)), fixed_point(fprnn::constant<1, 3>() * tanh(S))));
}
TEST_CASE("carry: a sequence window by window has the gradient of the whole: LSTM") { check(fprnn::models::lstm()); }

TEST_CASE("carry: without tokens it goes through, and so does its cotangent; what does not fit is refused") {
    const fprnn::layer l(fprnn::models::fp_mamba<1>());
    const auto theta = fprnn::init<double>(l, sizes);
    const auto carry = normal({3, l.carry_width(sizes)}, 1), carry_bar = normal(carry.shape(), 2);
    tape t(theta);
    const auto first = t.leaf(tensor<double>(carry));
    const auto [y, next] = l(t, sizes, "", t.leaf(tensor<double>({3, 0, 4})), first);
    CHECK(t.value(y).shape() == fprnn::shape{3, 0, 4});
    CHECK(same_bits(t.value(next), carry));
    t.gradient(product(t, next, carry_bar));
    CHECK(same_bits(t.bar(first), carry_bar));
    fprnn::solution<double> how = l(theta, normal({1, 2, 4}, 3));
    const auto [seen, seen_next] = l(t, sizes, "", t.leaf(normal({3, 2, 4}, 4)), first, &how);
    CHECK(how.value.size() == 0);  // it stands on the tape
    CHECK(same_bits(how.carry, t.value(seen_next)));
    CHECK(how.status.size() == 3);
    const auto wrong = t.leaf(tensor<double>({3, 5}));
    CHECK_THROWS_WITH_AS(l(t, sizes, "", t.leaf(tensor<double>({3, 2, 4})), wrong),
                         doctest::Contains("layer: carry must be [3,"), fprnn::argument_error);
}

}  // namespace
