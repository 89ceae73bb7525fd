#include "pieces.hpp"

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/mpi/all_at_once.hpp>
#include <fprnn/mpi/pieces.hpp>

#include <ops/checks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using fprnn::index;
using fprnn::tensor;
using fprnn::testing::all_of;
using fprnn::testing::all_ranks;
using fprnn::testing::largest_difference;
using fprnn::testing::product;
using fprnn::testing::tokens_of;
using tape = fprnn::tape<double>;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .d_out = 4};

/// A sequence on all ranks at once, and the whole of it on each.
struct both {
    tensor<double> value, expected;
    std::vector<double> gradient, expected_gradient, x_bar, expected_x_bar;
    fprnn::mpi::rounds_taken taken;
};
template <class Layer>
both solve_both(const Layer& layer, const fprnn::mpi::rounds& how) {
    both result;
    const auto theta = fprnn::init<double>(layer, sizes, fprnn::seed{1});
    const auto [tokens, first, last] = fprnn::testing::cut();
    const auto x = checks::random<double>({2, tokens, 4}, 2);
    const auto copy = [](const auto& numbers) { return std::vector<double>(numbers.begin(), numbers.end()); };

    tape whole(theta);
    const auto x_whole = whole.leaf(tensor<double>(x));
    const auto y_whole = layer(whole, theta.widths, "", x_whole);
    const auto y_bar = checks::random<double>(whole.value(y_whole).shape(), 3);
    result.expected_gradient = copy(whole.gradient(product(whole, y_whole, y_bar)));
    result.expected = tokens_of(whole.value(y_whole), first, last);
    result.expected_x_bar = copy(tokens_of(whole.bar(x_whole), first, last));

    tape mine(theta);
    const auto x_mine = mine.leaf(tokens_of(x, first, last));
    const auto [y, taken] = fprnn::mpi::all_at_once(all_ranks(), mine, layer, theta.widths, "", x_mine, how);
    auto gradient = mine.gradient(product(mine, y, tokens_of(y_bar, first, last)));
    fprnn::mpi::sum(all_ranks(), std::span(gradient.begin(), gradient.end()));
    result.gradient = copy(gradient);
    result.value = mine.value(y);
    result.x_bar = copy(mine.bar(x_mine));
    result.taken = *taken;

    const auto alone = fprnn::mpi::all_at_once(all_ranks(), layer, theta, tokens_of(x, first, last), how);
    CHECK(std::ranges::equal(all_of(alone.solved.value), all_of(result.value)));
    CHECK(alone.taken.forward.rounds == result.taken.forward.rounds);
    CHECK(alone.taken.backward.rounds == 0);
    return result;
}

template <class Block>
void check_exact(Block block) {
    const fprnn::layer layer(block, {.length = 1, .tolerance = 1e-13, .ell_max = 500},
                             fprnn::implicit{.tolerance = 1e-13, .ell_max = 500});
    const auto result = solve_both(layer, {});
    CHECK(std::ranges::equal(all_of(result.value), all_of(result.expected)));
    CHECK(largest_difference(result.gradient, result.expected_gradient) < 1e-12);
    CHECK(largest_difference(result.x_bar, result.expected_x_bar) < 1e-12);
    for (const auto& way : {result.taken.forward, result.taken.backward}) {
        CHECK(way.converged);
        CHECK(way.residual == 0);
        CHECK(way.rounds <= all_ranks().size());
    }
}

TEST_CASE("mpi all_at_once: without a tolerance a layer has the value and the gradient of one sequence") {
    SUBCASE("FP-Mamba") { check_exact(fprnn::models::fp_mamba<2>()); }
    SUBCASE("LSTM") { check_exact(fprnn::models::lstm()); }
}

/// y_t = tanh(B x_t + y_{t−1}/100), which forgets a hundredth a token.
auto forgetful(index chunk = 1) {
    using namespace fprnn::symbols;
    return fprnn::layer(fprnn::fixed_point(tanh(fprnn::linear<"B">(in) + fprnn::constant<1, 100>() * shift(prev) +
                                                fprnn::constant<1, 100>() * prev)),
                        {.length = chunk, .tolerance = 1e-13, .ell_max = 500},
                        fprnn::implicit{.tolerance = 1e-13, .ell_max = 500});
}

