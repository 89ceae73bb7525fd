#include "pieces.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/mpi/pieces.hpp>

#include <ops/checks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
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

/// Value, gradient and cotangents of a layer on pieces are those of the whole sequence, which every rank
/// computes, too.
template <class Block>
void check(Block block) {
    const fprnn::layer layer(block, {.length = 1, .tolerance = 1e-13, .ell_max = 500},
                             fprnn::implicit{.tolerance = 1e-13, .ell_max = 500});
    const auto theta = fprnn::init<double>(layer, sizes, fprnn::seed{1});
    const auto [tokens, first, last] = fprnn::testing::cut();
    const auto x = checks::random<double>({2, tokens, 4}, 2), y_bar = checks::random<double>({2, tokens, 4}, 3);

    tape whole(theta);
    const auto x_whole = whole.leaf(tensor<double>(x));
    const auto y_whole = layer(whole, theta.widths, "", x_whole);
    const auto& expected = whole.gradient(product(whole, y_whole, y_bar));

    tape mine(theta);
    const auto before = fprnn::mpi::receive_carry(all_ranks(), mine, {2, layer.carry_width(theta.widths)});
    const auto x_mine = mine.leaf(tokens_of(x, first, last));
    const auto [y, carry] = layer(mine, theta.widths, "", x_mine, before);
    fprnn::mpi::hand_on(all_ranks(), mine, carry);
    auto gradient = mine.gradient(product(mine, y, tokens_of(y_bar, first, last)));
    fprnn::mpi::sum(all_ranks(), std::span(gradient.begin(), gradient.end()));

    const auto value_of_whole = tokens_of(whole.value(y_whole), first, last);
    CHECK(std::equal(value_of_whole.begin(), value_of_whole.end(), mine.value(y).begin()));
    CHECK(largest_difference(all_of(gradient), all_of(expected)) < 1e-12);
    const auto bar_of_whole = tokens_of(whole.bar(x_whole), first, last);
    CHECK(largest_difference(all_of(mine.bar(x_mine)), all_of(bar_of_whole)) < 1e-12);
}

TEST_CASE("mpi pieces: a layer's tokens on consecutive ranks have the value and the gradient of one sequence") {
    SUBCASE("FP-Mamba") { check(fprnn::models::fp_mamba<2>()); }
    SUBCASE("LSTM") { check(fprnn::models::lstm()); }
}

TEST_CASE("mpi pieces: a sum over ranks is the same everywhere") {
    const index size = all_ranks().size();
    std::vector<double> numbers{static_cast<double>(all_ranks().rank() + 1), 0.1, -2};
    fprnn::mpi::sum(all_ranks(), std::span(numbers));
    CHECK(numbers[0] == static_cast<double>(size * (size + 1) / 2));
    CHECK(numbers[1] == doctest::Approx(0.1 * static_cast<double>(size)).epsilon(1e-15));
    CHECK(numbers[2] == -2 * static_cast<double>(size));
    std::vector<double> of_rank_0 = numbers, none;
    all_ranks().broadcast(std::as_writable_bytes(std::span(of_rank_0)));
    CHECK(of_rank_0 == numbers);
    fprnn::mpi::sum(all_ranks(), std::span(none));
}

}  // namespace
