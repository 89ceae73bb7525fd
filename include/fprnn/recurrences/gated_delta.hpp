#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <string>

namespace fprnn {

/// The gated delta rule of α, k, v, β and q, a state S [K,V] for each of H heads: n steps a token, the first
/// of which forgets.
///
///     S ← α_t S;   for j < n:  r = v_j − Sᵀk_j,  S ← S + β_j k_j rᵀ;   y_t = Sᵀq_t
///
/// which for n = 1 is S_t = α (S − β k (kᵀS)) + β k vᵀ (Gated DeltaNet), for α = 1 DeltaNet, for n > 1
/// (Gated) DeltaProduct. A token has α [H], k [n,H,K], v [n,H,V], β [n,H], q [H,K] and y [H,V]; S is [H,K,V].
/// K, V and n follow from the widths. With |k| = 1, 0 ≤ β ≤ 2 and 0 ≤ α ≤ 1 the state's map has a norm of at
/// most 1; `normalise` and `sigmoid` make them so.
struct gated_delta_recurrence {
    static constexpr const char* name = "gated_delta";
    static constexpr std::size_t inputs = 5;

    struct sizes {
        index heads, keys, values, steps;  ///< H, K, V, n
    };
    static sizes of(const std::array<index, inputs>& widths) {
        const index alpha = widths[0], k = widths[1], v = widths[2], beta = widths[3], q = widths[4];
        const auto divide = [](const char* what, index width, const char* by, index parts) {
            require(parts > 0 && width % parts == 0 && width > 0, "gated_delta", [&] {
                return std::string(what) + " must have a multiple of " + std::to_string(parts) + " channels, " + by +
                       ", got " + std::to_string(width);
            });
            return width / parts;
        };
        sizes s{alpha, 0, 0, divide("beta", beta, "one for each of alpha's heads", alpha)};
        s.keys = divide("q", q, "one for each of alpha's heads", alpha);
        s.values = divide("v", v, "one for each of beta's", beta);
        require(k == s.steps * s.heads * s.keys, "gated_delta", [&] {
            return "k must have " + std::to_string(s.steps * s.heads * s.keys) +
                   " channels, as many for each of beta's " + std::to_string(beta) + " as q has for each head, got " +
                   std::to_string(k);
        });
        return s;
    }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return s.heads * s.keys * s.values; }
    static constexpr index value(const sizes& s) { return s.heads * s.values; }
    /// States before each of the n steps, r of each, and ρ.
    FPRNN_BOTH static constexpr index scratch(const sizes& s) {
        return s.steps * s.keys * s.values + s.steps * s.values + s.values;
    }

    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* from, T* to,
                                T* y) {
        const index one = s.keys * s.values;
        for (index h = 0; h < s.heads; ++h, from += one, to += one) {
            for (index j = 0; j < s.steps; ++j) {
                const key_value<T> now(s, x, h, j);
                const bool is_last = y && j == s.steps - 1;
                learn<Team, T>(s, now, j == 0 ? from : to, j == 0 ? x[0][h] : T(1), to, nullptr,
                               is_last ? x[4] + h * s.keys : nullptr, is_last ? y + h * s.values : nullptr);
            }
        }
    }

    /// With G the cotangent of S behind a step, ρ = Gᵀk and r̄ = β ρ:
    ///
    ///     before the steps    q̄ += S ȳ,   G ← G + q ȳᵀ
    ///     each of them        β̄ += ρᵀr,   k̄ += β G r − S r̄,   v̄ += r̄,   G ← G − k r̄ᵀ
    ///     after them          ᾱ += ⟨G, S⟩,   G ← α G
    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* S,
                                const T* y_bar, T* G, const small_array<T*, inputs>& x_bar, T*, T* scratch) {
        using math::multiply_add;
        const index K = s.keys, V = s.values, one = K * V;
        T* const states = scratch;            // behind each step
        T* const r = states + s.steps * one;  // of each step
        T* const rho = r + s.steps * V;
        for (index h = 0; h < s.heads; ++h, S += one, G += one) {
            const T alpha = x[0][h];
            const auto behind = [&](index j) { return states + j * one; };
            for (index j = 0; j < s.steps; ++j)
                learn<Team, T>(s, key_value<T>(s, x, h, j), j == 0 ? S : behind(j - 1), j == 0 ? alpha : T(1),
                               behind(j), r + j * V);
            for (index i = 0; i < K; ++i) {
                const T* last = behind(s.steps - 1) + i * V;
                const T q = x[4][h * K + i];
                const auto sum = Team::template sum<1>(V, [&](auto lane) {
                    const auto ybar = lane.load(y_bar + h * V);
                    lane.add(G + i * V, decltype(ybar)(q) * ybar);
                    return small_array{lane.load(last) * ybar};
                });
                Team::once([&] {
                    if (x_bar[4]) x_bar[4][h * K + i] += sum[0];
                });
            }
            for (index j = s.steps - 1; j >= 0; --j) {
                const key_value<T> now(s, x, h, j);
                const T* const rj = r + j * V;
                const T* const before = j == 0 ? S : behind(j - 1);
                const T decay = j == 0 ? alpha : T(1);
                const auto through_beta = Team::template sum<1>(V, [&](auto lane) {
                    using W = decltype(lane.load(rj));
                    const W sum = recurring::sum_of<W>(
                        K, [&](index i, W so_far) { return multiply_add(W(now.k[i]), lane.load(G + i * V), so_far); });
                    lane.store(rho, sum);
                    if (x_bar[2]) lane.add(x_bar[2] + now.at * V, W(now.beta) * sum);
                    return small_array{sum * lane.load(rj)};
                });
                Team::once([&] {
                    if (x_bar[3]) x_bar[3][now.at] += through_beta[0];
                });
                for (index i = 0; i < K; ++i) {
                    const auto sum = Team::template sum<1>(V, [&](auto lane) {
                        using W = decltype(lane.load(rj));
                        const W g = lane.load(G + i * V), r_bar = W(now.beta) * lane.load(rho);
                        lane.store(G + i * V, g - W(now.k[i]) * r_bar);
                        return small_array{W(now.beta) * g * lane.load(rj) -
                                           W(decay) * lane.load(before + i * V) * r_bar};
                    });
                    Team::once([&] {
                        if (x_bar[1]) x_bar[1][now.at * K + i] += sum[0];
                    });
                }
            }
            const auto kept = Team::template sum<1>(V, [&](auto lane) {
                using W = decltype(lane.load(S));
                const W sum = recurring::sum_of<W>(K, [&](index i, W so_far) {
                    const W g = lane.load(G + i * V);
                    lane.store(G + i * V, W(alpha) * g);
                    return multiply_add(g, lane.load(S + i * V), so_far);
                });
                return small_array{sum};
            });
            Team::once([&] {
                if (x_bar[0]) x_bar[0][h] += kept[0];
            });
        }
    }

