#include "world.hpp"

#include <larger.hpp>

#include <fprnn/mpi/scan.hpp>

#include <ops/checks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using checks::numbers;
using fprnn::direction;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using fprnn::testing::all_ranks;
using complex = std::complex<double>;

/// The tokens first … last − 1 of [B,T,D].
template <class T>
tensor<T> tokens_of(const tensor<T>& x, index first, index last) {
    const index B = x.shape()[0], D = x.shape()[2];
    tensor<T> piece({B, last - first, D});
    for (index b = 0; b < B; ++b)
        for (index t = first; t < last; ++t)
            for (index i = 0; i < D; ++i) piece(b, t - first, i) = x(b, t, i);
    return piece;
}
/// As a share of the largest number: products of complex λ grow.
template <class T>
double largest_difference(const tensor<T>& a, const tensor<T>& b) {
    REQUIRE(a.shape() == b.shape());
    double most = 0, largest = 1;
    for (index i = 0; i < a.size(); ++i) {
        most = fprnn::testing::larger(most, std::abs(a[i] - b[i]));
        largest = fprnn::testing::larger(largest, std::abs(b[i]));
    }
    return most / largest;
}

/// Scan and adjoint of pieces are the pieces of those of the whole, which every rank computes, too.
template <class T>
void check(index B, index tokens, index D, direction d, const std::vector<index>& ends) {
    const auto lambda = numbers<T>({B, tokens, D}, 1), u = numbers<T>({B, tokens, D}, 2),
               h_bar = numbers<T>({B, tokens, D}, 3), carry = numbers<T>({B, D}, 4), carry_bar = numbers<T>({B, D}, 5);
    const auto h = fprnn::scan(lambda, u, carry, d);
    fprnn::scan_cotangents<T> whole({B, tokens, D});
    fprnn::scan_back(lambda, h, carry, h_bar, carry_bar, whole, d);

    const auto me = static_cast<std::size_t>(all_ranks().rank());
    const index first = me == 0 ? 0 : ends[me - 1], last = ends[me];
    const bool begins = d == direction::forward ? me == 0 : me + 1 == ends.size(),
               stops = d == direction::forward ? me + 1 == ends.size() : me == 0;
    const auto mine = tokens_of(lambda, first, last);
    const auto piece = fprnn::mpi::scan(all_ranks(), mine, tokens_of(u, first, last), begins ? carry : tensor<T>{}, d);
    const double bound = 1e-14;
    CHECK(largest_difference(piece.h, tokens_of(h, first, last)) < bound);
    fprnn::scan_cotangents<T> part({B, last - first, D});
    fprnn::mpi::scan_back(all_ranks(), mine, piece.h, piece.carry, tokens_of(h_bar, first, last),
                          stops ? carry_bar : tensor<T>{}, part, d);
    CHECK(largest_difference(part.lambda, tokens_of(whole.lambda, first, last)) < bound);
    CHECK(largest_difference(part.u, tokens_of(whole.u, first, last)) < bound);
    if (begins) CHECK(largest_difference(part.carry, whole.carry) < bound);
}

TEST_CASE("mpi scan: pieces on consecutive ranks are those of one scan, with their adjoint") {
    const auto size = static_cast<std::size_t>(all_ranks().size());
    for (const direction d : {direction::forward, direction::reversed})
        for (const index tokens : {0, 1, 3, 40}) {
            CAPTURE(tokens);
            std::vector<index> even(size), uneven(size, tokens);
            for (std::size_t r = 0; r < size; ++r)
                even[r] = tokens * static_cast<index>(r + 1) / static_cast<index>(size);
            // All but one token on the second rank, none on later ones.
            uneven[0] = std::min<index>(tokens, size == 1 ? tokens : 1);
            for (const auto& ends : {even, uneven}) {
                check<double>(2, tokens, 5, d, ends);
                check<complex>(3, tokens, 2, d, ends);
                check<double>(1, tokens, 600, d, ends);
            }
        }
}

TEST_CASE("mpi scan: a product of λ that overflows makes nothing of a state that is zero") {
    const index half = 1200, size = all_ranks().size(), me = all_ranks().rank();
    tensor<float> lambda({1, half, 1}), u({1, half, 1}), h_bar({1, half, 1});
    std::fill(lambda.begin(), lambda.end(), 1.1f);  // 1.1^1200 is no float
    if (me + 1 == size) {
        std::fill(lambda.begin(), lambda.end(), 0.5f);
        std::fill(u.begin(), u.end(), 1.f);
    }
    const auto piece = fprnn::mpi::scan(all_ranks(), lambda, u);
    CHECK(piece.h[half - 1] == doctest::Approx(me + 1 == size ? 2 : 0));
    fprnn::scan_cotangents<float> bar({1, half, 1});
    fprnn::mpi::scan_back(all_ranks(), lambda, piece.h, piece.carry, h_bar, {}, bar);
    CHECK(std::all_of(bar.u.begin(), bar.u.end(), [](float x) { return x == 0; }));
    CHECK(bar.carry[0] == 0);
}

TEST_CASE("mpi scan: what does not fit is said on all ranks") {
    const tensor<double> x({2, 3, 4}), fewer({2, 3, 3});
    const bool is_last = all_ranks().rank() + 1 == all_ranks().size();
    const auto scan = [&](const tensor<double>& lambda, const tensor<double>& u) {
        (void)fprnn::mpi::scan(all_ranks(), lambda, u);
    };
    CHECK_THROWS_WITH_AS(scan(x, is_last ? fewer : x), doctest::Contains("mpi::scan: rank "), fprnn::argument_error);
    if (all_ranks().size() > 1)
        CHECK_THROWS_WITH_AS(
            scan(is_last ? fewer : x, is_last ? fewer : x),
            doctest::Contains("expected [B,·,D] of B = 2 and D = 4 of rank 0, got [B,·,D] of B = 2 and D = 3"),
            fprnn::argument_error);
}

}  // namespace
