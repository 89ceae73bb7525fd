#pragma once

#include <fprnn/mixers/unit_directions.hpp>

namespace fprnn {

/// Q = Π_i (I − α_i ū_i ū_iᵀ), reflection 0 applied first, with ū_i = SiLU(u_i) / ‖SiLU(u_i)‖ and α_i = scale · σ(a_i).
///                                                                   (sec. parametrization-Q-Lambda, app. fixed-point-mamba)
/// Raw: u [R·D] and a [R]; prepared: ū [R·D], α [R] and, for the adjoint, 1/‖SiLU(u_i)‖ [R]. Scale 1 is the paper's, 2 the
/// authors' code's.
/// Guaranteed: ‖Q‖₂ ≤ 1 for both scales. Not guaranteed: ‖I − Q‖₂ < 1. It holds for R = 1 and scale 1; the supremum is
/// 1.15 for R = 2, 1.38 for R = 4 and 1.59 for R = 8, and with scale 2 iterations can enter an orbit of period 2.
template <int R, int Scale = 1>
struct householder_mixer : unit_directions<R, Scale> {
    using directions = unit_directions<R, Scale>;
    static_assert(R >= 1, "householder<R>: R must be at least 1");
    static_assert(Scale == 1 || Scale == 2, "householder<R>: reflection_scale is 1 (paper) or 2 (the authors' code)");

    static void check(index D) { directions::check("householder", "reflections", D); }

    /// I − Q = U S Uᵀ: row i of S is α_i (e_i − Σ_{j<i} (ū_iᵀ ū_j) S_j).
    template <class Team, class T>
    FPRNN_BOTH static void compact(index D, const T* q, small_array<small_array<T, R>, R>& S) {
        for (index i = 0; i < R; ++i) {
            const auto along = Team::template sum<R>(D, [&](auto lane) {
                small_array<decltype(lane.load(q)), R> s;
                for (index j = 0; j < R; ++j)
                    s[static_cast<std::size_t>(j)] =
                        lane.load(q + i * D) * (j < i ? lane.load(q + j * D) : decltype(lane.load(q))(T(0)));
                return s;
            });
            const T alpha = q[R * D + i];
            auto& row = S[static_cast<std::size_t>(i)];
            for (std::size_t k = 0; k < R; ++k) {
                row[k] = static_cast<index>(k) == i ? T(1) : T(0);
                for (std::size_t j = 0; static_cast<index>(j) < i; ++j) row[k] -= along[j] * S[j][k];
                row[k] *= alpha;
            }
        }
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        const auto rest = held<Team>(D, w);
        auto d = room<Team>(D, scratch);
        mixing::difference<Team>(D, v, w, rest, d);
        for (index i = 0; i < R; ++i) mixing::reflect<Team>(D, q + i * D, q[R * D + i], d, d);
        if (w)
            Team::each(D, [&](auto lane) { lane.store(out, lane.load(rest) + lane.load(d)); });
        else
            Team::each(D, [&](auto lane) { lane.store(out, lane.load(d)); });
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        const auto bar = held<Team>(D, out_bar);
        auto g = room<Team>(D, scratch);
        mixing::reflect<Team>(D, q + (R - 1) * D, q[R * D + R - 1], bar, g);
        for (index i = R - 2; i >= 0; --i) mixing::reflect<Team>(D, q + i * D, q[R * D + i], g, g);
        Team::each(D, [&](auto lane) {
            if (v_bar) lane.add(v_bar, lane.load(g));
            if (w_bar) lane.add(w_bar, lane.load(bar) - lane.load(g));
        });
    }

    /// With d_i = (I − α_i ū_i ū_iᵀ) d_{i−1} and g_i the cotangent of d_i, a = ū_iᵀ d_{i−1} and b = ū_iᵀ g_i:
    /// ᾱ_i −= a b,  ū_i −= α_i (b d_{i−1} + a g_i). On the way back d_{i−1} = d_i + α_i a ū_i.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        auto d = room<Team>(D, scratch), g = room<Team>(D, scratch + D);
        mixing::difference<Team>(D, v, w, w, d);
        small_array<T, R> a;
        for (index i = 0; i + 1 < R; ++i)
            a[static_cast<std::size_t>(i)] = mixing::reflect<Team>(D, q + i * D, q[R * D + i], d, d);
        Team::each(D, [&](auto lane) { lane.store(g, lane.load(out_bar)); });
        for (index i = R - 1; i >= 0; --i) {
            const auto u = held<Team>(D, q + i * D);
            const bool is_last = i + 1 == R;
            T along_d = 0, along_g = 0;
            if (is_last) {
                const auto sums = Team::template sum<2>(D, [&](auto lane) {
                    const auto x = lane.load(u);
                    return small_array{x * lane.load(d), x * lane.load(g)};
                });
                along_d = sums[0], along_g = sums[1];
            } else {
                along_d = a[static_cast<std::size_t>(i)], along_g = mixing::along<Team, T>(D, u, g);
            }
            Team::once([&] { q_bar[R * D + i] -= along_d * along_g; });
            const T by_d = -q[R * D + i] * along_g, by_g = -q[R * D + i] * along_d, back = is_last ? T(0) : -by_g;
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(q));
                const V x = lane.load(u), before = lane.load(d) + V(back) * x, after = lane.load(g);
                lane.add(q_bar + i * D, V(by_d) * before + V(by_g) * after);
                if (i == 0) return;
                lane.store(d, before);
                lane.store(g, after + V(by_d) * x);
            });
        }
    }
};

}  // namespace fprnn
