#include "models/block_gradients.hpp"
#include "tools.hpp"

#include <fprnn/models/fp_mamba.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

/// Several fixed points in one expression.
namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::affine;
using fprnn::constant;
using fprnn::d_inner;
using fprnn::d_state;
using fprnn::expression;
using fprnn::index;
using fprnn::layer;
using fprnn::linear;
using fprnn::status;
using fprnn::tensor;
using fprnn::whole_sequence;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3};
constexpr auto third = constant<1, 3>();

/// Iterated in all channels, with a map of y_t.
template <expression E>
constexpr auto dense(E x) {
    return fixed_point(third * tanh(linear<"a">(cat(x, shift(prev), prev))));
}
/// Solved in two numbers where the schedule allows it.
template <expression E>
constexpr auto mixed(E x) {
    const auto lambda = sigmoid(affine<"lambda">(x));
    const auto Q = fprnn::contractive<9, 10>(fprnn::householder<2>(cat(x, shift(prev))));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * linear<"B">(x) + (I - Q) * prev)));
}
/// The second reads the first, now and one token before, both read x and y_{t−1}, and what is behind reads
/// both.
constexpr auto one_in_another() {
    constexpr auto y1 = dense(in);
    constexpr auto s = cat(in, y1, shift(y1), shift(prev));
    constexpr auto y2 = fixed_point(third * tanh(linear<"b">(s)) + constant<1, 4>() * (sigmoid(prev) * y1));
    return fprnn::rms_norm<"n">(y2) + y1;
}
/// The same iterated expressions in two fixed points, σ(y_t) and W y_{t−1}, whose weights are then the same.
constexpr auto side_by_side() {
    constexpr auto w = linear<"w">(cat(in, shift(prev)));
    constexpr auto y1 = fixed_point(third * sigmoid(prev) * w);
    constexpr auto y2 = fixed_point(third * (sigmoid(prev) + tanh(w)));
    return y1 * silu(linear<"z">(in)) + y2;
}
/// Three, of two widths, with a mixer, a recurrence with a matrix state and a scan between them.
constexpr auto three() {
    constexpr auto y1 = mixed(in);
    constexpr auto narrow = prev_of<d_state>;
    constexpr auto y2 = fixed_point(third * tanh(linear<"n", d_state>(cat(y1, shift(narrow))) + third * narrow));
    constexpr auto y3 = fixed_point(
        third * tanh(fprnn::selective_scan<"ssm">(softplus(affine<"delta">(cat(in, shift(prev)))), y2,
                                                  linear<"c", d_state>(y1), linear<"v">(y2) + third * prev) +
                     linear<"skip">(in)));
    return linear<"out">(cat(scan(sigmoid(y1), y3), y2));
}

TEST_CASE("stages: gradients are those of differences and of all iterations, for every schedule: one reads another") {
    check_block_gradients(one_in_another(), sizes, 3, 6, 0.1);
}
TEST_CASE("stages: gradients are those of differences and of all iterations, for every schedule: side by side") {
    check_block_gradients(side_by_side(), sizes, 3, 6, 0.1);
}
TEST_CASE(
    "stages: gradients are those of differences and of all iterations, for every schedule: three, of two widths") {
    check_block_gradients(three(), sizes, 3, 6, 0.1);
}

/// What a sequence's iteration did.
void check_equal(const fprnn::convergence& a, const fprnn::convergence& b) {
    CHECK(a.status == b.status);
    CHECK(a.iterations == b.iterations);
    CHECK(a.total_iterations == b.total_iterations);
    CHECK(a.residual == b.residual);
    CHECK(a.tokens_converged == b.tokens_converged);
}
/// Two rows of numbers a sequence, side by side.
template <class T>
tensor<T> beside(const tensor<T>& a, const tensor<T>& b) {
    const index rows = a.shape()[0], n = a.shape()[1], m = b.shape()[1];
    tensor<T> both({rows, n + m});
    for (index r = 0; r < rows; ++r) {
        for (index i = 0; i < n; ++i) both(r, i) = a(r, i);
        for (index i = 0; i < m; ++i) both(r, n + i) = b(r, i);
    }
    return both;
}

