#include "world.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/mpi/pieces.hpp>

#include <ops/checks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace {

using fprnn::index;
using fprnn::tensor;
using fprnn::testing::all_ranks;
using tape = fprnn::tape<double>;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .d_out = 4};

/// ⟨y, with⟩ as a variable.
fprnn::variable product(tape& t, fprnn::variable y, const tensor<double>& with) {
    tensor<double> sum({1});
    for (index i = 0; i < with.size(); ++i) sum[0] += t.value(y)[i] * with[i];
    return t.record(std::move(sum), [y, with](tape& tp, fprnn::variable self) {
        const double g = tp.bar(self)[0];
        auto& bar = tp.bar(y);
        for (index i = 0; i < with.size(); ++i) bar[i] += g * with[i];
    });
}
tensor<double> tokens_of(const tensor<double>& x, index first, index last) {
    const index B = x.shape()[0], D = x.shape()[2];
    tensor<double> piece({B, last - first, D});
    for (index b = 0; b < B; ++b)
        std::copy_n(&x(b, 0, 0) + first * D, (last - first) * D, piece.data() + b * (last - first) * D);
    return piece;
}
double largest_difference(std::span<const double> a, std::span<const double> b) {
    REQUIRE(a.size() == b.size());
    double most = 0, largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        most = std::max(most, std::abs(a[i] - b[i]));
        largest = std::max(largest, std::abs(b[i]));
    }
    return most / largest;
}

/// Value, gradient and cotangents of a layer on pieces are those of the whole sequence, which every rank
/// computes, too.
template <class Block>
void check(Block block) {
    const fprnn::layer layer(block, {.length = 1, .tolerance = 1e-13, .ell_max = 500},
                             fprnn::implicit{.tolerance = 1e-13, .ell_max = 500});
    const auto theta = fprnn::init<double>(layer, sizes, fprnn::seed{1});
    const auto size = static_cast<index>(all_ranks().size());
    const index tokens = 3 * size + 2, me = all_ranks().rank();
    const index first = me == 0 ? 0 : 3 * me + 2, last = 3 * (me + 1) + 2;  // the first rank has two more
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
    const auto all_of = [](const auto& numbers) { return std::span<const double>(numbers.begin(), numbers.end()); };
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