private:
    /// k, v and β of head h in step j.
    template <class T>
    struct key_value {
        index at;
        const T *k, *v;
        T beta;

        FPRNN_BOTH key_value(const sizes& s, const small_array<const T*, inputs>& x, index h, index j)
            : at(j * s.heads + h), k(x[1] + at * s.keys), v(x[2] + at * s.values), beta(x[3][at]) {}
    };
    /// to = decay S + β k rᵀ with r = v − decay Sᵀk, which is stored where it is asked for, as is y = toᵀq.
    template <class Team, class T>
    FPRNN_BOTH static void learn(const sizes& s, const key_value<T>& now, const T* S, T decay, T* to, T* r,
                                 const T* q = nullptr, T* y = nullptr) {
        using math::multiply_add;
        const index K = s.keys, V = s.values;
        Team::each(V, [&](auto lane) {
            using W = decltype(lane.load(now.v));
            const W known = recurring::sum_of<W>(
                K, [&](index i, W sum) { return multiply_add(W(now.k[i]), lane.load(S + i * V), sum); });
            const W error = lane.load(now.v) - W(decay) * known, learnt = W(now.beta) * error;
            if (r) lane.store(r, error);
            const W read = recurring::sum_of<W>(K, [&](index i, W sum) {
                const W next = multiply_add(W(now.k[i]), learnt, W(decay) * lane.load(S + i * V));
                lane.store(to + i * V, next);
                return q ? multiply_add(W(q[i]), next, sum) : sum;
            });
            if (y) lane.store(y, read);
        });
    }
};

}  // namespace fprnn
