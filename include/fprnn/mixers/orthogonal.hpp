#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/row_algebra.hpp>
#include <fprnn/ops/l2_normalise.hpp>

#include <array>

namespace fprnn {

/// Q = Π_i (I − 2 v̄_i v̄_iᵀ), i < D, with v̄_i = v_i / ‖v_i‖: D reflections, which make every orthogonal
/// matrix of determinant (−1)^D. In expressions v is a parameter, so that Q is the same for all tokens: the
/// mixer that is not selective. The authors' code has a matrix exponential in its place.
/// Raw: v [D²]; prepared: v̄ [D²] and 1/‖v_i‖ [D].
/// Guaranteed: Q is orthogonal, and its gradient is exact, where ‖v_i‖ > 1e-5 for all i. ‖I − Q‖₂ ≤ 2, and as
/// initialised it is near 2: alone in an iteration it does not converge. It stands outside of one, or in a
/// product.
struct orthogonal_mixer {
    static constexpr const char* name = "orthogonal";
    static void check(index D) { (void)checked_product(D + 1, D, "orthogonal: d_inner + 1 times d_inner"); }
    static std::array<index, 1> raw_sizes(index D) { return {D * D}; }
    FPRNN_BOTH static constexpr index size(index D) { return D * D + D; }
    static index scratch(index D) { return 2 * D; }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q) {
        for (index i = 0; i < D; ++i) {
            const T scale = l2_normalise_function::value<Team, T>(D, raw[0] + i * D, q + i * D);
            Team::once([&] { q[D * D + i] = scale; });
        }
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const*, const T* q, const T* q_bar, T* const* raw_bar) {
        for (index i = 0; i < D; ++i)
            mixing::through_unit<Team>(
                D, q + i * D, q[D * D + i], q_bar[D * D + i], [&](auto lane) { return lane.load(q_bar + i * D); },
                [&](auto lane, auto bar) { lane.add(raw_bar[0] + i * D, bar); });
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        mixing::difference<Team>(D, v, w, w, scratch);
        for (index i = 0; i < D; ++i) mixing::reflect<Team>(D, q + i * D, T(2), scratch, scratch);
        mixing::add_rest<Team>(D, static_cast<const T*>(scratch), w, out);
    }
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        Team::each(D, [&](auto lane) { lane.store(scratch, lane.load(out_bar)); });
        for (index i = D - 1; i >= 0; --i) mixing::reflect<Team>(D, q + i * D, T(2), scratch, scratch);
        mixing::add_bars<Team>(D, static_cast<const T*>(scratch), out_bar, v_bar, w_bar);
    }
    /// As householder_mixer's, with α = 2: d_{i−1} = d_i − 2 (v̄ᵀd_i) v̄ and v̄ᵀd_{i−1} = −v̄ᵀd_i.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        T *const d = scratch, *const g = scratch + D;
        mixing::difference<Team>(D, v, w, w, d);
        for (index i = 0; i < D; ++i) mixing::reflect<Team>(D, q + i * D, T(2), d, d);
        Team::each(D, [&](auto lane) { lane.store(g, lane.load(out_bar)); });
        for (index i = D - 1; i >= 0; --i) {
            const T a = -mixing::reflect<Team>(D, q + i * D, T(2), d, d), b = mixing::along<Team, T>(D, q + i * D, g);
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(q));
                const V after = lane.load(g);
                lane.add(q_bar + i * D, V(T(-2) * b) * lane.load(d) + V(T(-2) * a) * after);
                lane.store(g, after + V(T(-2) * b) * lane.load(q + i * D));
            });
        }
    }
};

}  // namespace fprnn
