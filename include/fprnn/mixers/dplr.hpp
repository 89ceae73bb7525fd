#pragma once

#include <fprnn/mixers/unit_directions.hpp>

#include <cstddef>

namespace fprnn {

/// Q = I − Σ_i α_i ū_i ū_iᵀ, diagonal plus low rank.                                            (sec. parametrization-Q-Lambda)
/// Raw and prepared as unit_directions has it. Scale 1 is the paper's, 2 the authors' code's.
/// Guaranteed: I − Q is symmetric, positive semidefinite, and ‖I − Q‖₂ ≤ Σ α_i, which equal directions reach. So ‖I − Q‖₂ < 1
/// holds for R = 1 and scale 1 alone, and ‖Q‖₂ ≤ max(1, Σ α_i − 1). contractive<…> makes any of them a contraction.
template <int R, int Scale = 1>
struct dplr_mixer : unit_directions<R, Scale> {
    using directions = unit_directions<R, Scale>;
    static_assert(R >= 1, "dplr<R>: R must be at least 1");
    static_assert(Scale == 1 || Scale == 2, "dplr<R>: the scale of alpha is 1 (paper) or 2 (the authors' code)");

    static void check(index D) { directions::check("dplr", "directions", D); }
    FPRNN_BOTH static constexpr index scratch(index) { return 0; }

    /// I − Q = U diag(α) Uᵀ
    template <class Team, class T>
    FPRNN_BOTH static void compact(index D, const T* q, small_array<small_array<T, R>, R>& S) {
        for (std::size_t i = 0; i < R; ++i)
            for (std::size_t k = 0; k < R; ++k) S[i][k] = i == k ? q[R * D + static_cast<index>(i)] : T(0);
    }

    /// out = w + e − Σ_i α_i ū_i (ū_iᵀ e), e = v − w.
    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T*) {
        if (v && w) {
            const auto a = held<Team>(D, v), b = held<Team>(D, w);
            const auto by = scaled<Team>(D, q, [&](auto lane) { return lane.load(a) - lane.load(b); });
            Team::each(D, [&](auto lane) { lane.store(out, lane.load(a) - combined(lane, D, q, by)); });
        } else if (v) {
            const auto a = held<Team>(D, v);
            const auto by = scaled<Team>(D, q, [&](auto lane) { return lane.load(a); });
            Team::each(D, [&](auto lane) { lane.store(out, lane.load(a) - combined(lane, D, q, by)); });
        } else if (w) {  // w − Q w = (I − Q) w
            const auto b = held<Team>(D, w);
            const auto by = scaled<Team>(D, q, [&](auto lane) { return lane.load(b); });
            Team::each(D, [&](auto lane) { lane.store(out, combined(lane, D, q, by)); });
        } else {
            Team::each(D, [&](auto lane) { lane.store(out, decltype(lane.load(q))(T(0))); });
        }
    }

    /// I − Q is symmetric: v̄ += ō − (I − Q) ō,  w̄ += (I − Q) ō.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        const auto bar = held<Team>(D, out_bar);
        const auto by = scaled<Team>(D, q, [&](auto lane) { return lane.load(bar); });
        Team::each(D, [&](auto lane) {
            const auto rest = combined(lane, D, q, by);
            if (v_bar) lane.add(v_bar, lane.load(bar) - rest);
            if (w_bar) lane.add(w_bar, rest);
        });
    }

    /// With a_i = ū_iᵀ e and b_i = ū_iᵀ ō:  ᾱ_i −= a_i b_i,  ū̄_i −= α_i (b_i e + a_i ō).
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar, T*) {
        const auto g = held<Team>(D, out_bar);
        const auto e = [&](auto lane) {
            using V = decltype(lane.load(q));
            const V zero(T(0));
            return (v ? lane.load(v) : zero) - (w ? lane.load(w) : zero);
        };
        for (index i = 0; i < R; ++i) {
            const auto u = held<Team>(D, q + i * D);
            const auto sums = Team::template sum<2>(D, [&](auto lane) {
                const auto x = lane.load(u);
                return small_array{x * e(lane), x * lane.load(g)};
            });
            Team::once([&] { q_bar[R * D + i] -= sums[0] * sums[1]; });
            const T by_e = -q[R * D + i] * sums[1], by_g = -q[R * D + i] * sums[0];
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(q));
                lane.add(q_bar + i * D, V(by_e) * e(lane) + V(by_g) * lane.load(g));
            });
        }
    }

private:
    /// α_i ū_iᵀ x, where x(lane) is a row.
    template <class Team, class T, class Row>
    FPRNN_BOTH static small_array<T, R> scaled(index D, const T* q, const Row& x) {
        auto sums = Team::template sum<R>(D, [&](auto lane) {
            const auto value = x(lane);
            small_array<decltype(lane.load(q)), R> s;
            for (index i = 0; i < R; ++i) s[static_cast<std::size_t>(i)] = lane.load(q + i * D) * value;
            return s;
        });
        for (index i = 0; i < R; ++i) sums[static_cast<std::size_t>(i)] *= q[R * D + i];
        return sums;
    }
    /// Σ_i by_i ū_i
    template <class Lane, class T>
    FPRNN_BOTH static auto combined(Lane lane, index D, const T* q, const small_array<T, R>& by) {
        using V = decltype(lane.load(q));
        V sum = V(by[0]) * lane.load(q);
        for (index i = 1; i < R; ++i) sum += V(by[static_cast<std::size_t>(i)]) * lane.load(q + i * D);
        return sum;
    }
};

}  // namespace fprnn