/// Two steps on one tape, of numbers T, beside ranks that wait; also of pieces without tokens.
template <class T, class Block>
void check_like_waiting(Block block, fprnn::adjoint adjoint, index chunk, double most, bool has_tokens = true) {
    const fprnn::layer layer(block, {.length = chunk, .tolerance = 1e-12, .ell_max = 200}, std::move(adjoint));
    const auto theta = fprnn::init<T>(layer, sizes, fprnn::seed{1});
    const auto me = static_cast<std::uint64_t>(all_ranks().rank());
    const auto x = checks::random<T>({2, has_tokens ? 4 : 0, 4}, 2 + me), y_bar = checks::random<T>(x.shape(), 50 + me);
    const auto two_steps = [&](const auto& record) {
        fprnn::tape<T> t(theta);
        fprnn::variable input, value;
        for (int step = 0; step < 2; ++step) {
            t.clear();
            input = t.leaf(tensor<T>(x));
            value = record(t, input);
            t.back(product(t, value, y_bar));
        }
        std::vector<double> numbers(t.value(value).begin(), t.value(value).end());
        numbers.insert(numbers.end(), t.bar(input).begin(), t.bar(input).end());
        const auto& gradient = t.fetch_gradient();
        numbers.insert(numbers.end(), gradient.begin(), gradient.end());
        return numbers;
    };
    const auto waiting = two_steps([&](auto& t, auto input) {
        const auto before = fprnn::mpi::receive_carry(all_ranks(), t, {2, layer.carry_width(sizes)});
        const auto [value, carry] = layer(t, sizes, "", input, before);
        fprnn::mpi::hand_on(all_ranks(), t, carry);
        return value;
    });
    fprnn::solution<T> solved;
    const auto at_once = two_steps([&](auto& t, auto input) {
        return fprnn::mpi::all_at_once(all_ranks(), t, layer, sizes, "", input, {}, &solved).value;
    });
    const auto values = x.shape()[0] * x.shape()[1] * layer.output_width(sizes);
    CHECK(std::equal(waiting.begin(), waiting.begin() + values, at_once.begin()));
    CHECK(largest_difference(at_once, waiting) < most);
    CHECK(solved.status.size() == 2);
    CHECK(solved.value.size() == 0);
    if (has_tokens) CHECK(solved.adjoint->status.size() == 2);
}

TEST_CASE("mpi all_at_once: a record is gone back through in every round, by any adjoint") {
    for (const index chunk : {1, 3}) {
        CAPTURE(chunk);
        const auto check = [&](fprnn::adjoint adjoint, double most) {
            check_like_waiting<double>(fprnn::models::fp_mamba<2>(), std::move(adjoint), chunk, most);
        };
        check(fprnn::implicit{.tolerance = 1e-13, .ell_max = 500}, 1e-10);
        check(fprnn::one_step{}, 1e-12);
        check(fprnn::truncated{2}, 1e-12);
        check(fprnn::neumann{3}, 1e-12);
        check(fprnn::unrolled{}, 1e-12);
    }
    check_like_waiting<float>(fprnn::models::lstm(), fprnn::implicit{}, 1, 1e-5);
    check_like_waiting<double>(fprnn::models::lstm(), fprnn::implicit{}, 1, 1e-12, false);
}

/// y_t = B x_t + y_{t−1}.
TEST_CASE("mpi all_at_once: numbers whose squares are zero arrive") {
    using namespace fprnn::symbols;
    const fprnn::layer layer(fprnn::fixed_point(fprnn::linear<"B">(in) + shift(prev) + fprnn::constant<0, 1>() * prev),
                             {.length = 1});
    const auto theta = fprnn::init<float>(layer, sizes, fprnn::seed{1});
    tensor<float> x({1, 1, 4});
    std::fill(x.begin(), x.end(), all_ranks().rank() == 0 ? 1e-24F : 0.0F);
    const auto piece = fprnn::mpi::all_at_once(all_ranks(), layer, theta, x);
    CHECK(std::ranges::any_of(piece.solved.value, [](float y) { return y != 0; }));
    CHECK(piece.taken.forward.rounds == all_ranks().size());
}

TEST_CASE("mpi all_at_once: pieces that are iterated as wholes have the fixed point of the whole sequence") {
    const auto result = solve_both(forgetful(1000), {});
    CHECK(largest_difference(all_of(result.value), all_of(result.expected)) < 1e-12);
    CHECK(largest_difference(result.gradient, result.expected_gradient) < 1e-12);
}

