#include "tools.hpp"

#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::index;
using fprnn::iterations;
using fprnn::linear;
using fprnn::method;
using fprnn::residual;
using fprnn::tensor;

/// A solver in ten lines: half of the step, whatever it is, and the whole one every third time.
struct every_third {
    index memory(index) const { return 1; }
    template <class T>
    void next(const fprnn::solver_step<T>& s) const {
        s.memory[0] += 1;  // as `ell`, which tests that memory begins with zeros
        const bool whole = static_cast<int>(s.memory[0]) % 3 == 0 && s.ell == static_cast<int>(s.memory[0]);
        for (index i = 0; i < s.n; ++i) s.y[i] = whole ? s.f[i] : (s.f[i] + s.y[i]) / 2;
    }
};
/// A stop in five: the step itself is small.
struct small_step {
    double most;
    bool operator()(const fprnn::iteration& now) const { return now.step < most; }
};
/// An adjoint in three lines: Neumann's series, relaxed, until it has converged.
struct relaxed {
    void operator()(fprnn::adjoint_chunk& w) const {
        for (int k = 0; k < 2000 && w.apply(0.9) > 1e-14; ++k) continue;
    }
};
struct never {
    bool operator()(const fprnn::iteration&) const { return false; }
};

auto dense() {
    const auto third = fprnn::constant<1, 3>();
    return fixed_point(tanh(fprnn::affine<"u">(cat(in, shift(prev))) + third * linear<"w">(prev)));
}
auto mixed() {
    const auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    const auto Q = fprnn::contractive<9, 10>(fprnn::householder<2>(cat(in, shift(prev))));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * linear<"B">(in) + (I - Q) * prev)));
}
std::vector<fprnn::solver> solvers() {
    return {fprnn::picard{}, fprnn::damped{.start = 0.9, .decay = 0.9, .patience = 3}, fprnn::anderson{},
            every_third{}};
}

template <class Expression>
void check_solvers(Expression expression) {
    const fprnn::dims sizes{.d_in = 4, .d_inner = 6};
    const auto tight = residual{1e-13} || iterations{2000};
    const fprnn::layer reference(expression, {.length = 1, .tolerance = 1e-13, .ell_max = 2000}, fprnn::unrolled{});
    auto theta = fprnn::init<double>(reference, sizes, fprnn::seed{2});
    shake(theta, 0.1);
    const auto x = normal({19, 5, 4}, 1), y_bar = normal({19, 5, 6}, 2);
    const auto expected = differentiate(reference, theta, x, y_bar);
    int which = 0;
    for (const fprnn::solver& solver : solvers()) {
        for (const index C : {index{1}, index{2}, fprnn::whole_sequence})
            for (const fprnn::adjoint& adjoint : {fprnn::adjoint(fprnn::implicit{.tolerance = 1e-13, .ell_max = 2000}),
                                                  fprnn::adjoint(fprnn::neumann{200}), fprnn::adjoint(relaxed{})}) {
                CAPTURE(which);
                CAPTURE(C);
                CAPTURE(adjoint.index());
                const fprnn::layer l(
                    expression, method{.schedule = {.length = C}, .solver = solver, .stop = tight, .adjoint = adjoint});
                const auto got = differentiate(l, theta, x, y_bar);
                CHECK(got.sol.all_converged());
                CHECK(distance(got.sol.value, expected.sol.value) < 1e-11);
                CHECK(distance(got.theta_bar, expected.theta_bar) < 1e-9 * largest(expected.theta_bar));
                CHECK(distance(got.x_bar, expected.x_bar) < 1e-9 * largest(expected.x_bar));
            }
        ++which;
    }
}

TEST_CASE("method: every solver finds the same fixed point, and every adjoint its gradient") {
    check_solvers(dense());
    check_solvers(mixed());
}

TEST_CASE("method: short forms say what the four values do") {
    const auto x = normal<float>({5, 6, 4}, 1);
    const fprnn::layer by_schedule(mixed(), {.length = 2, .tolerance = 1e-3, .ell_max = 7});
    const fprnn::layer by_method(mixed(), method{.schedule = {.length = 2}, .stop = residual{1e-3} || iterations{7}});
    const auto theta = fprnn::init<float>(by_schedule, {.d_in = 4, .d_inner = 6});
    CHECK(same_bits(by_schedule(theta, x).value, by_method(theta, x).value));
    CHECK(by_schedule(theta, x).total_iterations == by_method(theta, x).total_iterations);
}

