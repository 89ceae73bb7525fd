#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::implicit;
using fprnn::index;
using fprnn::tensor;

/// FP-RNN whose Q, λ and B see y_{t−1}.
auto rnn() {
    using namespace fprnn::symbols;
    auto s = cat(in, shift(prev));
    auto Q = fprnn::householder<2, "Q">(s);
    auto lambda = sigmoid(fprnn::affine<"lambda">(s));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(s) + (I - Q) * prev)));
}

/// The layer called once per piece of the sequence, each call going on from the carry of the one before.
template <class T, class Layer, class Theta>
tensor<T> in_pieces(const Layer& l, const Theta& theta, const tensor<T>& x, const std::vector<index>& lengths) {
    tensor<T> all({x.shape()[0], x.shape()[1], l.output_width(theta.widths)}), carry;
    index at = 0;
    for (const index n : lengths) {
        auto part = l(theta, tokens(x, at, n), carry);
        for (index b = 0; b < x.shape()[0]; ++b)
            for (index t = 0; t < n; ++t)
                for (index d = 0; d < all.shape()[2]; ++d) all(b, at + t, d) = part.value(b, t, d);
        carry = std::move(part.carry);
        at += n;
    }
    CHECK(at == x.shape()[1]);
    return all;
}

/// The largest ratio ‖y^{ℓ+1} − y^ℓ‖₂ / ‖y^ℓ − y^{ℓ−1}‖₂ of a token's iteration, over all tokens and ℓ ≤ 16.
template <class Layer, class Theta>
double measured_contraction(Layer l, const Theta& theta, const tensor<double>& x) {
    double worst = 0;
    tensor<double> carry;
    for (index t = 0; t < x.shape()[1]; ++t) {
        const auto token = tokens(x, t, 1);
        std::vector<tensor<double>> y;
        for (int ell = 1; ell <= 17; ++ell) {
            l.schedule = {.length = 1, .tolerance = 1e-300, .ell_max = ell};
            y.push_back(l(theta, token, carry).value);
        }
        const index D = y[0].shape()[2];
        for (index b = 0; b < x.shape()[0]; ++b) {
            const auto step = [&](std::size_t k) {
                double sum = 0;
                for (index d = 0; d < D; ++d) sum += std::pow(y[k + 1](b, 0, d) - y[k](b, 0, d), 2);
                return std::sqrt(sum);
            };
            for (std::size_t k = 0; k + 2 < y.size(); ++k)
                if (step(k) > 1e-11) worst = larger(worst, step(k + 1) / step(k));
        }
        l.schedule = {.length = 1, .tolerance = 1e-13, .ell_max = 2000};
        carry = l(theta, token, carry).carry;
    }
    return worst;
}

const fprnn::dims size{.d_in = 6, .d_inner = 11};