TEST_CASE_TEMPLATE("stages: two in one expression are two layers, one behind the other, to the bit", T, float, double) {
    const index B = 19, length = 7;
    const double tight = std::is_same_v<T, double> ? 1e-12 : 1e-5;
    for (const index C : {index{1}, index{3}, whole_sequence}) {
        for (const fprnn::adjoint& adjoint : {fprnn::adjoint(fprnn::implicit{.tolerance = tight}),
                                              fprnn::adjoint(fprnn::one_step{}), fprnn::adjoint(fprnn::truncated{2}),
                                              fprnn::adjoint(fprnn::neumann{3}), fprnn::adjoint(fprnn::unrolled{})}) {
            CAPTURE(C);
            CAPTURE(adjoint.index());
            const fprnn::chunked schedule{.length = C, .tolerance = tight, .ell_max = 300};
            const layer first(dense(in), schedule, adjoint);
            const layer second(mixed(in), schedule, adjoint);
            const layer both(mixed(dense(in)), schedule, adjoint);
            fprnn::dims inner = sizes;
            inner.d_in = sizes.d_inner;
            auto theta = fprnn::init<T>(both, sizes), theta_1 = fprnn::init<T>(first, sizes),
                 theta_2 = fprnn::init<T>(second, inner);
            shake(theta, 0.1);
            REQUIRE(theta.size() == theta_1.size() + theta_2.size());
            std::copy_n(theta.data(), theta_1.size(), theta_1.data());
            std::copy_n(theta.data() + theta_1.size(), theta_2.size(), theta_2.data());

            const auto x = normal<T>({B, length, sizes.d_in}, 1), y_bar = normal<T>({B, length, sizes.d_inner}, 2);
            const auto all = differentiate(both, theta, x, y_bar);
            const auto y_1 = first(theta_1, x);
            const auto two = differentiate(second, theta_2, y_1.value, y_bar);
            const auto one = differentiate(first, theta_1, x, two.x_bar);
            CHECK(same_bits(all.sol.value, two.sol.value));
            CHECK(same_bits(all.sol.carry, beside(one.sol.carry, two.sol.carry)));
            CHECK(same_bits(all.x_bar, one.x_bar));
            CHECK(std::equal(one.theta_bar.data(), one.theta_bar.data() + one.theta_bar.size(), all.theta_bar.data()));
            CHECK(std::equal(two.theta_bar.data(), two.theta_bar.data() + two.theta_bar.size(),
                             all.theta_bar.data() + one.theta_bar.size()));

            REQUIRE(all.sol.fixed_points.size() == 2);
            check_equal(all.sol.fixed_points[0], one.sol);
            check_equal(all.sol.fixed_points[1], two.sol);
            REQUIRE(all.adjoint.fixed_points.size() == 2);
            check_equal(all.adjoint.fixed_points[0], one.adjoint);
            check_equal(all.adjoint.fixed_points[1], two.adjoint);
            CHECK(one.sol.fixed_points.empty());
            for (std::size_t b = 0; b < static_cast<std::size_t>(B); ++b) {
                CHECK(all.sol.status[b] == status::converged);
                CHECK(all.sol.iterations[b] == std::max(one.sol.iterations[b], two.sol.iterations[b]));
                CHECK(all.sol.total_iterations[b] == one.sol.total_iterations[b] + two.sol.total_iterations[b]);
                CHECK(all.sol.residual[b] == std::max(one.sol.residual[b], two.sol.residual[b]));
                CHECK(all.sol.tokens_converged[b] == length);
            }
        }
    }
}

TEST_CASE("stages: a sequence in several calls is the sequence in one, token by token and in chunks") {
    const auto check = [](auto e) {
        const auto x = normal({5, 6, sizes.d_in}, 1);
        for (const index C : {index{1}, index{2}}) {
            CAPTURE(C);
            const layer l(e, fprnn::chunked{.length = C, .tolerance = 1e-12, .ell_max = 500});
            auto theta = fprnn::init<double>(l, sizes);
            shake(theta, 0.1);
            const auto whole = l(theta, x);
            CHECK(whole.all_converged());
            tensor<double> carry;
            for (index t = 0; t < 6; t += C) {
                auto part = l(theta, tokens(x, t, C), carry);
                CHECK(same_bits(part.value, tokens(whole.value, t, C)));
                carry = std::move(part.carry);
            }
            CHECK(same_bits(carry, whole.carry));
        }
    };
    check(one_in_another());
    check(three());
}

