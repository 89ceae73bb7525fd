#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::index;
using fprnn::layer_parameters;
using fprnn::status;
using fprnn::tensor;

const index schedules[] = {1, 3, fprnn::whole_sequence};

/// FP-RNN with one reflection, whose token map has the eigenvalue (1 − λ) Scale σ(alpha.bias) along ū.
template <int Scale>
auto rnn() {
    using namespace fprnn::symbols;
    auto Q = fprnn::householder<1, "Q", Scale>(cat(in, shift(prev)));
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * prev)));
}

const fprnn::dims size{.d_in = 3, .d_inner = 5};

template <class T, class Layer>
layer_parameters<T> parameters(const Layer& l, double lambda_bias, double alpha_bias) {
    auto theta = fprnn::init<T>(l, size, fprnn::seed{1});
    for (T& v : theta["lambda.bias"]) v = static_cast<T>(lambda_bias);
    for (T& v : theta["Q.alpha"]) v *= T(0.1);
    for (T& v : theta["Q.alpha.bias"]) v = static_cast<T>(alpha_bias);
    return theta;
}

TEST_CASE_TEMPLATE("status: a contraction converges and its counts fit", T, float, double) {
    const index B = 19, tokens = 7;
    const auto x = normal<T>({B, tokens, 3}, 1);
    for (const index C : schedules) {
        CAPTURE(C);
        fprnn::layer l(rnn<1>(), chunked{.length = C, .tolerance = 1e-4, .ell_max = 200});
        const auto theta = parameters<T>(l, 0, 0);
        const auto sol = l(theta, x);
        CHECK(sol.all_converged());
        for (std::size_t b = 0; b < 19; ++b) {
            CHECK(sol.tokens_converged[b] == tokens);
            CHECK(sol.residual[b] < 1e-4);
            CHECK(sol.iterations[b] > 1);
            const index chunks = C == 1 ? 7 : C == 3 ? 3 : 1;
            CHECK(sol.total_iterations[b] >= sol.iterations[b] + chunks - 1);
            CHECK(sol.total_iterations[b] <= sol.iterations[b] * chunks);
        }
        if (C != 1) continue;
        index total = 0;
        int most = 0;
        tensor<T> carry;
        for (index t = 0; t < tokens; ++t) {
            auto one = l(theta, fprnn::testing::tokens(x, t, 1), carry);
            total += one.total_iterations[3];
            most = std::max(most, one.iterations[3]);
            carry = std::move(one.carry);
        }
        CHECK(total == sol.total_iterations[3]);
        CHECK(most == sol.iterations[3]);
    }
}

TEST_CASE("status: a token that its own iterate does not enter has converged after one evaluation") {
    using namespace fprnn::symbols;
    const auto f = fixed_point(tanh(fprnn::linear<"B">(in) + fprnn::linear<"A">(shift(prev))));
    for (const fprnn::stop& stop : {fprnn::stop(fprnn::iterations{5}), fprnn::residual{1e-3} || fprnn::iterations{5}}) {
        const fprnn::layer l(f, fprnn::method{.schedule = {.length = 1}, .stop = stop});
        const auto sol = l(fprnn::init<double>(l, size), normal({2, 7, 3}, 1));
        CHECK(sol.all_converged());
        CHECK(sol.iterations == std::vector<int>(2, 1));
        CHECK(sol.tokens_converged == std::vector<index>(2, 7));
        CHECK(sol.work.evaluations == 7 * fprnn::eigen::tile);
    }
}

TEST_CASE_TEMPLATE("status: a slow contraction ends with max_iterations", T, float, double) {
    const auto x = normal<T>({3, 4, 3}, 1);
    for (const index C : schedules) {
        CAPTURE(C);
        fprnn::layer l(rnn<1>(), chunked{.length = C, .tolerance = 1e-5, .ell_max = 40});
        const auto sol = l(parameters<T>(l, -8, 3), x);
        for (std::size_t b = 0; b < 3; ++b) {
            CHECK(sol.status[b] == status::max_iterations);
            CHECK(sol.iterations[b] == 40);
            CHECK(sol.residual[b] >= 1e-5);
            CHECK(sol.tokens_converged[b] < 4);
        }
    }
}