TEST_CASE("method: damping converges where Picard's iteration does not, and its step falls when residuals do not") {
    // y = u − 6/5 y
    const auto f = fixed_point(linear<"u">(in) - fprnn::constant<6, 5>() * prev);
    const auto x = normal({3, 2, 4}, 1);
    for (const index C : {index{1}, index{2}}) {
        const fprnn::layer plain(f, {.length = C, .tolerance = 1e-10, .ell_max = 400});
        const auto theta = fprnn::init<double>(plain, {.d_in = 4, .d_inner = 5});
        CHECK(plain(theta, x).status[0] == fprnn::status::diverged);
        const auto by = [&](fprnn::damped d) {
            return fprnn::layer(
                f, method{.schedule = {.length = C}, .solver = d, .stop = residual{1e-10} || iterations{400}})(theta,
                                                                                                               x);
        };
        const auto half = by({.start = 0.5, .decay = 1}), patient = by({.start = 1, .decay = 0.5, .patience = 4});
        CHECK(half.all_converged());
        CHECK(patient.all_converged());
        CHECK(distance(half.value, patient.value) < 1e-9);
        // With δ = 1 residuals are those of y ↦ u − 6/5 y: they stay where they are, relative to y. Four
        // evaluations are waited for.
        CHECK(patient.iterations[0] > half.iterations[0]);
    }
}

TEST_CASE("method: damping may fall below the least number of the type, whatever stops the iteration") {
    // y = u − 3 tanh(4y): residuals do not fall, δ is halved at every evaluation, at last to 0 in float.
    const auto f = fixed_point(linear<"B">(in) - fprnn::constant<3>() * tanh(fprnn::constant<4>() * prev));
    const auto x = normal<float>({2, 4, 3}, 1);
    for (const index C : {index{1}, index{2}, index{4}}) {
        const auto solve = [&](const fprnn::stop& s) {
            const fprnn::damped falling{.start = 1, .decay = 0.5, .patience = 1};
            const fprnn::layer l(f, method{.schedule = {.length = C}, .solver = falling, .stop = s});
            return l(fprnn::init<float>(l, {.d_in = 3, .d_inner = 3}), x);
        };
        const auto ends = residual{1e-4} || iterations{1000};
        const auto expected = solve(ends), got = solve(ends || fprnn::stop(never{}));
        CHECK(expected.status[0] != fprnn::status::converged);
        CHECK(expected.iterations[0] == 1000);
        CHECK(got.status == expected.status);
        CHECK(got.iterations == expected.iterations);
        CHECK(got.residual == expected.residual);
        CHECK(got.tokens_converged == expected.tokens_converged);
        CHECK(same_bits(got.value, expected.value));
    }
}

TEST_CASE("method: Anderson's acceleration takes fewer evaluations than Picard's iteration where that is slow") {
    const auto f = fixed_point(linear<"u">(in) + fprnn::constant<19, 20>() * tanh(prev));
    const auto x = normal({4, 3, 4}, 1, 0.1);
    const auto solve = [&](fprnn::solver s, index C) {
        const fprnn::layer l(
            f, method{.schedule = {.length = C}, .solver = s, .stop = residual{1e-10} || iterations{2000}});
        return l(fprnn::init<double>(l, {.d_in = 4, .d_inner = 5}), x);
    };
    for (const index C : {index{1}, index{3}}) {
        const auto slow = solve(fprnn::picard{}, C), fast = solve(fprnn::anderson{}, C);
        REQUIRE(slow.all_converged());
        REQUIRE(fast.all_converged());
        CHECK(distance(slow.value, fast.value) < 1e-7);
        MESSAGE("Picard " << slow.iterations[0] << ", Anderson " << fast.iterations[0]);
        CHECK(4 * fast.iterations[0] < slow.iterations[0]);
    }
}

TEST_CASE("method: a stop of one's own ends what it says, sequence by sequence") {
    const auto x = normal({18, 4, 4}, 1);
    for (const index C : {index{1}, index{4}}) {
        const auto solve = [&](const fprnn::stop& s) {
            const fprnn::layer l(dense(), method{.schedule = {.length = C}, .stop = s});
            return l(fprnn::init<double>(l, {.d_in = 4, .d_inner = 6}), x);
        };
        const auto loose = solve(small_step{1e-2} || iterations{50}), tight = solve(small_step{1e-8} || iterations{50});
        CHECK(loose.all_converged());
        CHECK(tight.all_converged());
        CHECK(loose.iterations[0] < tight.iterations[0]);
        CHECK(solve(iterations{3}).iterations == std::vector<int>(18, 3));
        // The first of several ends it.
        CHECK(solve(small_step{1e-8} || residual{1e-1}).iterations[0] <= loose.iterations[0]);
        const auto endless = solve(never{});
        CHECK(endless.status[0] == fprnn::status::max_iterations);
        CHECK(endless.iterations[0] == fprnn::stop::most_iterations);
    }
}

