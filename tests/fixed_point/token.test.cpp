#include <doctest/doctest.h>

#include <fixed_point/tools.hpp>

#include <fprnn/models/fp_mamba.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

/// One-token chunks whose mixer is compact are solved in R numbers. What they must agree with is the same
/// layer with a mixer that has no compact form, which is iterated through f and whose adjoint is found by
/// GMRES.
namespace {

using namespace fprnn::testing;
using namespace fprnn::symbols;
using fprnn::chunked;
using fprnn::implicit;
using fprnn::index;
using fprnn::status;

constexpr auto s = cat(in, shift(prev));
constexpr auto lambda = sigmoid(fprnn::affine<"lambda">(in));
constexpr auto B = fprnn::linear<"B">(in);

struct compact {
    template <int R, int Scale = 1>
    static constexpr auto mixer() {
        return fprnn::householder<R, "Q", Scale>(s);
    }
};
struct compact_here {
    template <int R, int Scale = 1>
    static constexpr auto mixer() {
        return own_householder<R, Scale>(s);
    }
};
struct plain {
    template <int R, int Scale = 1>
    static constexpr auto mixer() {
        return plain_householder<R, Scale>(s);
    }
};

struct scanned {
    template <class M>
    static auto f() {
        auto Q = M::template mixer<2>();
        return scan(lambda, (1 - lambda) * (Q * B + (I - Q) * prev));
    }
};
struct scanned_and_rms_normed {
    template <class M>
    static auto f() {
        auto Q = M::template mixer<3>();
        return fprnn::rms_norm<"norm">(scan(lambda, fprnn::constant<1, 2>() * (Q * B + (I - Q) * prev) - B));
    }
};
struct layer_normed_mamba {
    template <class M>
    static auto f() {
        auto Q = M::template mixer<4>();
        auto delta = softplus(fprnn::affine<"delta">(in));
        auto b = normalise(fprnn::linear<"b", fprnn::d_state>(s));
        auto c = normalise(fprnn::linear<"c", fprnn::d_state>(s));
        auto x_tilde = Q * B + (I - Q) * prev;
        return fprnn::layer_norm<"norm">(fprnn::selective_scan<"ssm">(delta, b, c, x_tilde) +
                                         fprnn::parameter<"D">() * x_tilde);
    }
};
/// No Q v, no recurrence but y_{t−1}, and 2α.
struct complement_alone {
    template <class M>
    static auto f() {
        auto Q = M::template mixer<1, 2>();
        return B + lambda * shift(prev) - fprnn::constant<1, 3>() * ((I - Q) * prev);
    }
};

template <class Layer>
constexpr bool reducible = Layer::is_reduced;

TEST_CASE_TEMPLATE("token: in R numbers and through f, the solution, its status and its gradient are the same", F,
                   scanned, scanned_and_rms_normed, layer_normed_mamba, complement_alone) {
    for (const int D : {5, 16, 19}) {
        CAPTURE(D);
        const fprnn::dims size{.d_in = 4, .d_inner = D, .d_state = 3};
        fprnn::layer reduced(fixed_point(F::template f<compact>()), {.tolerance = 1e-13, .ell_max = 3000},
                             implicit{.tolerance = 1e-13, .ell_max = 500});
        fprnn::layer iterated(fixed_point(F::template f<plain>()), reduced.schedule, reduced.adjoint);
        static_assert(reducible<decltype(reduced)>);
        static_assert(!reducible<decltype(iterated)>);
        auto theta = fprnn::init<double>(reduced, size);
        shake(theta, 0.3);
        const auto x = normal({19, 6, 4}, 1), y_bar = normal({19, 6, D}, 2);
        const auto got = differentiate(reduced, theta, x, y_bar), expected = differentiate(iterated, theta, x, y_bar);
        REQUIRE(expected.sol.all_converged());
        REQUIRE(expected.adjoint.all_converged());
        CHECK(got.sol.all_converged());
        CHECK(got.adjoint.all_converged());
        CHECK(distance(got.sol.value, expected.sol.value) <= 1e-10 * largest(expected.sol.value));
        CHECK(distance(got.sol.carry, expected.sol.carry) <= 1e-10 * largest(expected.sol.carry));
        CHECK(distance(got.x_bar, expected.x_bar) <= 1e-9 * largest(expected.x_bar));
        CHECK(distance(got.theta_bar, expected.theta_bar) <= 1e-9 * largest(expected.theta_bar));

        reduced.schedule.tolerance = iterated.schedule.tolerance = 1e-5;
        const auto few = reduced(theta, x), many = iterated(theta, x);
        CHECK(few.all_converged());
        CHECK(few.work.evaluations < many.work.evaluations);
        for (std::size_t i = 0; i < few.iterations.size(); ++i) {
            CHECK(few.residual[i] < 1e-5);
            // The same iterates; whether they are near enough is told in another norm.
            CHECK(std::abs(few.iterations[i] - many.iterations[i]) <= 3 + many.iterations[i] / 2);
        }
    }
}

TEST_CASE_TEMPLATE(
    "token: what does not converge has the status, the iterations and the bits of the iteration through f", F, scanned,
    layer_normed_mamba, complement_alone) {
    const fprnn::dims size{.d_in = 4, .d_inner = 9, .d_state = 3};
    fprnn::layer reduced(fixed_point(F::template f<compact_here>()), {.tolerance = 1e-13});
    fprnn::layer iterated(fixed_point(F::template f<plain>()), reduced.schedule);
    auto theta = fprnn::init<double>(reduced, size);
    const auto x = normal({5, 6, 4}, 1);
    for (const int ell_max : {1, 2, 7}) {
        reduced.schedule.ell_max = iterated.schedule.ell_max = ell_max;
        const auto got = reduced(theta, x), expected = iterated(theta, x);
        CHECK(got.status == expected.status);
        CHECK(got.iterations == expected.iterations);
        CHECK(same_bits(got.value, expected.value));
    }
}

/// Tokens of FP-Mamba can have several fixed points: the one that counts is that which f's own iteration
/// reaches from 0.
TEST_CASE("token: where there are several fixed points, it is the one that the iteration through f reaches") {
    int sequences = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const fprnn::dims size{.d_in = 4, .d_inner = 12, .d_state = 3};
        fprnn::layer reduced(fixed_point(layer_normed_mamba::f<compact>()), {.tolerance = 1e-11, .ell_max = 1000});
        fprnn::layer iterated(fixed_point(layer_normed_mamba::f<plain>()), reduced.schedule);
        auto theta = fprnn::init<double>(reduced, size, fprnn::seed{seed});
        for (double& w : theta["Q.alpha.bias"]) w = 3;
        const auto x = normal({32, 8, 4}, seed, 2);
        const auto got = reduced(theta, x), expected = iterated(theta, x);
        for (index b = 0; b < 32; ++b) {
            const auto i = static_cast<std::size_t>(b);
            CHECK(got.status[i] == expected.status[i]);
            if (expected.status[i] != status::converged) continue;
            ++sequences;
            CHECK(distance(fprnn::testing::sequences(got.value, b, 1),
                           fprnn::testing::sequences(expected.value, b, 1)) <= 1e-8);
        }
    }
    CHECK(sequences > 96);
}