TEST_CASE("mpi all_at_once: a state that forgets within a piece takes few rounds, whatever the ranks") {
    const auto result = solve_both(forgetful(), {.tolerance = 1e-4});
    CHECK(result.taken.forward.rounds <= 2);
    CHECK(result.taken.backward.rounds <= 2);
    CHECK(largest_difference(all_of(result.value), all_of(result.expected)) < 1e-5);
    CHECK(largest_difference(result.gradient, result.expected_gradient) < 1e-5);
}

TEST_CASE("mpi all_at_once: too few rounds are data") {
    const fprnn::layer layer(fprnn::models::fp_mamba<2>(), {.length = 1, .tolerance = 1e-13, .ell_max = 500},
                             fprnn::implicit{.tolerance = 1e-13, .ell_max = 500});
    const auto result = solve_both(layer, {.most = 1});
    const bool has_neighbours = all_ranks().size() > 1;
    for (const auto& way : {result.taken.forward, result.taken.backward}) {
        CHECK(way.rounds == 1);
        CHECK(way.converged == !has_neighbours);
        CHECK((way.residual > 0) == has_neighbours);
    }
}

TEST_CASE("mpi all_at_once: what is not finite ends") {
    const auto layer = forgetful();
    const auto theta = fprnn::init<double>(layer, sizes, fprnn::seed{1});
    auto x = checks::random<double>({2, 3, 4}, 2);
    x[0] = std::numeric_limits<double>::quiet_NaN();
    const auto piece = fprnn::mpi::all_at_once(all_ranks(), layer, theta, x);
    CHECK(piece.solved.status[0] == fprnn::status::nonfinite);
    CHECK(piece.taken.forward.rounds <= all_ranks().size());
}

TEST_CASE("mpi all_at_once: pieces without tokens hand the carry on") {
    const auto layer = forgetful();
    const auto theta = fprnn::init<double>(layer, sizes, fprnn::seed{1});
    const bool is_first = all_ranks().rank() == 0;
    const auto x = checks::random<double>({2, 3, 4}, 2);
    const auto piece = fprnn::mpi::all_at_once(all_ranks(), layer, theta, is_first ? x : tensor<double>({2, 0, 4}));
    CHECK(std::ranges::equal(all_of(piece.solved.carry), all_of(layer(theta, x).carry)));
}

TEST_CASE("mpi all_at_once: refused on all ranks") {
    const auto layer = forgetful();
    const auto theta = fprnn::init<double>(layer, sizes, fprnn::seed{1});
    const auto with = [&](const fprnn::mpi::rounds& how, index B = 2) {
        (void)fprnn::mpi::all_at_once(all_ranks(), layer, theta, tensor<double>({B, 3, 4}), how);
    };
    CHECK_THROWS_WITH_AS(with({.tolerance = -1}),
                         "mpi::all_at_once: rank 0: mpi::rounds: tolerance must be at least 0 and finite, got -1",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(with({.most = 0}), "mpi::all_at_once: rank 0: mpi::rounds: most must be at least 1, got 0",
                         fprnn::argument_error);
    if (all_ranks().size() == 1) return;
    const bool is_first = all_ranks().rank() == 0;
    CHECK_THROWS_WITH_AS(
        with({.tolerance = is_first ? 0.5 : 0.25}),
        "mpi::all_at_once: rank 1: expected rounds.tolerance = 0.5 of rank 0, got rounds.tolerance = 0.25",
        fprnn::argument_error);
    CHECK_THROWS_WITH_AS(with({.most = is_first ? 3 : 4}),
                         "mpi::all_at_once: rank 1: expected rounds.most = 3 of rank 0, got rounds.most = 4",
                         fprnn::argument_error);
    const auto wider = fprnn::init<double>(layer, {.d_in = 4, .d_inner = is_first ? 6 : 7}, fprnn::seed{1});
    CHECK_THROWS_WITH_AS((void)fprnn::mpi::all_at_once(all_ranks(), layer, wider, tensor<double>({2, 3, 4})),
                         "mpi::all_at_once: rank 1: expected carries of 6 numbers of rank 0, got carries of 7 numbers",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(with({}, is_first ? 2 : 3),
                         "mpi::all_at_once: rank 1: expected [B,·,d_in] of B = 2 and d_in = 4 of rank 0, got "
                         "[B,·,d_in] of B = 3 and d_in = 4",
                         fprnn::argument_error);
}

}  // namespace