TEST_CASE("method: ell_max is what was said, also where it is more than what bounds a stop that says nothing") {
    const auto slow = fixed_point(fprnn::parameter<"a">() * prev + linear<"B">(in));
    const fprnn::chunked schedule{.length = fprnn::whole_sequence, .tolerance = 1e-9, .ell_max = 30000};
    for (const method& how :
         {method{.schedule = schedule}, method{.schedule = {.length = 1, .tolerance = 1e-9, .ell_max = 30000}},
          method{.stop = iterations{30000} || residual{1e-9}},
          method{.schedule = {.length = fprnn::whole_sequence},
          .stop = fprnn::share{.of = 1, .tolerance = 1e-9} || iterations{30000}}}) {
        const fprnn::layer l(slow, how);
        auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 2});
        for (double& a : theta["a"]) a = 0.9992;
        const auto sol = l(theta, normal({1, 1, 3}, 3));
        CHECK(sol.all_converged());
        CHECK(sol.iterations[0] > fprnn::stop::most_iterations);
    }
    CHECK((fprnn::stop(residual{1e-3}) || iterations{5}).ell_max() == 5);
    CHECK((fprnn::stop(iterations{7}) || iterations{5}).ell_max() == 5);
    CHECK((residual{1e-3} || residual{1e-2}).ell_max() == fprnn::stop::most_iterations);
}

TEST_CASE("method: GMRES applies J_hᵀ no more often than it may, but twice at least") {
    const auto Q = fprnn::kronecker(in);
    for (const auto& [most, applied] : {std::pair(1, 2), {2, 2}, {3, 2}, {4, 4}, {5, 5}, {8, 8}}) {
        const auto l = fixed_point(tanh(Q * linear<"B">(in) + (I - Q) * prev), {.length = 1},
                                   fprnn::implicit{.tolerance = 1e-14, .ell_max = most});
        const auto theta = fprnn::init<double>(l, {.d_in = 3, .d_inner = 16});
        const auto got = differentiate(l, theta, normal({1, 1, 3}, 1), normal({1, 1, 16}, 2));
        CHECK(got.adjoint.iterations[0] == applied);
        CHECK(got.adjoint.status[0] == fprnn::status::max_iterations);
    }
}

/// The published loop by plain loops, for y = a ⊙ y + x, of which one channel diverges until δ has fallen.
struct plain_authors {
    std::vector<std::vector<double>> y;
    int ell = 0;

    plain_authors(const tensor<double>& x, const std::vector<double>& a, double quantile, double threshold, int most,
                  double start, double decay) {
        const index B = x.shape()[0], n = x.shape()[1] * x.shape()[2], D = x.shape()[2];
        const auto size = static_cast<std::size_t>(B);
        y.assign(size, std::vector<double>(static_cast<std::size_t>(n), 0));
        std::vector<double> best(size, HUGE_VAL), delta(size, start);
        std::vector<int> patience(size, 15);
        while (true) {
            ++ell;
            auto f = y;
            for (std::size_t b = 0; b < size; ++b) {
                double worst = 0;
                for (index t = 0; t < n / D; ++t) {
                    double change = 0, scale = 0;
                    for (index d = 0; d < D; ++d) {
                        const auto i = static_cast<std::size_t>(t * D + d);
                        f[b][i] = a[static_cast<std::size_t>(d)] * y[b][i] + x[static_cast<index>(b) * n + t * D + d];
                        change = larger(change, std::abs(f[b][i] - y[b][i]));
                        scale = larger(scale, std::abs(f[b][i]));
                    }
                    worst = larger(worst, change / (scale + 1e-8));
                }
                next_[b] = delta[b];
                if (worst < best[b])
                    best[b] = worst, patience[b] = 15;
                else if (--patience[b] == 0)
                    delta[b] *= decay, patience[b] = 15;
            }
            if (fprnn::engine::quantile(best, quantile) < threshold || ell >= most) return;
            for (std::size_t b = 0; b < size; ++b)
                for (std::size_t i = 0; i < f[b].size(); ++i) y[b][i] = next_[b] * f[b][i] + (1 - next_[b]) * y[b][i];
        }
    }

private:
    std::vector<double> next_ = std::vector<double>(64);
};

