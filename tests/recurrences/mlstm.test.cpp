#include "fixed_point/tools.hpp"

#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/mlstm.hpp>
#include <fprnn/recurrences/recur.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using M = fprnn::mlstm_recurrence;
using fprnn::index;
using fprnn::tensor;
using numbers = std::vector<double>;

std::size_t at(index i) { return static_cast<std::size_t>(i); }

/// The definition without a stabiliser: C and n as they are, S in the units of m.
numbers plain(const M::sizes& of, const numbers&, const std::array<numbers, 5>& x, numbers& S) {
    const auto& [i, f, k, v, q] = x;
    const index H = of.heads, K = of.keys, V = of.values, one = K * V + K + 1;
    numbers y(at(H * V));
    for (index h = 0; h < H; ++h) {
        double* s = S.data() + h * one;
        const double forget = 1 / (1 + std::exp(-f[at(h)])), add = std::exp(i[at(h)]), m = s[one - 1];
        const double next = m == 0 ? i[at(h)] : std::max(m + std::log(forget), i[at(h)]);
        double nq = 0;
        for (index j = 0; j < K; ++j) {
            const double kappa = k[at(h * K + j)] / std::sqrt(double(K));
            for (index c = 0; c < V; ++c)
                s[j * V + c] = forget * std::exp(std::ceil(m)) * s[j * V + c] + add * kappa * v[at(h * V + c)];
            s[K * V + j] = forget * std::exp(std::ceil(m)) * s[K * V + j] + add * kappa;
            nq += s[K * V + j] * q[at(h * K + j)];
        }
        for (index j = 0; j < K; ++j)
            for (index c = 0; c < V; ++c)
                y[at(h * V + c)] += s[j * V + c] * q[at(h * K + j)] / std::max(std::abs(nq), 1.0);
        for (index j = 0; j < one - 1; ++j) s[j] *= std::exp(-std::ceil(next));
        s[one - 1] = next;
    }
    return y;
}

TEST_CASE("mlstm: the laws of a recurrence") {
    // Of small and of large gates: |nᵀq| is below 1 and above it, and for these not so close to 1 that a
    // difference quotient sees both, nor is the last m that close to a whole number.
    for (const double shift : {-3.0, -1.0, 1.0, 1.5}) {
        const auto v =
            fprnn::check_recurrence<M>({.widths = {{1, 1, 1, 1, 1}, {2, 2, 6, 8, 6}, {1, 1, 5, 17, 5}},
                                        .plain = &plain,
                                        .range = [shift](std::size_t k, double x) { return k == 0 ? x + shift : x; }});
        INFO(shift << ": " << v.to_string());
        CHECK(v.ok());
    }
}

TEST_CASE("mlstm: widths that do not fit are refused") {
    const auto refuses = [](std::array<index, 5> widths, const char* message) {
        CHECK_THROWS_WITH_AS(M::of(widths), message, fprnn::argument_error);
    };
    refuses({2, 3, 4, 4, 4}, "mlstm: f must have 2 channels, one for each of i's heads, got 3");
    refuses({2, 2, 5, 4, 5}, "mlstm: k must have a multiple of 2 channels, one for each of i's heads, got 5");
    refuses({2, 2, 4, 5, 4}, "mlstm: v must have a multiple of 2 channels, one for each of i's heads, got 5");
    refuses({2, 2, 4, 6, 6}, "mlstm: q must have 4 channels, as k, got 6");
}

/// y and gradients of a sequence of gates (i, f), with keys of two and values of three numbers.
template <class T>
struct run {
    std::vector<tensor<T>> x, bars;
    tensor<T> y;

