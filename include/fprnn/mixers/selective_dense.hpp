#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/psd_factor.hpp>
#include <fprnn/mixers/row_algebra.hpp>

#include <array>
#include <string>

namespace fprnn {

/// Q = K, a psd_factor of all D channels without gates: the dense reference, for D ≤ 256. It is Q itself that
/// is given, not I − Q. The authors' code divides by 32 steps of a power iteration instead of an upper bound.
/// Raw: the upper triangle [D (D + 1) / 2]; prepared: K [D²]. To prepare a token takes O(D³), to mix it
/// O(D²).
/// Guaranteed: Q is symmetric, 0 ≤ Q < I, and ‖I − Q‖₂ ≤ 1, which a singular K reaches.
struct selective_dense_mixer {
    static constexpr const char* name = "selective_dense";
    static constexpr index most = 256;

    static void check(index D) {
        require(D <= most, "selective_dense",
                [&] { return "d_inner must be at most " + std::to_string(most) + ", got " + std::to_string(D); });
    }
    static std::array<index, 1> raw_sizes(index D) { return {factor::numbers(D)}; }
    FPRNN_BOTH static constexpr index size(index D) { return D * D; }
    static index scratch(index D) { return D; }
    static index prepare_scratch(index D) { return factor::scratch(D); }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        factor::prepare<Team>(D, raw[0], static_cast<const T*>(nullptr), 0, q, scratch);
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T*, const T* q_bar, T* const* raw_bar,
                                        T* scratch) {
        factor::prepare_back<Team>(D, raw[0], static_cast<const T*>(nullptr), 0, q_bar, raw_bar[0],
                                   static_cast<T*>(nullptr), scratch);
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        mixing::difference<Team>(D, v, w, w, scratch);
        mixing::wait<Team>();
        mixing::multiply<Team>(1, D, D, mixing::scalars<T>{scratch, D, 1}, q, [&](auto lane, index, auto Qd) {
            if (w) Qd += lane.load(w);
            lane.store(out, Qd);
        });
    }
    /// Q is symmetric.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        mixing::multiply<Team>(1, D, D, mixing::scalars<T>{out_bar, D, 1}, q, [&](auto lane, index, auto Qg) {
            if (v_bar) lane.add(v_bar, Qg);
            if (w_bar) lane.add(w_bar, lane.load(out_bar) - Qg);
        });
    }
    /// Q̄ += (v − w) ōᵀ, as mix reads Q row by row
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T*, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        mixing::difference<Team>(D, v, w, w, scratch);
        mixing::wait<Team>();
        for (index r = 0; r < D; ++r)
            Team::each(D, [&](auto lane) {
                lane.add(q_bar + r * D, decltype(lane.load(out_bar))(scratch[r]) * lane.load(out_bar));
            });
    }

private:
    using factor = mixing::psd_factor;
};

}  // namespace fprnn