TEST_CASE_TEMPLATE("status: an expansive map is diverged, also when it overflows", T, float, double) {
    const auto x = normal<T>({3, 6, 3}, 1);
    for (const index C : schedules)
        for (const int ell_max : {20, 100, 3000}) {
            CAPTURE(C);
            CAPTURE(ell_max);
            fprnn::layer l(rnn<2>(), chunked{.length = C, .tolerance = 1e-4, .ell_max = ell_max});
            const auto sol = l(parameters<T>(l, -8, 8), x);
            for (std::size_t b = 0; b < 3; ++b) {
                CHECK(sol.status[b] == status::diverged);
                CHECK(sol.iterations[b] <= ell_max);
                CHECK(sol.tokens_converged[b] < 6);
            }
        }
}

/// FP-Mamba with reflection_scale = 2, λ near 0 (Δ = 5), b = 0 and D = −1: y ↦ LayerNorm(−Qx − 2 ū ūᵀ y).
TEST_CASE_TEMPLATE("status: an orbit of period 2 is diverged and never converged", T, float, double) {
    const auto x = normal<T>({3, 4, 4}, 1);
    for (const index C : schedules) {
        CAPTURE(C);
        const auto run = [&](int ell_max) {
            fprnn::layer l(fprnn::models::fp_mamba<1, 2>(),
                           chunked{.length = C, .tolerance = 1e-4, .ell_max = ell_max});
            auto theta = fprnn::init<T>(l, {.d_in = 4, .d_inner = 6, .d_state = 2}, fprnn::seed{1});
            for (T& v : theta["x"]) v *= T(0.01);
            for (T& v : theta["b"]) v = 0;
            for (T& v : theta["D"]) v = -1;
            for (T& v : theta["delta.bias"]) v = 5;
            for (T& v : theta["Q.alpha.bias"]) v = 8;
            return l(theta, x);
        };
        const auto sol = run(200);
        for (std::size_t b = 0; b < 3; ++b) {
            CHECK(sol.status[b] == status::diverged);
            CHECK(sol.iterations[b] == 200);
            CHECK(sol.tokens_converged[b] == 0);
            CHECK(sol.residual[b] > 0.1);
        }
        if (C != fprnn::whole_sequence)
            continue;  // f sees one orbit; later chunks would see where the last one stopped
        CHECK(distance(sol.value, run(202).value) <= 1e-3 * largest(sol.value));
        CHECK(distance(sol.value, run(201).value) >= 0.1 * largest(sol.value));
        for (const int ell_max : {1, 2, 3, 5, 50, 51})
            for (const status s : run(ell_max).status) CHECK(s != status::converged);
    }
}

TEST_CASE_TEMPLATE("status: NaN and infinity in x are nonfinite, and the neighbours do not notice", T, float, double) {
    const index B = 21, tokens = 7, bad = 5, bad_token = 3;
    const auto clean = normal<T>({B, tokens, 3}, 1), y_bar = normal<T>({B, tokens, 5}, 2);
    for (const T poison : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()})
        for (const index C : schedules) {
            CAPTURE(C);
            CAPTURE(poison);
            auto x = clean;
            x(bad, bad_token, 1) = poison;
            fprnn::layer l(rnn<1>(), chunked{.length = C, .tolerance = 1e-5, .ell_max = 100});
            const auto theta = parameters<T>(l, 0, 0);
            const auto got = differentiate(l, theta, x, y_bar);
            CHECK(got.sol.status[bad] == status::nonfinite);
            CHECK(got.sol.tokens_converged[bad] == (C == fprnn::whole_sequence ? 0 : 3));
            CHECK_FALSE(got.adjoint.status[bad] == status::converged);
            for (index b = 0; b < B; ++b) {
                if (b == bad) continue;
                CAPTURE(b);
                const auto alone = differentiate(l, theta, sequences(clean, b, 1), sequences(y_bar, b, 1));
                CHECK(got.sol.status[static_cast<std::size_t>(b)] == status::converged);
                CHECK(got.sol.iterations[static_cast<std::size_t>(b)] == alone.sol.iterations[0]);
                CHECK(same_bits(sequences(got.sol.value, b, 1), alone.sol.value));
                CHECK(same_bits(sequences(got.x_bar, b, 1), alone.x_bar));
                CHECK(same_bits(sequences(got.sol.carry, b, 1), alone.sol.carry));
            }
        }
}