    explicit run(const std::vector<std::array<double, 2>>& gates) {
        const index tokens = static_cast<index>(gates.size());
        const index widths[] = {1, 1, 2, 3, 2};
        for (std::size_t k = 0; k < 5; ++k) {
            x.push_back(fprnn::testing::normal<T>({1, tokens, widths[k]}, 3 + k));
            bars.push_back(tensor<T>(x.back().shape()));
            for (index t = 0; k < 2 && t < tokens; ++t) x[k][t] = static_cast<T>(gates[at(t)][k]);
        }
        const M::sizes of{1, 2, 3};
        std::vector<T> S(at(M::state(of))), S_bar(S.size());
        std::vector<T> scratch(at(fprnn::recurring::scratch<M>(of, tokens)));
        y = tensor<T>({1, tokens, 3});
        fprnn::recurring::rows<M, const T> rows;
        fprnn::recurring::rows<M, T> to;
        for (std::size_t k = 0; k < 5; ++k) {
            rows.data[k] = x[k].data(), rows.stride[k] = widths[k];
            to.data[k] = bars[k].data(), to.stride[k] = widths[k];
        }
        const std::vector<T> begin = S;
        for (index t = 0; t < tokens; ++t)
            M::step<fprnn::serial_team<T>, T>(of, nullptr, rows[t], S.data(), S.data(), y.data() + 3 * t);
        const auto y_bar = fprnn::testing::normal<T>({1, tokens, 3}, 20);
        fprnn::recurring::back<M, fprnn::serial_team<T>, T>(of, tokens, nullptr, rows, begin.data(), y_bar.data(), 3,
                                                            S_bar.data(), to, static_cast<T*>(nullptr), scratch.data());
    }
};
double off(const tensor<float>& got, const tensor<double>& expected, double largest) {
    double worst = 0;
    for (index i = 0; i < got.size(); ++i) largest = std::max(largest, std::abs(expected[i]));
    for (index i = 0; i < got.size(); ++i) {
        const double one = std::abs(double(got[i]) - expected[i]);
        worst = one <= worst ? worst : one;
    }
    return worst / largest;
}

/// y of a sequence without a stabiliser.
tensor<double> plain_values(const run<double>& r) {
    const index tokens = r.y.shape()[1];
    numbers C(6), n(2);
    tensor<double> y(r.y.shape());
    for (index t = 0; t < tokens; ++t) {
        const double forget = 1 / (1 + std::exp(-r.x[1][t])), add = std::exp(r.x[0][t]) / std::sqrt(2.0);
        double nq = 0;
        for (index j = 0; j < 2; ++j) {
            n[at(j)] = forget * n[at(j)] + add * r.x[2][2 * t + j];
            nq += n[at(j)] * r.x[4][2 * t + j];
            for (index c = 0; c < 3; ++c)
                C[at(3 * j + c)] = forget * C[at(3 * j + c)] + add * r.x[2][2 * t + j] * r.x[3][3 * t + c];
        }
        for (index j = 0; j < 2; ++j)
            for (index c = 0; c < 3; ++c)
                y[3 * t + c] += C[at(3 * j + c)] * r.x[4][2 * t + j] / std::max(std::abs(nq), 1.0);
    }
    return y;
}

TEST_CASE("mlstm: gates of any size, in float what plain loops in double give, from the first token on") {
    const std::vector<std::array<double, 2>> sequences[] = {
        {{60, 40}, {0, 40}, {60, 40}, {-200, 40}, {59, -3}},
        {{-200, 40}, {-200, 0}, {1, 40}, {-200, 40}},
        {{-8, -40}, {-7, 40}, {-9, 40}, {0, -60}, {1, 1}},
        {{0, 40}, {0, 40}, {0, 0}, {0, 40}},
    };
    for (const auto& gates : sequences) {
        CAPTURE(gates[0][0]);
        const run<float> got(gates);
        run<double> exact(gates);
        const auto expected = plain_values(exact);
        for (index i = 0; i < expected.size(); ++i)
            CHECK(exact.y[i] == doctest::Approx(expected[i]).epsilon(1e-12).scale(1e-30));
        CHECK(off(got.y, expected, 0) <= 2e-6);
        for (std::size_t k = 0; k < 5; ++k) {
            CAPTURE(k);
            CHECK(off(got.bars[k], exact.bars[k], 1) <= 5e-6);
        }
    }
    const run<float> beyond({{5000, 900}, {-1e30, -1e30}, {1e30, 3}, {3, 1e30}});
    for (const float y : beyond.y) CHECK(fprnn::math::is_finite(y));
    for (const auto& bars : beyond.bars)
        for (const float g : bars) CHECK(fprnn::math::is_finite(g));
}

TEST_CASE("mlstm: a query of zeros reads nothing, and divides by nothing") {
    const M::sizes of{1, 1, 1};
    for (const float i : {-300.0f, 300.0f}) {
        float S[3] = {}, y = 1;
        const float f = 0, k = 1, v = 1, q = 0;
        M::step<fprnn::serial_team<float>, float>(of, nullptr, {&i, &f, &k, &v, &q}, S, S, &y);
        CHECK(y == 0);
    }
}

}  // namespace
