#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/math.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

/// One token in R numbers. Where the iterate y enters f only under (I − Q) = U S Uᵀ of a compact mixer, followed by a vector
/// p + g ⊙ (·) and a norm N at most, f sees w = S Uᵀ y alone:
///
///     f(y) = N(p + g ⊙ (Q v + U w)) = N(a + V w),   a = p + g ⊙ Q v,   V = diag(g) U
///
/// The rows of U and V are R vectors of D channels. x̂ is what N makes of x before it scales: x − mean x for layer norm, x
/// for RMS norm.
namespace fprnn::kernel {

template <class T, int R>
using numbers = small_array<T, static_cast<std::size_t>(R)>;
/// Row by row.
template <class T, int R>
using square = small_array<numbers<T, R>, static_cast<std::size_t>(R)>;

/// In place of a norm.
struct no_norm {
    static constexpr bool has_bias = false;
    static constexpr bool centred = false;
};

namespace detail {

/// The norm's part of a token's equation; γ is 1 and β 0 where there is none.
template <class Team, class T, int R, class Norm>
struct token_norm {
    static constexpr bool normed = !std::same_as<Norm, no_norm>;
    static constexpr auto size = static_cast<std::size_t>(R);
    index D;
    const T* V;
    numbers<T, R> mean{};  ///< of V's rows