TEST_CASE("stages: all fixed points share a solver and a stop, one's own or a share of the batch among them") {
    const auto e = three();
    const auto x = normal({19, 6, sizes.d_in}, 1), y_bar = normal({19, 6, sizes.d_inner}, 2);
    layer truth(e, fprnn::chunked{.length = 1, .tolerance = 1e-13, .ell_max = 2000},
                fprnn::implicit{.tolerance = 1e-13});
    auto theta = fprnn::init<double>(truth, sizes);
    shake(theta, 0.1);
    const auto expected = differentiate(truth, theta, x, y_bar);
    const auto relaxed = [](fprnn::adjoint_chunk& w) {
        for (int k = 0; k < 2000 && w.apply(0.9) > 1e-14; ++k) continue;
    };
    for (const index C : {index{1}, index{3}, whole_sequence})
        for (const fprnn::solver& solver :
             {fprnn::solver(fprnn::picard{}), fprnn::solver(fprnn::damped{.start = 0.9, .decay = 0.9, .patience = 3}),
              fprnn::solver(fprnn::anderson{})})
            for (const fprnn::stop& stop :
                 {fprnn::residual{1e-13} || fprnn::iterations{2000},
                  fprnn::iterations{2000} || [](const fprnn::iteration& now) { return now.residual < 1e-13; },
                  fprnn::share{.of = 1, .tolerance = 1e-13} || fprnn::iterations{2000}}) {
                CAPTURE(C);
                const layer l(e, {.schedule = {.length = C}, .solver = solver, .stop = stop, .adjoint = relaxed});
                const auto got = differentiate(l, theta, x, y_bar);
                CHECK(got.sol.all_converged());
                CHECK(distance(got.sol.value, expected.sol.value) < 1e-11 * largest(expected.sol.value));
                CHECK(compare(got, expected).worst < 1e-9);
            }
}

TEST_CASE("stages: a sequence has the worst of its fixed points, and which it was is there to be seen") {
    const auto far = affine<"far", d_inner, fprnn::start::constant<1>>(in);
    const auto solved = dense(in);
    const auto x = normal<float>({3, 4, sizes.d_in}, 1);
    const auto check = [&](auto e, std::size_t worst, status expected, status reads) {
        for (const index C : {index{1}, whole_sequence}) {
            const layer l(e, fprnn::chunked{.length = C, .tolerance = 1e-5, .ell_max = 2000});
            const auto sol = l(fprnn::init<float>(l, sizes), x);
            REQUIRE(sol.fixed_points.size() == 2);
            for (std::size_t b = 0; b < 3; ++b) {
                CHECK(sol.status[b] == expected);
                CHECK(sol.fixed_points[worst].status[b] == expected);
                CHECK(sol.fixed_points[1 - worst].status[b] == reads);
                CHECK(sol.tokens_converged[b] == 0);
            }
            CHECK_FALSE(sol.all_converged());
        }
    };
    const auto grows = constant<3>() * prev;
    check(solved + fixed_point(grows + far), 1, status::diverged, status::converged);
    check(fixed_point(grows + far) + solved, 0, status::diverged, status::converged);
    // It reads what overflowed: that is a consequence.
    check(fixed_point(third * prev + fixed_point(grows + far)), 0, status::diverged, status::nonfinite);
}

TEST_CASE("stages: nodes of one type that are iterated in two fixed points have one set of parameters") {
    const layer l(side_by_side());
    std::vector<std::string> names;
    for (const auto& p : l.declare(sizes)) names.push_back(p.name);
    CHECK(names == std::vector<std::string>{"w", "z"});
}

TEST_CASE("stages: no batch, no tokens") {
    const layer l(one_in_another());
    const auto theta = fprnn::init<double>(l, sizes);
    CHECK(l(theta, tensor<double>({0, 4, 4})).value.shape() == fprnn::shape{0, 4, 6});
    const auto sol = l(theta, tensor<double>({2, 0, 4}));
    CHECK(sol.value.shape() == fprnn::shape{2, 0, 6});
    CHECK(sol.fixed_points.size() == 2);
    CHECK(sol.fixed_points[1].status.size() == 2);
}

}  // namespace