TEST_CASE("method: authors() is the published loop, batch by batch") {
    const auto f = fixed_point(fprnn::parameter<"a">() * prev + linear<"u">(in));
    const index B = 21, T = 3, D = 4;
    auto x = normal({B, T, D}, 1);
    const std::vector<double> a{0.5, -1.2, 0.9, -0.3};
    for (const double of : {0.5, 0.75, 1.0})
        for (const double tolerance : {0.1, 1e-3}) {
            CAPTURE(of);
            CAPTURE(tolerance);
            const fprnn::layer l(f, fprnn::authors{.of = of, .tolerance = tolerance, .ell_max = 3000});
            auto theta = fprnn::init<double>(l, {.d_in = D, .d_inner = D});
            std::copy(a.begin(), a.end(), theta["a"].data());
            for (index i = 0; i < D; ++i)
                for (index j = 0; j < D; ++j) theta["u"].data()[i * D + j] = i == j;
            const plain_authors expected(x, a, of, tolerance, 3000, 0.99, 0.9);
            const auto got = l(theta, x, {}, fprnn::eigen(1));
            CHECK(got.iterations == std::vector<int>(static_cast<std::size_t>(B), expected.ell));
            for (index b = 0; b < B; ++b)
                for (index i = 0; i < T * D; ++i) {
                    const double y = expected.y[static_cast<std::size_t>(b)][static_cast<std::size_t>(i)],
                                 value = a[static_cast<std::size_t>(i % D)] * y + x[b * T * D + i];
                    CHECK(got.value[b * T * D + i] == doctest::Approx(value).epsilon(1e-14));
                }
            const auto threads = l(theta, x, {}, fprnn::eigen(3));
            CHECK(same_bits(threads.value, got.value));
            CHECK(same_bits(threads.carry, got.carry));
            const index converged = std::count(got.status.begin(), got.status.end(), fprnn::status::converged);
            CHECK(converged >= static_cast<index>(of * static_cast<double>(B - 1)));
        }
}

TEST_CASE("method: a share of a batch ends by its own rules, and says of the rest what became of it") {
    const auto f = fixed_point(fprnn::parameter<"a">() * prev + linear<"u">(in));
    const auto x = normal({5, 3, 4}, 1);
    const auto solve_of = [&](const tensor<double>& of, const fprnn::solver& s, const fprnn::stop& until) {
        const fprnn::layer l(f, method{.schedule = fprnn::sequential(), .solver = s, .stop = until});
        auto theta = fprnn::init<double>(l, {.d_in = 4, .d_inner = 4});
        std::fill_n(theta["a"].data(), 4, 0.5);
        return l(theta, of);
    };
    const auto solve = [&](const fprnn::solver& s, const fprnn::stop& until) { return solve_of(x, s, until); };
    // Steps that are short all the time end an iteration where that was said alone.
    const fprnn::damped short_steps{.start = 5e-4, .decay = 1};
    const auto all = [](const auto& sol, fprnn::status s) {
        return std::count(sol.status.begin(), sol.status.end(), s) == 5;
    };
    const auto goes_on = solve(short_steps, fprnn::share{.of = 1, .tolerance = 0.5} || iterations{100000});
    CHECK(goes_on.iterations[0] > 100);
    CHECK(all(goes_on, fprnn::status::converged));
    const auto ends =
        solve(short_steps, fprnn::share{.of = 1, .tolerance = 0.5, .least_delta = 1e-3} || iterations{100000});
    CHECK(ends.iterations[0] == 1);
    CHECK(all(ends, fprnn::status::max_iterations));
    // A sequence that is over keeps its δ, which the others do not wait for.
    auto broken = x;
    broken(2, 0, 0) = NAN;
    const fprnn::damped falling{.start = 1, .decay = 0.5, .patience = 1};
    const auto until = fprnn::share{.of = 1, .tolerance = 1e-300, .least_delta = 1e-3} || iterations{5000};
    const auto in_part = solve_of(broken, falling, until);
    CHECK(in_part.status[2] == fprnn::status::nonfinite);
    for (const std::size_t b : {0U, 1U, 3U, 4U}) CHECK(in_part.iterations[b] < 200);
    // Where all have met another residual they have converged, though the share's is tighter.
    const auto looser =
        solve(fprnn::picard{}, fprnn::share{.of = 1, .tolerance = 1e-12} || fprnn::residual{.tolerance = 1e-2});
    CHECK(all(looser, fprnn::status::converged));
    CHECK(*std::max_element(looser.residual.begin(), looser.residual.end()) > 1e-12);
    CHECK_THROWS_WITH_AS(fprnn::stop(fprnn::share{.least_delta = -1}), "share: least_delta must lie in [0, 1], got -1",
                         fprnn::argument_error);
}

