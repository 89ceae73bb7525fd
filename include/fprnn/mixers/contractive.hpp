#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/complement_norm.hpp>
#include <fprnn/mixers/row_algebra.hpp>

#include <array>
#include <cstddef>

namespace fprnn {

/// I − Q = s (I − Q_M) with s = min(1, ρ / ‖I − Q_M‖₂), ρ = Numerator / Denominator: a compact mixer M made a
/// contraction. M is unchanged where ‖I − Q_M‖₂ ≤ ρ. The norm is exact (complement_norm) and differentiated;
/// where two singular values are the largest, the gradient is that of one of them.
/// Raw: those of M; prepared: those of M, then s. It is FPRNN_BOTH where M is, M::size and M::scratch, too.
/// Guaranteed: ‖I − Q‖₂ ≤ ρ < 1 for any finite raw numbers, up to rounding. ‖Q‖₂ ≤ 1 where it holds for M, as
/// Q lies between I and Q_M.
template <compact_mixer M, int Numerator, int Denominator>
    requires(0 < Numerator && Numerator < Denominator)
struct contractive_mixer {
    static constexpr const char* name = "contractive";
    static constexpr int rank = M::rank;

    static void check(index D) {
        if constexpr (requires { M::check(D); }) M::check(D);
        (void)checked_sum(M::size(D), checked_product(2, D, "contractive"), "contractive: prepared numbers");
    }
    static auto raw_sizes(index D) { return M::raw_sizes(D); }
    FPRNN_BOTH static constexpr index size(index D) { return M::size(D) + 1; }
    FPRNN_BOTH static constexpr index scratch(index D) { return 2 * D + M::scratch(D); }
    static index prepare_scratch(index D) { return M::size(D) + 2 * D + M::scratch(D) + mixing::prepare_scratch<M>(D); }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        mixing::prepare<M, Team>(D, raw, q, scratch);
        mixing::wait<Team>();
        const T norm = mixing::largest_singular_of<M, Team>(D, static_cast<const T*>(q)).norm;
        Team::once([&] { q[M::size(D)] = norm <= rho<T>() ? T(1) : rho<T>() / norm; });  // NaN stays NaN
    }
    /// With (I − Q_M) b = σ a for the largest singular value: σ̄ sends −σ̄ a bᵀ to Q_M, which is mix_back_q
    /// of v = b and ō = −σ̄ a.
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar,
                                        T* scratch) {
        const index n = M::size(D);
        T *const bar = scratch, *const a = bar + n, *const b = a + D, *const rest = b + D;
        for (index at = 0; at < n; at += D)
            Team::each(n - at < D ? n - at : D, [&](auto lane) { lane.store(bar + at, lane.load(q_bar + at)); });
        const auto top = mixing::largest_singular_of<M, Team>(D, q);
        if (top.norm > rho<T>()) {
            const T by = q_bar[n] * rho<T>() / (top.norm * top.norm);  // −σ̄
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(q));
                V left(T(0)), right(T(0));
                for (index i = 0; i < rank; ++i) {
                    left += V(by * top.left[static_cast<std::size_t>(i)]) * lane.load(q + i * D);
                    right += V(top.right[static_cast<std::size_t>(i)]) * lane.load(q + i * D);
                }
                lane.store(a, left);
                lane.store(b, right);
            });
            mixing::wait<Team>();
            M::template mix_back_q<Team, T>(D, q, b, nullptr, a, bar, rest);
        }
        mixing::wait<Team>();
        mixing::prepare_back<M, Team>(D, raw, q, static_cast<const T*>(bar), raw_bar, rest + M::scratch(D));
    }

    template <class Team, class T>
    FPRNN_BOTH static void compact(index D, const T* q, small_array<small_array<T, rank>, rank>& S) {
        M::template compact<Team, T>(D, q, S);
        for (auto& row : S.values)
            for (T& x : row.values) x *= q[M::size(D)];
    }

    /// out = w + e − s (e − Q_M e), e = v − w.
    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        T *const e = scratch, *const mixed = scratch + D;
        const T s = q[M::size(D)];
        mixing::difference<Team>(D, v, w, w, e);
        mixing::wait<Team>();
        M::template mix<Team, T>(D, q, e, nullptr, mixed, scratch + 2 * D);
        mixing::wait<Team>();
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            V x = lane.load(e);
            x += V(s) * (lane.load(mixed) - x);
            if (w) x += lane.load(w);
            lane.store(out, x);
        });
    }
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        T* const back = scratch;  // (I − Q_M)ᵀ ō
        const T s = q[M::size(D)];
        Team::each(D, [&](auto lane) { lane.store(back, decltype(lane.load(back))(T(0))); });
        mixing::wait<Team>();
        M::template mix_back<Team, T>(D, q, out_bar, nullptr, back, scratch + 2 * D);
        mixing::wait<Team>();
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            const V rest = V(s) * lane.load(back);
            if (v_bar) lane.add(v_bar, lane.load(out_bar) - rest);
            if (w_bar) lane.add(w_bar, rest);
        });
    }
    /// s̄ −= ōᵀ(e − Q_M e), and Q_M's numbers receive what s ō gives.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        T *const e = scratch, *const other = scratch + D, *const rest = scratch + 2 * D;
        const T s = q[M::size(D)];
        mixing::difference<Team>(D, v, w, w, e);
        mixing::wait<Team>();
        M::template mix<Team, T>(D, q, e, nullptr, other, rest);
        mixing::wait<Team>();
        const T along = Team::template sum<1>(
            D, [&](auto lane) { return small_array{lane.load(out_bar) * (lane.load(other) - lane.load(e))}; })[0];
        Team::once([&] { q_bar[M::size(D)] += along; });
        Team::each(D, [&](auto lane) { lane.store(other, decltype(lane.load(q))(s) * lane.load(out_bar)); });
        mixing::wait<Team>();
        M::template mix_back_q<Team, T>(D, q, e, nullptr, other, q_bar, rest);
    }

private:
    template <class T>
    FPRNN_BOTH static constexpr T rho() {
        return static_cast<T>(Numerator) / static_cast<T>(Denominator);
    }
};

}  // namespace fprnn