    token_norm(index channels, const T* rows) : D(channels), V(rows) {
        if constexpr (Norm::centred) {
            mean = Team::template sum<size>(D, [&](auto lane) {
                small_array<decltype(lane.load(V)), size> x;
                for (index j = 0; j < R; ++j) x[static_cast<std::size_t>(j)] = lane.load(V + j * D);
                return x;
            });
            for (T& m : mean.values) m /= static_cast<T>(D);
        }
    }
    static T mean_of(index D, const T* x) {
        if constexpr (Norm::centred)
            return Team::template sum<1>(D, [&](auto lane) { return small_array{lane.load(x)}; })[0] /
                   static_cast<T>(D);
        else
            return T(0);
    }
    /// x̂
    template <class Lane>
    static auto hat(Lane lane, const T* x, T mean) {
        using V_ = decltype(lane.load(x));
        if constexpr (Norm::centred)
            return lane.load(x) - V_(mean);
        else
            return lane.load(x);
    }
    /// Row j of V̂.
    template <class Lane>
    auto V_hat(Lane lane, index j) const {
        return hat(lane, V + j * D, mean[static_cast<std::size_t>(j)]);
    }
    /// γ ⊙ x
    template <class Lane, class X>
    static X weigh(Lane lane, const T* gamma, X x) {
        if constexpr (normed)
            return lane.load(gamma) * x;
        else
            return x;
    }
};

}  // namespace detail

/// Picard's iteration from y⁰ = 0, in R numbers instead of D: the iterates of f itself, and hence the root that they reach
/// where there are several.
///
///     w ↦ S Uᵀβ + (S Uᵀ(γ ⊙ â) + S Uᵀdiag(γ)V̂ w) / σ(w),   σ²(w) = ‖â + V̂ w‖²/D + ε
///
/// Ends with y = y^ℓ and returns ℓ when iterates stand still to a quarter of the tolerance; returns 0, y unchanged, when ℓ
/// would pass ell_max or numbers are not finite.
template <class Team, int R, class Norm, class T>
int iterate_token(index D, const T* U, const square<T, R>& S, const T* a, const T* V, const T* gamma, const T* beta,
                  double tolerance, int ell_max, T* y) {
    using norm = detail::token_norm<Team, T, R, Norm>;
    constexpr auto size = static_cast<std::size_t>(R);
    const norm N(D, V);
    const T mean = norm::mean_of(D, a);

    // Uᵀ(γ ⊙ ·) of â and of V̂'s rows, and the inner products of these.
    numbers<T, R> start{}, fixed{}, e1{};
    square<T, R> M, E;
    T e0 = 0;
    const auto project = [&](const numbers<T, R>& x) {
        numbers<T, R> Sx{};
        for (std::size_t i = 0; i < size; ++i)
            for (std::size_t k = 0; k <= i; ++k) Sx[i] += S[i][k] * x[k];
        return Sx;
    };
    {
        const auto sums = Team::template sum<size + 1>(D, [&](auto lane) {
            using V_ = decltype(lane.load(a));
            const V_ x = norm::hat(lane, a, mean), scaled = norm::weigh(lane, gamma, x);
            small_array<V_, size + 1> s;
            for (index i = 0; i < R; ++i) s[static_cast<std::size_t>(i)] = lane.load(U + i * D) * scaled;
            s[size] = x * x;
            return s;
        });
        for (std::size_t i = 0; i < size; ++i) start[i] = sums[i];
        e0 = sums[size];
        start = project(start);
    }
    for (index j = 0; j < R; ++j) {
        const auto sums = Team::template sum<2 * size + 1>(D, [&](auto lane) {
            using V_ = decltype(lane.load(a));
            const V_ x = N.V_hat(lane, j), scaled = norm::weigh(lane, gamma, x);
            small_array<V_, 2 * size + 1> s;
            for (index i = 0; i < R; ++i) {
                s[static_cast<std::size_t>(i)] = lane.load(U + i * D) * scaled;
                s[size + static_cast<std::size_t>(i)] = i <= j ? N.V_hat(lane, i) * x : V_(T(0));
            }
            s[2 * size] = norm::hat(lane, a, mean) * x;
            return s;
        });
        const auto at = static_cast<std::size_t>(j);
        numbers<T, R> column;
        for (std::size_t i = 0; i < size; ++i) column[i] = sums[i];
        M[at] = project(column);
        for (std::size_t i = 0; i <= at; ++i) E[i][at] = E[at][i] = sums[size + i] / static_cast<T>(D);
        e1[at] = sums[2 * size] / static_cast<T>(D);
    }
    if constexpr (Norm::has_bias)
        fixed = project(Team::template sum<size>(D, [&](auto lane) {
            small_array<decltype(lane.load(a)), size> s;
            for (index i = 0; i < R; ++i) s[static_cast<std::size_t>(i)] = lane.load(U + i * D) * lane.load(beta);
            return s;
        }));
    e0 /= static_cast<T>(D);
    if constexpr (norm::normed) e0 += T(Norm::epsilon);

    // Ends when ‖V̂ (w^ℓ − w^{ℓ−1})‖ is small beside ‖â + V̂ w^ℓ‖, which is what N scales.
    const T near = std::max(static_cast<T>(0.25 * tolerance), 4 * std::numeric_limits<T>::epsilon());
    numbers<T, R> w{}, before{}, half_before{};
    T inverse_deviation = 1;
    int ell = 1;
    for (;; ++ell) {
        numbers<T, R> half = e1;  // E and M are held column by column
        for (std::size_t j = 0; j < size; ++j)
            for (std::size_t i = 0; i < size; ++i) half[i] += E[j][i] * w[j];
        T scale = e0, moved = 0, taint = 0;
        for (std::size_t i = 0; i < size; ++i) {
            scale += (e1[i] + half[i]) * w[i];
            moved += (half[i] - half_before[i]) * (w[i] - before[i]);
        }
        if constexpr (norm::normed) inverse_deviation = T(1) / math::sqrt(std::max(scale, T(Norm::epsilon)));
        if (ell > ell_max) return 0;
        if (ell > 1 && moved <= near * near * scale) break;
        numbers<T, R> x = start;
        for (std::size_t j = 0; j < size; ++j)
            for (std::size_t i = 0; i < size; ++i) x[i] += M[j][i] * w[j];
        for (std::size_t i = 0; i < size; ++i) {
            x[i] = fixed[i] + x[i] * inverse_deviation;
            taint += x[i] * T(0);
        }
        if (!(taint == T(0))) return 0;
        before = w;
        half_before = half;
        w = x;
    }
    const T r = inverse_deviation;
    Team::each(D, [&](auto lane) {
        using V_ = decltype(lane.load(a));
        V_ x = norm::hat(lane, a, mean);
        for (index j = 0; j < R; ++j) x += V_(w[static_cast<std::size_t>(j)]) * N.V_hat(lane, j);
        x = norm::weigh(lane, gamma, x * V_(r));
        if constexpr (Norm::has_bias) x += lane.load(beta);
        lane.store(y, x);
    });
    return ell;
}

/// The adjoint w = δ + (I−Q)ᵀ(k + g ⊙ N'ᵀ w) of the same token, where k is what later tokens ask of the mixer's value. With
/// the columns P_j = N' V_j of ∂f/∂w and ζ = Uᵀk + Pᵀw:
///
///     w = δ + U Sᵀ ζ,   (I − PᵀU Sᵀ) ζ = Uᵀk + Pᵀδ,   P_j = γ ⊙ (V̂_j − z mean(z ⊙ V̂_j)) / σ,   z = x̂/σ
///
/// at x [D], which the norm was applied to. Returns the relative residual of the R equations, NaN when they are singular;
/// contraction or not.
template <class Team, int R, class Norm, class T>
double solve_token_adjoint(index D, const T* U, const square<T, R>& S, const T* x, const T* V, const T* gamma,
                           const T* delta, const T* k, T* w) {
    using norm = detail::token_norm<Team, T, R, Norm>;
    constexpr auto size = static_cast<std::size_t>(R);
    const norm N(D, V);
    const T mean = norm::mean_of(D, x);

    // Of z = x̂/σ: Uᵀ(γ ⊙ z), and (γ ⊙ z)ᵀδ; Uᵀk beside them.
    numbers<T, R> Uz{}, rhs{};
    T dz = 0, inverse_deviation = 1;
    {
        const auto sums = Team::template sum<2 * size + 2>(D, [&](auto lane) {
            using V_ = decltype(lane.load(x));
            const V_ hat = norm::hat(lane, x, mean), scaled = norm::weigh(lane, gamma, hat);
            small_array<V_, 2 * size + 2> s;
            for (index i = 0; i < R; ++i) {
                const V_ u = lane.load(U + i * D);
                s[static_cast<std::size_t>(i)] = norm::normed ? u * scaled : V_(T(0));
                s[size + static_cast<std::size_t>(i)] = u * lane.load(k);
            }
            s[2 * size] = norm::normed ? scaled * lane.load(delta) : V_(T(0));
            s[2 * size + 1] = norm::normed ? hat * hat : V_(T(0));
            return s;
        });
        if constexpr (norm::normed)
            inverse_deviation = T(1) / math::sqrt(sums[2 * size + 1] / static_cast<T>(D) + T(Norm::epsilon));
        for (std::size_t i = 0; i < size; ++i) Uz[i] = sums[i] * inverse_deviation, rhs[i] = sums[size + i];
        dz = sums[2 * size] * inverse_deviation;
    }
    square<T, R> A;  // first PᵀU, then I − PᵀU Sᵀ
    for (index j = 0; j < R; ++j) {
        const auto sums = Team::template sum<size + 2>(D, [&](auto lane) {
            using V_ = decltype(lane.load(x));
            const V_ hat = N.V_hat(lane, j), scaled = norm::weigh(lane, gamma, hat);
            small_array<V_, size + 2> s;
            for (index i = 0; i < R; ++i) s[static_cast<std::size_t>(i)] = lane.load(U + i * D) * scaled;
            s[size] = lane.load(delta) * scaled;
            s[size + 1] = norm::normed ? hat * norm::hat(lane, x, mean) : V_(T(0));
            return s;
        });
        const auto at = static_cast<std::size_t>(j);
        const T along = sums[size + 1] * inverse_deviation / static_cast<T>(D);
        for (std::size_t i = 0; i < size; ++i) A[at][i] = inverse_deviation * (sums[i] - Uz[i] * along);
        rhs[at] += inverse_deviation * (sums[size] - dz * along);
        numbers<T, R> row;
        for (std::size_t c = 0; c < size; ++c) {
            T through = 0;
            for (std::size_t i = 0; i <= c; ++i) through += A[at][i] * S[c][i];
            row[c] = (c == at ? T(1) : T(0)) - through;
        }
        A[at] = row;
    }

    // Gauss's elimination with row exchanges, on a copy.
    square<T, R> L = A;
    numbers<T, R> zeta = rhs;
    for (std::size_t c = 0; c < size; ++c) {
        std::size_t pivot = c;
        for (std::size_t i = c + 1; i < size; ++i)
            if (math::abs(L[i][c]) > math::abs(L[pivot][c])) pivot = i;
        std::swap(L[c], L[pivot]);
        std::swap(zeta[c], zeta[pivot]);
        if (!(math::abs(L[c][c]) > T(0))) return std::numeric_limits<double>::quiet_NaN();
        for (std::size_t i = c + 1; i < size; ++i) {
            const T factor = L[i][c] / L[c][c];
            for (std::size_t j = c; j < size; ++j) L[i][j] -= factor * L[c][j];
            zeta[i] -= factor * zeta[c];
        }
    }
    for (std::size_t c = size; c-- > 0;) {
        for (std::size_t j = c + 1; j < size; ++j) zeta[c] -= L[c][j] * zeta[j];
        zeta[c] /= L[c][c];
    }
    T off = 0, scale = 0, taint = 0;
    for (std::size_t i = 0; i < size; ++i) {
        taint += zeta[i] * T(0);
        T residual = rhs[i];
        for (std::size_t j = 0; j < size; ++j) residual -= A[i][j] * zeta[j];
        off = std::max(off, math::abs(residual));
        scale = std::max(scale, math::abs(rhs[i]));
    }

    numbers<T, R> c{};
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = i; j < size; ++j) c[i] += S[j][i] * zeta[j];
    Team::each(D, [&](auto lane) {
        using V_ = decltype(lane.load(x));
        V_ sum = lane.load(delta);
        for (index i = 0; i < R; ++i) sum += V_(c[static_cast<std::size_t>(i)]) * lane.load(U + i * D);
        lane.store(w, sum);
    });
    if (!(taint == T(0))) return std::numeric_limits<double>::quiet_NaN();
    return scale > T(0) ? static_cast<double>(off / scale) : static_cast<double>(off);
}

}  // namespace fprnn::kernel