TEST_CASE("method: a share of a batch is solved chunk by chunk, and differentiated") {
    const auto expression = mixed();
    const auto x = normal({37, 5, 4}, 1), y_bar = normal({37, 5, 6}, 2);
    const auto by = [&](index C) {
        return fprnn::layer(expression, method{.schedule = {.length = C},
                                               .stop = fprnn::share{.of = 1, .tolerance = 1e-13} || iterations{3000},
                                               .adjoint = fprnn::implicit{.tolerance = 1e-13, .ell_max = 500}});
    };
    const auto theta = fprnn::init<double>(by(1), {.d_in = 4, .d_inner = 6}, fprnn::seed{2});
    const auto expected = differentiate(by(5), theta, x, y_bar);
    for (const index C : {index{1}, index{2}}) {
        const auto got = differentiate(by(C), theta, x, y_bar, fprnn::eigen(2));
        CHECK(distance(got.sol.value, expected.sol.value) < 1e-8);
        CHECK(distance(got.theta_bar, expected.theta_bar) < 1e-7 * largest(expected.theta_bar));
    }
    // The same for all of them.
    CHECK(*std::min_element(expected.sol.iterations.begin(), expected.sol.iterations.end()) ==
          expected.sol.iterations[0]);
    CHECK(*std::max_element(expected.sol.iterations.begin(), expected.sol.iterations.end()) ==
          expected.sol.iterations[0]);
}

TEST_CASE("method: the largest number of iterations of a batch is drawn from a gamma distribution, rounded up") {
    // The probabilities of more than k: of Γ(4, 1), and of Γ(1/2, 8), which is drawn in another way.
    const auto four = [](double k) { return std::exp(-k) * (1 + k + k * k / 2 + k * k * k / 6); };
    const auto half = [](double k) { return std::erfc(std::sqrt(k / 8)); };
    const auto check = [](fprnn::gamma_iterations drawn, const auto& more_than) {
        constexpr int n = 20000;
        std::array<int, 12> more{};
        for (std::uint64_t b = 0; b < n; ++b)
            for (std::size_t k = 0; k < more.size(); ++k) more[k] += drawn.at(b).most > static_cast<int>(k);
        CHECK(more[0] == n);
        for (std::size_t k = 1; k < more.size(); ++k) {
            const double p = more_than(static_cast<double>(k)), deviation = std::sqrt(p * (1 - p) / n);
            CAPTURE(k);
            CHECK(std::abs(more[k] / double(n) - p) < 4 * deviation);
        }
    };
    check({.shape = 4, .scale = 1, .seed = {3}}, four);
    check({.shape = 0.5, .scale = 8, .seed = {3}}, half);
    CHECK(fprnn::gamma_iterations{.seed = {1}}.at(7).most == fprnn::gamma_iterations{.seed = {1}}.at(7).most);
}

TEST_CASE("method: what is out of range is refused") {
    using fprnn::argument_error;
    CHECK_THROWS_WITH_AS(fprnn::stop(residual{0}), "residual: tolerance must be positive and finite, got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::stop(iterations{0}), "iterations: most must be at least 1, got 0", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::stop(fprnn::share{.of = 1.5}), "share: of must lie in (0, 1], got 1.5", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::stop(fprnn::share{.of = 0}), "share: of must lie in (0, 1], got 0", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::share{} || fprnn::share{}, "stop: a || b: one share of a batch is expected, got two",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::solver(fprnn::damped{.patience = 0}), "damped: patience must be at least 1, got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::solver(fprnn::damped{.start = 0}), "damped: start must lie in (0, 1], got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::solver(fprnn::damped{.decay = 2}), "damped: decay must lie in (0, 1], got 2",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::solver(fprnn::anderson{.history = 0}),
                         "anderson: history must lie between 1 and 16, got 0", argument_error);
    CHECK_THROWS_WITH_AS((fprnn::gamma_iterations{.shape = 0}.at(0)),
                         "gamma_iterations: shape must be positive and finite, got 0", argument_error);
    CHECK_THROWS_WITH_AS(
        fprnn::layer(dense(), method{.solver = fprnn::damped{}, .adjoint = fprnn::unrolled{}}),
        "layer: unrolled and truncated{k} repeat y <- f(y): expected solver picard{}, got another; implicit "
        "and neumann{k} are for all",
        argument_error);
}

}  // namespace