TEST_CASE_TEMPLATE("status: NaN in any parameter is nonfinite", T, float, double) {
    const auto x = normal<T>({2, 4, 3}, 1);
    for (const index C : schedules) {
        fprnn::layer l(rnn<1>(), chunked{.length = C});
        const auto clean = parameters<T>(l, 0, 0);
        for (const auto& p : clean.entries()) {
            CAPTURE(p.name);
            auto theta = clean;
            theta[p.name][0] = std::numeric_limits<T>::quiet_NaN();
            for (const status s : l(theta, x).status) CHECK(s == status::nonfinite);
        }
    }
}

TEST_CASE_TEMPLATE("status: a diverging sequence leaves its neighbours as they are alone", T, float, double) {
    // The alpha of a sequence follows its own x: one is contractive, the other is not.
    fprnn::layer l(rnn<2>(), chunked{.tolerance = 1e-5, .ell_max = 300});
    auto theta = parameters<T>(l, -1, 0);
    for (T& v : theta["Q.alpha"]) v = 0;
    theta["Q.alpha"](0, 0) = 1;
    auto x = normal<T>({4, 5, 3}, 1);
    for (index b = 0; b < 4; ++b)
        for (index t = 0; t < 5; ++t) x(b, t, 0) = b == 2 ? T(6) : T(-1);
    for (const index C : schedules) {
        CAPTURE(C);
        l.schedule.length = C;
        const auto sol = l(theta, x);
        CHECK(sol.status[2] == status::diverged);
        for (const index b : {0, 1, 3}) {
            const auto alone = l(theta, sequences(x, b, 1));
            CHECK(sol.status[static_cast<std::size_t>(b)] == status::converged);
            CHECK(sol.total_iterations[static_cast<std::size_t>(b)] == alone.total_iterations[0]);
            CHECK(same_bits(sequences(sol.value, b, 1), alone.value));
        }
    }
}

TEST_CASE("status: the adjoint's solve has one too") {
    const auto x = normal({3, 6, 3}, 1), y_bar = normal({3, 6, 5}, 2);
    for (const index C : schedules) {
        CAPTURE(C);
        fprnn::layer l(rnn<1>(), chunked{.length = C}, fprnn::implicit{.tolerance = 1e-10, .ell_max = 100});
        const auto theta = parameters<double>(l, 0, 0);
        const auto solved = differentiate(l, theta, x, y_bar);
        CHECK(solved.adjoint.all_converged());
        for (std::size_t b = 0; b < 3; ++b) {
            CHECK(solved.adjoint.tokens_converged[b] == 6);
            CHECK(solved.adjoint.residual[b] < 1e-10);
        }
        l.adjoint = fprnn::implicit{.tolerance = 1e-10, .ell_max = 2};
        // The token of a compact mixer is solved at once.
        for (const status s : differentiate(l, theta, x, y_bar).adjoint.status)
            CHECK(s == (C == 1 ? status::converged : status::max_iterations));
        auto broken = y_bar;
        broken(1, 5, 0) = std::numeric_limits<double>::quiet_NaN();
        l.adjoint = fprnn::implicit{};
        const auto half = differentiate(l, theta, x, broken);
        CHECK(half.adjoint.status[0] == status::converged);
        CHECK(half.adjoint.status[1] == status::nonfinite);
        CHECK(half.adjoint.status[2] == status::converged);
    }
}

TEST_CASE("status: every one has its name") {
    CHECK(std::string(to_string(status::converged)) == "converged");
    CHECK(std::string(to_string(status::max_iterations)) == "max_iterations");
    CHECK(std::string(to_string(status::diverged)) == "diverged");
    CHECK(std::string(to_string(status::nonfinite)) == "nonfinite");
}

}  // namespace