TEST_CASE("schedule: all reach one fixed point where tokens contract, in one call, in two and token by token") {
    fprnn::layer l(rnn());
    auto theta = fprnn::init<double>(l, size, fprnn::seed{3});
    shake(theta, 0.1);
    const auto x = normal({5, 13, 6}, 1);
    const double contraction = measured_contraction(l, theta, x);
    MESSAGE("measured token contraction: " << contraction);
    REQUIRE(contraction <= 0.9);
    REQUIRE(contraction > 0.3);  // not a trivial one

    l.schedule = {.length = 1, .tolerance = 1e-14, .ell_max = 4000};
    const auto sequential = l(theta, x);
    REQUIRE(sequential.all_converged());
    fprnn::layer_parameters<float> theta32;
    theta32.widths = size;
    for (const auto& p : l.declare(size)) theta32.add(p);
    std::copy(theta.begin(), theta.end(), theta32.begin());
    tensor<float> x32(x.shape());
    for (index i = 0; i < x.size(); ++i) x32[i] = static_cast<float>(x[i]);
    tensor<double> value32(sequential.value.shape());

    double worst = 0, worst32 = 0;
    for (const index C : {index{1}, index{2}, index{5}, index{13}, fprnn::whole_sequence}) {
        CAPTURE(C);
        l.schedule = {.length = C, .tolerance = 1e-13, .ell_max = 4000};
        const auto whole = l(theta, x);
        CHECK(whole.all_converged());
        const double scale = largest(sequential.value);
        for (const auto& value :
             {whole.value, l(theta, x, tensor<double>{}, fprnn::reference{}).value, in_pieces(l, theta, x, {8, 5}),
              in_pieces(l, theta, x, {1, 12}), in_pieces(l, theta, x, std::vector<index>(13, 1))})
            worst = larger(worst, distance(value, sequential.value) / scale);

        l.schedule = {.length = C, .tolerance = 1e-6, .ell_max = 1000};
        for (const auto& value : {l(theta32, x32).value, in_pieces(l, theta32, x32, {8, 5}),
                                  in_pieces(l, theta32, x32, std::vector<index>(13, 1))}) {
            std::copy(value.begin(), value.end(), value32.begin());
            worst32 = larger(worst32, distance(value32, sequential.value) / scale);
        }
    }
    MESSAGE("schedules and streaming differ by " << worst << " in double, " << worst32 << " in float");
    CHECK(worst <= 1e-10);
    CHECK(worst32 <= 1e-4);
}

TEST_CASE_TEMPLATE("schedule: with one-token chunks streaming gives the bits of one call", T, float, double) {
    fprnn::layer l(fprnn::models::fp_rnn<3>(), fprnn::sequential());
    const auto theta = fprnn::init<T>(l, {.d_in = 6, .d_inner = 13}, fprnn::seed{3});
    const auto x = normal<T>({18, 9, 6}, 1);
    const auto whole = l(theta, x);
    CHECK(same_bits(in_pieces(l, theta, x, {4, 5}), whole.value));
    CHECK(same_bits(in_pieces(l, theta, x, {1, 7, 1}), whole.value));
    CHECK(same_bits(in_pieces(l, theta, x, std::vector<index>(9, 1)), whole.value));
    CHECK(same_bits(in_pieces(l, theta, x, {0, 9, 0}), whole.value));

    tensor<T> carry;
    for (index t = 0; t < 9; ++t) carry = l(theta, tokens(x, t, 1), carry).carry;
    CHECK(same_bits(carry, whole.carry));
}

TEST_CASE("schedule: chunks that a call ends in give the bits of one call when pieces are whole chunks") {
    fprnn::layer l(fprnn::models::fp_rnn<2>(), chunked{.length = 3});
    const auto theta = fprnn::init<float>(l, {.d_in = 6, .d_inner = 8}, fprnn::seed{3});
    const auto x = normal<float>({3, 12, 6}, 1);
    CHECK(same_bits(in_pieces(l, theta, x, {6, 6}), l(theta, x).value));
    CHECK(same_bits(in_pieces(l, theta, x, {3, 9}), l(theta, x).value));
}

TEST_CASE("schedule: a chunk longer than the sequence is the whole sequence, to the bit") {
    fprnn::layer l(rnn(), chunked{.length = 9});
    const auto theta = fprnn::init<float>(l, size, fprnn::seed{3});
    const auto x = normal<float>({3, 9, 6}, 1), y_bar = normal<float>({3, 9, 11}, 2);
    const auto exact = differentiate(l, theta, x, y_bar);
    for (const index C : {index{10}, fprnn::whole_sequence}) {
        l.schedule.length = C;
        const auto longer = differentiate(l, theta, x, y_bar);
        CHECK(same_bits(longer.sol.value, exact.sol.value));
        CHECK(same_bits(longer.x_bar, exact.x_bar));
        CHECK(same_bits(longer.theta_bar, exact.theta_bar));
    }
}

}  // namespace
