#include "fixed_point/tools.hpp"

#include <Eigen/Dense>

#include <doctest/doctest.h>

/// Of the paper alone, nothing of the library is called.
/// app. low-rank-expressiveness-proof: with A^i = W Mᵀ / √(N r) of rank r, ⟨A_I Y₀, A_J Y₀⟩ / N tends to
/// δ_{I,J} in L2 for all words I and J, with an error of order 1/√min(N, r), when r grows with N.
namespace {

using namespace fprnn::testing;
using fprnn::index;

/// The largest root mean square of ⟨A_I Y₀, A_J Y₀⟩ / N − δ_{I,J} over words of up to two of two letters.
double deviation(index N, index r, int draws) {
    constexpr index words = 7;
    Eigen::MatrixXd squares = Eigen::MatrixXd::Zero(words, words);
    for (int draw = 0; draw < draws; ++draw) {
        const auto numbers = normal({N + 4 * N * r}, static_cast<std::uint64_t>(draw));
        const auto factor = [&](index i) {
            return Eigen::Map<const Eigen::MatrixXd>(numbers.data() + N + i * N * r, N, r);
        };
        const double scale = 1 / std::sqrt(static_cast<double>(N * r));
        const auto letter = [&](index i, const Eigen::VectorXd& y) {
            return Eigen::VectorXd(scale * (factor(2 * i) * (factor(2 * i + 1).transpose() * y)));
        };
        Eigen::MatrixXd Y(N, words);  // of the words ∅, 0, 1, 00, 10, 01, 11
        Y.col(0) = Eigen::Map<const Eigen::VectorXd>(numbers.data(), N);
        for (index i = 0; i < 2; ++i) Y.col(1 + i) = letter(i, Y.col(0));
        for (index i = 0; i < 4; ++i) Y.col(3 + i) = letter(i % 2, Y.col(1 + i / 2));
        const Eigen::MatrixXd products = Y.transpose() * Y / static_cast<double>(N);
        squares += (products - Eigen::MatrixXd::Identity(words, words)).cwiseAbs2();
    }
    return std::sqrt(squares.maxCoeff() / draws);
}

TEST_CASE("low rank: words become orthonormal as the rank grows with the width, like 1/√r, and do not where it stays") {
    const double small = deviation(16, 4, 200), middle = deviation(64, 16, 200), large = deviation(256, 64, 200);
    const double fixed = deviation(256, 4, 200);
    MESSAGE("deviation at N = 16, r = 4: " << small << "; 64, 16: " << middle << "; 256, 64: " << large
                                           << "; 256, 4: " << fixed);
    CHECK(middle < 0.4 * small);
    CHECK(large < 0.55 * middle);  // 1/√4
    CHECK(large > 0.45 * middle);
    CHECK(fixed > 2 * large);
}

}  // namespace