/// A tile of tokens with two reflections, γ, β and g; token 3 is not finite.
template <class Team>
struct tile_of_tokens {
    static constexpr int R = 2;
    static constexpr index D = 19, count = 16, bad = 3;
    using norm = fprnn::layer_norm_function;
    using mixer = fprnn::householder_mixer<R, 2>;
    using iteration = fprnn::kernel::token_iteration<Team, R, norm, double>;
    using backward = fprnn::kernel::token_adjoint<Team, R, norm, double>;

    fprnn::tensor<double> u = normal({count, R*D}, 1), alpha = normal({count, R}, 2), a = normal({count, D}, 3),
                          g = normal({count, D}, 4), gamma = normal({D}, 5), beta = normal({D}, 6),
                          k = normal({count, D}, 7), delta = normal({count, D}, 8), q{{count, mixer::size(D)}};
    fprnn::tensor<double> result{{count, D}}, V{{R * D}}, hat{{D}};
    std::array<double, count> residual{};
    std::array<int, count> iterations{};
    std::vector<double> memory = std::vector<double>(
        static_cast<std::size_t>(count * std::max(iteration::numbers_of_a_token, backward::numbers_of_a_token)));

    tile_of_tokens() {
        result.fill(7);
        for (index i = 0; i < count; ++i) {
            const double* raw[] = {&u(i, 0), &alpha(i, 0)};
            mixer::template prepare<Team, double>(D, raw, &q(i, 0));
        }
        a(bad, 5) = delta(bad, 5) = std::numeric_limits<double>::infinity();
    }
    auto compact(index i) {
        fprnn::kernel::square<double, R> S;
        mixer::template compact<Team, double>(D, &q(i, 0), S);
        return S;
    }
    /// Tokens [first, last) of the tile; places without a token hold zeros.
    void iterate(index first, index last, int ell_max) {
        std::fill(memory.begin(), memory.end(), 0.0);
        iteration tokens(count, memory.data());
        auto a_hat = a;
        for (index i = first; i < last; ++i)
            tokens.reduce(i, D, &q(i, 0), compact(i), &a_hat(i, 0), &g(i, 0), V.data(), gamma.data(), beta.data());
        tokens.iterate(1e-8, ell_max);
        for (index i = first; i < last; ++i)
            iterations[static_cast<std::size_t>(i)] =
                tokens.expand(i, D, &q(i, 0), &a_hat(i, 0), &g(i, 0), gamma.data(), beta.data(), &result(i, 0));
    }
    void solve_adjoint(index first, index last) {
        std::fill(memory.begin(), memory.end(), 0.0);
        backward tokens(count, memory.data());
        for (index i = first; i < last; ++i)
            tokens.reduce(i, D, &q(i, 0), compact(i), &a(i, 0), &g(i, 0), V.data(), hat.data(), gamma.data(),
                          &delta(i, 0), &k(i, 0));
        tokens.solve();
        for (index i = first; i < last; ++i)
            residual[static_cast<std::size_t>(i)] = tokens.expand(i, D, &q(i, 0), &delta(i, 0), &result(i, 0));
    }
};

