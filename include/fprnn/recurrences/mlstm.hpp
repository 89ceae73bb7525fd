#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/recurrences/exponential_gates.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace fprnn {

/// xLSTM's matrix cell of the raw gates i and f, of k, v and q, a state C [K,V] and n [K] for each of H heads
/// (Beck et al. 2024):
///
///     C_t = σ(f) C_{t−1} + e^i κ_t v_tᵀ,   n_t = σ(f) n_{t−1} + e^i κ_t,   κ = k / √K,
///     y_t = C_tᵀq_t / max(|n_tᵀq_t|, 1)
///
/// A token has i and f [H], k and q [H,K], v and y [H,V]. The state is [H, KV + K + 1]: C and n of a head in
/// units of e^{⌈m⌉}, in which the 1 of the denominator is e^{−⌈m⌉}, and m, see exponential_gates. y does not
/// depend on the unit.
struct mlstm_recurrence {
    static constexpr const char* name = "mlstm";
    static constexpr std::size_t inputs = 5;

    struct sizes {
        index heads, keys, values;  ///< H, K, V
    };
    static sizes of(const std::array<index, inputs>& widths) {
        const index i = widths[0], f = widths[1], k = widths[2], v = widths[3], q = widths[4];
        const auto must = [](bool holds, const char* what, index width, const char* why, index got) {
            require(holds, "mlstm", [&] {
                return std::string(what) + std::to_string(width) + " channels, " + why + ", got " + std::to_string(got);
            });
        };
        must(f == i, "f must have ", i, "one for each of i's heads", f);
        must(i > 0 && k > 0 && k % i == 0, "k must have a multiple of ", i, "one for each of i's heads", k);
        must(v > 0 && v % i == 0, "v must have a multiple of ", i, "one for each of i's heads", v);
        must(q == k, "q must have ", k, "as k", q);
        return {i, k / i, v / i};
    }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return s.heads * state_of_head(s); }
    static constexpr index value(const sizes& s) { return s.heads * s.values; }
    FPRNN_BOTH static constexpr index scratch(const sizes&) { return 0; }

    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* from, T* to,
                                T* y) {
        using math::multiply_add;
        const index K = s.keys, V = s.values, one = state_of_head(s);
        for (index h = 0; h < s.heads; ++h, from += one, to += one) {
            const head<T> now(s, x, h, from);
            const T nq = next_n<Team>(s, now, from + K * V, to + K * V);
            const T r = y ? T(1) / denominator(nq, now.gates.unit) : T(0);
            Team::each(V, [&](auto lane) {
                using W = decltype(lane.load(now.v));
                const W added = W(now.i) * lane.load(now.v);
                const W read = recurring::sum_of<W>(K, [&](index j, W sum) {
                    const W next = multiply_add(W(now.k[j]), added, W(now.gates.f) * lane.load(from + j * V));
                    lane.store(to + j * V, next);
                    return y ? multiply_add(W(now.q[j]), next, sum) : sum;
                });
                if (y) lane.store(y + h * V, W(r) * read);
            });
            Team::once([&] { to[one - 1] = now.gates.m; });
        }
    }

    /// With a = n_tᵀq, r = 1 / max(|a|, b) and G, g the cotangents of C_t and n_t:
    ///
    ///     G += r q ȳᵀ,   w = C_t ȳ,   ā = −sign(a) r² qᵀw where |a| > b, else 0,
    ///     g += ā q,   q̄ += r w + ā n_t,   v̄ += i' Gᵀκ,   κ̄ = i' (G v + g),
    ///     ī' = κᵀ(G v + g),   f̄' = ⟨G, C_{t−1}⟩ + gᵀn_{t−1};   G ← f' G,   g ← f' g
    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* S,
                                const T* y_bar, T* S_bar, const small_array<T*, inputs>& x_bar, T*, T*) {
        const index K = s.keys, V = s.values, one = state_of_head(s);
        for (index h = 0; h < s.heads; ++h, S += one, S_bar += one) {
            const head<T> now(s, x, h, S);
            const T a = next_n<Team>(s, now, S + K * V, static_cast<T*>(nullptr));
            const T b = denominator(T(0), now.gates.unit), r = T(1) / denominator(a, now.gates.unit);
            T qw = 0, i_bar = 0, f_bar = 0;
            for (index j = 0; j < K; ++j) {
                const T k = now.k[j], q = now.q[j];
                const auto sums = Team::template sum<3>(V, [&](auto lane) {
                    using W = decltype(lane.load(S));
                    const W v = lane.load(now.v), before = lane.load(S + j * V), ybar = lane.load(y_bar + h * V);
                    const W G = lane.load(S_bar + j * V) + W(r * q) * ybar;
                    if (x_bar[3]) lane.add(x_bar[3] + h * V, W(now.i * k) * G);
                    lane.store(S_bar + j * V, W(now.gates.f) * G);
                    return small_array{(W(now.gates.f) * before + W(now.i * k) * v) * ybar, G * v, G * before};
                });
                qw += q * sums[0], i_bar += k * sums[1], f_bar += sums[2];
                Team::once([&] {
                    if (x_bar[4]) x_bar[4][h * K + j] += r * sums[0];
                    if (x_bar[2]) x_bar[2][h * K + j] += now.i * sums[1];
                });
            }
            const T a_bar = math::abs(a) > b ? -(a < T(0) ? -r : r) * (r * qw) : T(0);
            const auto of_n = Team::template sum<2>(K, [&](auto lane) {
                using W = decltype(lane.load(S));
                const W k = lane.load(now.k), q = lane.load(now.q), before = lane.load(S + K * V);
                const W g = lane.load(S_bar + K * V) + W(a_bar) * q;
                if (x_bar[4]) lane.add(x_bar[4] + h * K, W(a_bar) * (W(now.gates.f) * before + W(now.i) * k));
                if (x_bar[2]) lane.add(x_bar[2] + h * K, W(now.i) * g);
                lane.store(S_bar + K * V, W(now.gates.f) * g);
                return small_array{k * g, before * g};
            });
            Team::once([&] {
                const auto raw =
                    now.gates.back(x[1][h], f_bar + of_n[1], now.scale * (i_bar + of_n[0]), S_bar[one - 1]);
                if (x_bar[0]) x_bar[0][h] += raw.i;
                if (x_bar[1]) x_bar[1][h] += raw.f;
            });
        }
    }

