#pragma once

#include <fprnn/fixed_point/token_norm.hpp>

#include <limits>

namespace fprnn::kernel {

/// Picard's iteration from y⁰ = 0, in R numbers instead of D: the iterates of f itself, and hence the root
/// that they reach where there are several.
///
///     w ↦ S Uᵀβ + (S Uᵀ(γ ⊙ â) + S Uᵀdiag(γ)V̂ w) / σ(w),   σ²(w) = ‖â + V̂ w‖²/D + ε
template <class Team, int R, class Norm, class T>
class token_iteration {
    using norm = token_norm<Team, R, Norm, T>;
    static constexpr auto size = static_cast<std::size_t>(R);

    // Where a token's numbers stand. M = S Uᵀdiag(γ)V̂ column by column; of V̂ᵀV̂ /D the rows up to the
    // diagonal.
    static constexpr index start = 0, fixed = start + R, M = fixed + (Norm::has_bias ? R : 0), E = M + R * R,
                           e1 = E + R * (R + 1) / 2, e0 = e1 + R, means = e0 + 1, w = means + (Norm::centred ? R : 0),
                           inverse_deviation = w + R, iterations = inverse_deviation + 1;

    FPRNN_BOTH static constexpr index in_E(index i, index j) {
        return E + (i > j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i);
    }

    tokens_side_by_side<T> at_;

public:
    static constexpr index numbers_of_a_token = iterations + 1;

    /// `memory` holds tokens · numbers_of_a_token; zeros where there is no token.
    FPRNN_BOTH token_iteration(index tokens, T* memory) : at_{tokens, memory} {}

    /// Of token s; a becomes â, and V takes R D numbers.
    FPRNN_BOTH void reduce(index s, index D, const T* U, const square<T, R>& S, T* a, const T* g, T* V, const T* gamma,
                           const T* beta) {
        const auto lost = norm::take_means(D, g, U, V, a);
        if constexpr (Norm::centred)
            Team::once([&] {
                for (index j = 0; j < R; ++j) at_(means + j, s) = lost[static_cast<std::size_t>(j)];
            });

        // Uᵀ(γ ⊙ ·) of â and of V̂'s rows, and the inner products of these.
        const auto project = [&](const auto& sums, index to) {
            Team::once([&] {
                for (std::size_t i = 0; i < size; ++i) {
                    T x = 0;
                    for (std::size_t k = 0; k <= i; ++k) x += S[i][k] * sums[k];
                    at_(to + static_cast<index>(i), s) = x;
                }
            });
        };
        const auto of_a = Team::template sum<size + 1>(D, [&](auto lane) {
            const auto x = lane.load(a), scaled = norm::weigh(lane, gamma, x);
            small_array<decltype(lane.load(a)), size + 1> sum;
            for (index i = 0; i < R; ++i) sum[static_cast<std::size_t>(i)] = lane.load(U + i * D) * scaled;
            sum[size] = x * x;
            return sum;
        });
        project(of_a, start);
        Team::once([&] { at_(e0, s) = of_a[size] / static_cast<T>(D) + (norm::normed ? epsilon() : T(0)); });
        for (index j = 0; j < R; ++j) {
            const auto of_row = Team::template sum<2 * size + 1>(D, [&](auto lane) {
                using W = decltype(lane.load(a));
                const W x = lane.load(V + j * D), scaled = norm::weigh(lane, gamma, x);
                small_array<W, 2 * size + 1> sum;
                for (index i = 0; i < R; ++i) {
                    sum[static_cast<std::size_t>(i)] = lane.load(U + i * D) * scaled;
                    sum[size + static_cast<std::size_t>(i)] = i <= j ? lane.load(V + i * D) * x : W(T(0));
                }
                sum[2 * size] = lane.load(a) * x;
                return sum;
            });
            project(of_row, M + j * R);
            Team::once([&] {
                for (index i = 0; i <= j; ++i)
                    at_(in_E(i, j), s) = of_row[size + static_cast<std::size_t>(i)] / static_cast<T>(D);
                at_(e1 + j, s) = of_row[2 * size] / static_cast<T>(D);
            });
        }
        if constexpr (Norm::has_bias)
            project(Team::template sum<size>(D,
                                             [&](auto lane) {
                                                 small_array<decltype(lane.load(a)), size> sum;
                                                 for (index i = 0; i < R; ++i)
                                                     sum[static_cast<std::size_t>(i)] =
                                                         lane.load(U + i * D) * lane.load(beta);
                                                 return sum;
                                             }),
                    fixed);
    }