TEST_CASE_TEMPLATE("token: side by side every token has the iterations and the bits that it has alone", Team,
                   fprnn::serial_team<double>, fprnn::pack_team<double>) {
    using tile = tile_of_tokens<Team>;
    for (const int ell_max : {0, 4, 12, 2000}) {
        CAPTURE(ell_max);
        tile together, alone;
        together.iterate(0, tile::count, ell_max);
        for (index i = 0; i < tile::count; ++i) alone.iterate(i, i + 1, ell_max);
        CHECK(same_bits(together.result, alone.result));
        CHECK(together.iterations == alone.iterations);
        CHECK(together.iterations[tile::bad] == 0);
        const int most = *std::max_element(together.iterations.begin(), together.iterations.end());
        CHECK(most <= ell_max);
        CHECK((most > 12) == (ell_max == 2000));
        for (index i = 0; i < tile::count; ++i)
            if (together.iterations[static_cast<std::size_t>(i)] == 0)
                for (index d = 0; d < tile::D; ++d) CHECK(together.result(i, d) == 7);
    }
}

TEST_CASE_TEMPLATE("token: so has the adjoint, and packs are equivalent to one number at a time", Team,
                   fprnn::serial_team<double>, fprnn::pack_team<double>) {
    using tile = tile_of_tokens<Team>;
    tile together, alone;
    tile_of_tokens<fprnn::serial_team<double>> plain;
    together.solve_adjoint(0, tile::count);
    plain.solve_adjoint(0, tile::count);
    for (index i = 0; i < tile::count; ++i) alone.solve_adjoint(i, i + 1);
    for (index i = 0; i < tile::count; ++i) {
        const double residual = together.residual[static_cast<std::size_t>(i)];
        if (i == tile::bad) {
            CHECK(residual > 1e300);
            continue;
        }
        CHECK(residual <= 1e-13);
        for (index d = 0; d < tile::D; ++d) {
            CHECK(together.result(i, d) == alone.result(i, d));
            CHECK(together.result(i, d) == doctest::Approx(plain.result(i, d)).epsilon(1e-14));
        }
    }
}

/// I − PᵀU Sᵀ of a token whose norm is left out, R = 1: 1 − g α ‖ū‖².
TEST_CASE("token: an adjoint that has no solution is said to have none, and its neighbours keep theirs") {
    using backward = fprnn::kernel::token_adjoint<fprnn::pack_team<double>, 1, fprnn::kernel::no_norm, double>;
    constexpr index D = 4, n = 3;
    const double U[D] = {0.5, 0.5, 0.5, 0.5}, delta[D] = {1, 2, 3, 4}, k[D] = {};
    const fprnn::kernel::square<double, 1> S{{{{1}}}};
    double V[D], hat[D], w[D];
    std::vector<double> memory(n * backward::numbers_of_a_token);
    backward tokens(n, memory.data());
    for (index i = 0; i < n; ++i) {
        const double of = i == 1 ? 1 : 0.25;
        const double g[D] = {of, of, of, of};
        tokens.reduce(i, D, U, S, delta, g, V, hat, nullptr, delta, k);
    }
    tokens.solve();
    CHECK(tokens.expand(0, D, U, delta, w) <= 1e-15);
    for (index d = 0; d < D; ++d) CHECK(w[d] == doctest::Approx(delta[d] + 0.5 * 0.25 * 5 / 0.75).epsilon(1e-15));
    CHECK(tokens.expand(1, D, U, delta, w) >= 0.5);  // far above any tolerance
    CHECK(tokens.expand(2, D, U, delta, w) <= 1e-15);
}

}  // namespace
