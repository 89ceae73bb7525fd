#pragma once

#include <fprnn/fixed_point/token_norm.hpp>

#include <limits>

namespace fprnn::kernel {

/// The adjoint w = δ + (I−Q)ᵀ(k + g ⊙ N'ᵀ w) of a token, where k is what later tokens ask of the mixer's
/// value. With the columns P_j = N' V_j of ∂f/∂w and ζ = Uᵀk + Pᵀw:
///
///     w = δ + U Sᵀ ζ,   (I − PᵀU Sᵀ) ζ = Uᵀk + Pᵀδ,   P_j = γ ⊙ (V̂_j − z mean(z ⊙ V̂_j)) / σ,   z = x̂/σ
///
/// at the x [D] that the norm was applied to. Contraction or not.
template <class Team, int R, class Norm, class T>
class token_adjoint {
    using norm = token_norm<Team, R, Norm, T>;
    static constexpr auto size = static_cast<std::size_t>(R);

    // Where a token's numbers stand: of the equation the matrix and the right side, and c = Sᵀ ζ.
    static constexpr index A = 0, rhs = A + R * R, lower_S = rhs + R, c = lower_S + R * (R + 1) / 2, residual = c + R;

    FPRNN_BOTH static constexpr index in_S(index i, index j) { return lower_S + i * (i + 1) / 2 + j; }

    tokens_side_by_side<T> at_;

public:
    static constexpr index numbers_of_a_token = residual + 1;

    /// `memory` holds tokens · numbers_of_a_token; zeros where there is no token.
    FPRNN_BOTH token_adjoint(index tokens, T* memory) : at_{tokens, memory} {}

    /// Of token s; V takes R D numbers, x_hat D.
    FPRNN_BOTH void reduce(index s, index D, const T* U, const square<T, R>& S, const T* x, const T* g, T* V, T* x_hat,
                           const T* gamma, const T* delta, const T* k) {
        Team::each(D, [&](auto lane) { lane.store(x_hat, lane.load(x)); });
        norm::take_means(D, g, U, V, x_hat);

        // Of z = x̂/σ: Uᵀ(γ ⊙ z), and (γ ⊙ z)ᵀδ; Uᵀk beside them.
        numbers<T, R> Uz{}, right{};
        T dz = 0, inverse_deviation = 1;
        {
            const auto sums = Team::template sum<2 * size + 2>(D, [&](auto lane) {
                using W = decltype(lane.load(x));
                const W hat = lane.load(x_hat), scaled = norm::weigh(lane, gamma, hat);
                small_array<W, 2 * size + 2> sum;
                for (index i = 0; i < R; ++i) {
                    const W u = lane.load(U + i * D);
                    sum[static_cast<std::size_t>(i)] = norm::normed ? u * scaled : W(T(0));
                    sum[size + static_cast<std::size_t>(i)] = u * lane.load(k);
                }
                sum[2 * size] = norm::normed ? scaled * lane.load(delta) : W(T(0));
                sum[2 * size + 1] = norm::normed ? hat * hat : W(T(0));
                return sum;
            });
            if constexpr (norm::normed)
                inverse_deviation = T(1) / math::sqrt(sums[2 * size + 1] / static_cast<T>(D) + T(Norm::epsilon));
            for (std::size_t i = 0; i < size; ++i) Uz[i] = sums[i] * inverse_deviation, right[i] = sums[size + i];
            dz = sums[2 * size] * inverse_deviation;
        }
        for (index j = 0; j < R; ++j) {
            const auto sums = Team::template sum<size + 2>(D, [&](auto lane) {
                using W = decltype(lane.load(x));
                const W hat = lane.load(V + j * D), scaled = norm::weigh(lane, gamma, hat);
                small_array<W, size + 2> sum;
                for (index i = 0; i < R; ++i) sum[static_cast<std::size_t>(i)] = lane.load(U + i * D) * scaled;
                sum[size] = lane.load(delta) * scaled;
                sum[size + 1] = norm::normed ? hat * lane.load(x_hat) : W(T(0));
                return sum;
            });
            const T along = sums[size + 1] * inverse_deviation / static_cast<T>(D);
            numbers<T, R> PU;
            for (std::size_t i = 0; i < size; ++i) PU[i] = inverse_deviation * (sums[i] - Uz[i] * along);
            Team::once([&] {
                at_(rhs + j, s) = right[static_cast<std::size_t>(j)] + inverse_deviation * (sums[size] - dz * along);
                for (index i = 0; i < R; ++i) {
                    const auto n = static_cast<std::size_t>(i);
                    T through = 0;
                    for (std::size_t l = 0; l <= n; ++l) through += PU[l] * S[n][l];
                    at_(A + j * R + i, s) = (i == j ? T(1) : T(0)) - through;
                    if (i <= j) at_(in_S(j, i), s) = S[static_cast<std::size_t>(j)][n];
                }
            });
        }
    }