    /// A token's iterations end when ‖V̂ (w^ℓ − w^{ℓ−1})‖ is a quarter of the tolerance beside ‖â + V̂ w^ℓ‖,
    /// which is what N scales, when ℓ would pass ell_max, or with numbers that are not finite. Where that
    /// norm's square overflows, a token does not settle.
    FPRNN_BOTH void iterate(double tolerance, int ell_max) const {
        const T near = math::maximum(static_cast<T>(0.25 * tolerance), rounding);
        Team::each(at_.tokens, [&](auto lane) {
            using math::any, math::is_finite, math::maximum, math::select, math::sqrt;
            using W = decltype(lane.load(at_.data));
            const auto get = [&](index k) { return lane.load(at_[k]); };
            const W zero(T(0));
            numbers<W, R> now, before, halves_before;
            for (std::size_t i = 0; i < size; ++i) now[i] = before[i] = halves_before[i] = zero;
            W deviation = zero, count = zero;
            auto running = zero <= zero;
            for (int ell = 1; ell <= ell_max; ++ell) {
                numbers<W, R> halves;
                W scale = get(e0), moved = zero;
                for (index i = 0; i < R; ++i) {
                    const auto n = static_cast<std::size_t>(i);
                    halves[n] = get(e1 + i);
                    for (index j = 0; j < R; ++j) halves[n] += get(in_E(i, j)) * now[static_cast<std::size_t>(j)];
                    scale += (get(e1 + i) + halves[n]) * now[n];
                    moved += (halves[n] - halves_before[n]) * (now[n] - before[n]);
                }
                if constexpr (norm::normed)
                    deviation = select(running, W(T(1)) / sqrt(maximum(scale, W(epsilon()))), deviation);
                else
                    deviation = W(T(1));
                if (ell > 1) {
                    const W limit = W(near * near) * scale;
                    count = select(running & (moved <= limit) & is_finite(limit), W(static_cast<T>(ell)), count);
                    running = running & (limit < moved);
                }
                numbers<W, R> next;
                W taint = zero;  // not finite when a number is not
                for (index i = 0; i < R; ++i) {
                    W x = get(start + i);
                    for (index j = 0; j < R; ++j) x += get(M + j * R + i) * now[static_cast<std::size_t>(j)];
                    x *= deviation;
                    if constexpr (Norm::has_bias) x += get(fixed + i);
                    next[static_cast<std::size_t>(i)] = x;
                    taint += x;
                }
                running = running & is_finite(taint);
                if (!any(running)) break;
                before = now;
                halves_before = halves;
                for (std::size_t i = 0; i < size; ++i) now[i] = select(running, next[i], now[i]);
            }
            for (index i = 0; i < R; ++i) lane.store(at_[w + i], now[static_cast<std::size_t>(i)]);
            lane.store(at_[inverse_deviation], deviation);
            lane.store(at_[iterations], count);
        });
    }

    /// y = y^ℓ of token s, from what reduce had and left of it; returns ℓ, or 0 when it did not settle, y
    /// unchanged.
    FPRNN_BOTH int expand(index s, index D, const T* U, const T* a_hat, const T* g, const T* gamma, const T* beta,
                          T* y) const {
        const int ell = static_cast<int>(at_(iterations, s));
        if (ell == 0) return 0;
        T lost = 0;
        if constexpr (Norm::centred)
            for (index j = 0; j < R; ++j) lost += at_(w + j, s) * at_(means + j, s);
        Team::each(D, [&](auto lane) {
            using W = decltype(lane.load(y));
            W sum = W(at_(w, s)) * lane.load(U);
            for (index j = 1; j < R; ++j) sum += W(at_(w + j, s)) * lane.load(U + j * D);
            W x = lane.load(a_hat) + lane.load(g) * sum;
            if constexpr (Norm::centred) x = x - W(lost);
            x = norm::weigh(lane, gamma, x * W(at_(inverse_deviation, s)));
            if constexpr (Norm::has_bias) x += lane.load(beta);
            lane.store(y, x);
        });
        return ell;
    }

private:
    static constexpr T rounding = 4 * std::numeric_limits<T>::epsilon();

    FPRNN_BOTH static constexpr T epsilon() {
        if constexpr (norm::normed)
            return T(Norm::epsilon);
        else
            return T(0);
    }
};

}  // namespace fprnn::kernel
