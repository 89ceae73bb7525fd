#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/mixers/mixer.hpp>

#include <cstddef>

namespace fprnn {

namespace mixing {

template <class T, int R>
using small_square = small_array<small_array<T, static_cast<std::size_t>(R)>, static_cast<std::size_t>(R)>;

/// A symmetric matrix by Jacobi's rotations: A becomes diagonal, and the columns of V its eigenvectors,
/// orthonormal.
template <class T, int R>
FPRNN_BOTH void diagonalise(small_square<T, R>& A, small_square<T, R>& V) {
    using math::abs, math::sqrt;
    constexpr auto size = static_cast<std::size_t>(R);
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t k = 0; k < size; ++k) V[i][k] = i == k ? T(1) : T(0);
    constexpr int sweeps = 30;  // quadratic convergence ends it after about 6
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        bool rotated = false;
        for (std::size_t p = 0; p + 1 < size; ++p)
            for (std::size_t q = p + 1; q < size; ++q) {
                const T off = A[p][q];
                if (A[p][p] + off == A[p][p] && A[q][q] + off == A[q][q]) continue;
                rotated = true;
                // tan φ of the smaller of both angles
                const T apart = A[q][q] - A[p][p];
                constexpr T large = T(1e6);  // of θ, whose square may overflow, and 1 + θ² is θ² to rounding of t
                T t;
                if (abs(apart) > large * abs(T(2) * off)) {
                    t = off / apart;
                } else {
                    const T theta = apart / (T(2) * off);
                    t = (theta < T(0) ? T(-1) : T(1)) / (abs(theta) + sqrt(T(1) + theta * theta));
                }
                const T c = T(1) / sqrt(T(1) + t * t), s = t * c;
                for (std::size_t k = 0; k < size; ++k) {
                    const T a = A[k][p], b = A[k][q];
                    A[k][p] = c * a - s * b;
                    A[k][q] = s * a + c * b;
                }
                for (std::size_t k = 0; k < size; ++k) {
                    const T a = A[p][k], b = A[q][k];
                    A[p][k] = c * a - s * b;
                    A[q][k] = s * a + c * b;
                    const T x = V[k][p], y = V[k][q];
                    V[k][p] = c * x - s * y;
                    V[k][q] = s * x + c * y;
                }
                A[p][q] = A[q][p] = T(0);
            }
        if (!rotated) return;
    }
}

/// The largest singular value of I − Q = U S Uᵀ and its singular vectors, U left and U right: (I − Q) U right
/// = norm U left.
template <class T, int R>
struct largest_singular {
    T norm;
    small_array<T, static_cast<std::size_t>(R)> left, right;
};

/// From R × R numbers alone. With UᵀU = C Cᵀ, the singular values of U S Uᵀ are those of B = Cᵀ S C: for Bz =
/// σ b they belong to U S C z / σ and U Sᵀ C b / σ.
template <class M, class Team, class T>
FPRNN_BOTH largest_singular<T, M::rank> largest_singular_of(index D, const T* q) {
    using math::maximum, math::sqrt;
    constexpr int R = M::rank;
    constexpr auto size = static_cast<std::size_t>(R);
    small_square<T, R> S, C, V, B, gram;
    M::template compact<Team, T>(D, q, S);
    for (index i = 0; i < R; ++i) {
        const auto row = Team::template sum<size>(D, [&](auto lane) {
            small_array<decltype(lane.load(q)), size> sums;
            for (index k = 0; k < R; ++k)
                sums[static_cast<std::size_t>(k)] = lane.load(q + i * D) * lane.load(q + k * D);
            return sums;
        });
        gram[static_cast<std::size_t>(i)] = row;
    }
    diagonalise<T, R>(gram, V);
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t k = 0; k < size; ++k) C[i][k] = V[i][k] * sqrt(maximum(gram[k][k], T(0)));
    const auto times = [](const small_square<T, R>& x, bool x_turned, const small_square<T, R>& y, bool y_turned) {
        small_square<T, R> z;
        for (std::size_t i = 0; i < size; ++i)
            for (std::size_t k = 0; k < size; ++k) {
                z[i][k] = 0;
                for (std::size_t l = 0; l < size; ++l)
                    z[i][k] += (x_turned ? x[l][i] : x[i][l]) * (y_turned ? y[k][l] : y[l][k]);
            }
        return z;
    };
    const auto SC = times(S, false, C, false), SC_turned = times(S, true, C, false);
    B = times(C, true, SC, false);
    auto squares = times(B, true, B, false);
    diagonalise<T, R>(squares, V);
    std::size_t first = 0;
    for (std::size_t i = 1; i < size; ++i)
        if (squares[first][first] < squares[i][i]) first = i;
    largest_singular<T, R> found;
    found.norm = sqrt(maximum(squares[first][first], T(0)));
    T sum = 0;  // not finite when a number is not, which maxima and square roots may hide
    for (std::size_t i = 0; i < size; ++i) sum += squares[i][i];
    if (!math::is_finite(sum)) found.norm = sum;
    const T inverse = found.norm == T(0) ? T(0) : T(1) / found.norm;
    for (std::size_t i = 0; i < size; ++i) {
        found.left[i] = found.right[i] = 0;
        for (std::size_t k = 0; k < size; ++k) {
            T b = 0;
            for (std::size_t l = 0; l < size; ++l) b += B[k][l] * V[l][first];
            found.left[i] += SC[i][k] * V[k][first] * inverse;
            found.right[i] += SC_turned[i][k] * b * inverse * inverse;
        }
    }
    return found;
}

}  // namespace mixing

/// ‖I − Q‖₂ of one token, exactly, from an R × R computation: below 1, an iteration y ↦ Q v + (I − Q) y
/// contracts. q is the prepared form of M at width D. NaN where q has one.
template <compact_mixer M, class T>
T complement_norm(index D, const T* q) {
    return mixing::largest_singular_of<M, serial_team<T>>(D, q).norm;
}

}  // namespace fprnn