    /// Gauss's elimination with row exchanges. A pivot of zero is taken for one, so that no division is
    /// invalid: the residual says whether the result solves the equations all the same.
    FPRNN_BOTH void solve() const {
        Team::each(at_.tokens, [&](auto lane) {
            using math::abs, math::is_finite, math::maximum, math::select;
            using W = decltype(lane.load(at_.data));
            const auto get = [&](index k) { return lane.load(at_[k]); };
            const W zero(T(0)), one(T(1));
            const auto divisor = [&](W x) { return select(zero < abs(x), x, one); };
            square<W, R> L;
            numbers<W, R> zeta;
            for (index i = 0; i < R; ++i) {
                const auto n = static_cast<std::size_t>(i);
                for (index j = 0; j < R; ++j) L[n][static_cast<std::size_t>(j)] = get(A + i * R + j);
                zeta[n] = get(rhs + i);
            }
            for (std::size_t p = 0; p < size; ++p) {
                for (std::size_t i = p + 1; i < size; ++i) {
                    const auto larger = abs(L[p][p]) < abs(L[i][p]);
                    const auto exchange = [&](W& a, W& b) {
                        const W was = a;
                        a = select(larger, b, a);
                        b = select(larger, was, b);
                    };
                    for (std::size_t j = p; j < size; ++j) exchange(L[p][j], L[i][j]);
                    exchange(zeta[p], zeta[i]);
                }
                const W pivot = divisor(L[p][p]);
                for (std::size_t i = p + 1; i < size; ++i) {
                    const W factor = L[i][p] / pivot;
                    for (std::size_t j = p; j < size; ++j) L[i][j] = L[i][j] - factor * L[p][j];
                    zeta[i] = zeta[i] - factor * zeta[p];
                }
            }
            for (std::size_t p = size; p-- > 0;) {
                for (std::size_t j = p + 1; j < size; ++j) zeta[p] = zeta[p] - L[p][j] * zeta[j];
                zeta[p] = zeta[p] / divisor(L[p][p]);
            }
            W off = zero, scale = zero, taint = zero;  // not finite when a number is not
            for (index i = 0; i < R; ++i) {
                W left = get(rhs + i), sum = zero;
                scale = maximum(scale, abs(left));
                for (index j = 0; j < R; ++j) {
                    left = left - get(A + i * R + j) * zeta[static_cast<std::size_t>(j)];
                    if (j >= i) sum += get(in_S(j, i)) * zeta[static_cast<std::size_t>(j)];
                }
                off = maximum(off, abs(left));
                taint += zeta[static_cast<std::size_t>(i)] + left;
                lane.store(at_[c + i], sum);
            }
            lane.store(at_[residual], select(is_finite(taint), off / divisor(scale), W(unsolved)));
        });
    }

    /// w of token s. Returns the relative residual of its R equations, `unsolved` when a number is not
    /// finite.
    FPRNN_BOTH double expand(index s, index D, const T* U, const T* delta, T* w) const {
        Team::each(D, [&](auto lane) {
            using W = decltype(lane.load(w));
            W sum = lane.load(delta);
            for (index i = 0; i < R; ++i) sum += W(at_(c + i, s)) * lane.load(U + i * D);
            lane.store(w, sum);
        });
        return static_cast<double>(at_(residual, s));
    }

private:
    static constexpr T unsolved = std::numeric_limits<T>::max();  // -ffast-math knows no NaN and no infinity
};

}  // namespace fprnn::kernel