private:
    FPRNN_BOTH static constexpr index state_of_head(const sizes& s) { return s.keys * s.values + s.keys + 1; }
    template <class T>
    struct head {
        exponential_gates<T, T> gates;
        const T *k, *v, *q;
        T scale, i;  ///< 1/√K, i' / √K

        FPRNN_BOTH head(const sizes& s, const small_array<const T*, inputs>& x, index h, const T* S)
            : gates(x[0][h], x[1][h], S[state_of_head(s) - 1]),
              k(x[2] + h * s.keys),
              v(x[3] + h * s.values),
              q(x[4] + h * s.keys),
              scale(T(1) / math::sqrt(T(s.keys))),
              i(scale * gates.i) {}
    };
    /// n_t = f' n_{t−1} + i' κ, stored where `to` is not null; returns n_tᵀq.
    template <class Team, class T>
    FPRNN_BOTH static T next_n(const sizes& s, const head<T>& now, const T* n, T* to) {
        using math::multiply_add;
        const auto nq = Team::template sum<1>(s.keys, [&](auto lane) {
            using W = decltype(lane.load(n));
            const W next = multiply_add(W(now.i), lane.load(now.k), W(now.gates.f) * lane.load(n));
            if (to) lane.store(to, next);
            return small_array{next * lane.load(now.q)};
        });
        return nq[0];
    }
    /// max(|nᵀq|, e^{−⌈m⌉}), neither 0 nor infinite.
    template <class T>
    FPRNN_BOTH static T denominator(T nq, T unit) {
        using namespace math;
        const T most = bits_of<T>::largest_exponent - T(2);
        return maximum(abs(nq), exp(maximum(-most, -maximum(unit, -most))));
    }
};

}  // namespace fprnn
