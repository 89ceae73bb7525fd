#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/psd_factor.hpp>
#include <fprnn/mixers/row_algebra.hpp>

#include <array>
#include <string>

namespace fprnn {

/// Q = I − diag(K_1, …, K_{D/k}), D / k blocks of [k,k], each a psd_factor with one gate: the structure that
/// the authors' code calls Monarch, which divides by the largest column norm instead of a bound of the
/// largest eigenvalue.
/// Raw: the blocks' upper triangles [D (k + 1) / 2] and gates [D / k]; prepared: the blocks [D k].
/// Guaranteed: I − Q is symmetric, positive semidefinite, and ‖I − Q‖₂ < 1 for any finite raw numbers.
/// Channels of different blocks are not mixed.
template <int K>
struct block_diagonal_mixer {
    static constexpr const char* name = "block_diagonal";
    static_assert(K >= 1, "block_diagonal<k>: k must be at least 1");

    static void check(index D) {
        require(D % K == 0, "block_diagonal", [&] {
            return "blocks of " + std::to_string(K) + " need d_inner to be a multiple of " + std::to_string(K) +
                   ", got " + std::to_string(D);
        });
        (void)checked_product(K + 1, D, "block_diagonal: k + 1 times d_inner");
    }
    static std::array<index, 2> raw_sizes(index D) { return {D / K * factor::numbers(K), D / K}; }
    FPRNN_BOTH static constexpr index size(index D) { return D * K; }
    static index scratch(index D) { return D; }
    static index prepare_scratch(index) { return factor::scratch(K); }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        for (index n = 0; n < D / K; ++n) {
            factor::prepare<Team>(K, raw[0] + n * factor::numbers(K), raw[1] + n, 0, q + n * K * K, scratch);
            mixing::wait<Team>();
        }
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T*, const T* q_bar, T* const* raw_bar,
                                        T* scratch) {
        for (index n = 0; n < D / K; ++n) {
            const index at = n * factor::numbers(K);
            factor::prepare_back<Team>(K, raw[0] + at, raw[1] + n, 0, q_bar + n * K * K, raw_bar[0] + at,
                                       raw_bar[1] + n, scratch);
            mixing::wait<Team>();
        }
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        mixing::difference<Team>(D, v, w, w, scratch);
        mixing::wait<Team>();
        apply<Team>(D, q, scratch, [&](auto lane, index offset, auto Ee) {
            auto x = lane.load(scratch + offset) - Ee;
            if (w) x += lane.load(w + offset);
            lane.store(out + offset, x);
        });
    }
    /// I − Q is symmetric: v̄ += ō − (I − Q) ō,  w̄ += (I − Q) ō.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        apply<Team>(D, q, out_bar, [&](auto lane, index offset, auto Eg) {
            if (v_bar) lane.add(v_bar + offset, lane.load(out_bar + offset) - Eg);
            if (w_bar) lane.add(w_bar + offset, Eg);
        });
    }
    /// K̄_n −= (v − w)_n ō_nᵀ, as mix reads K_n row by row
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T*, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        mixing::difference<Team>(D, v, w, w, scratch);
        mixing::wait<Team>();
        for (index r = 0; r < D; ++r) {
            const T* bar = out_bar + r / K * K;
            Team::each(
                K, [&](auto lane) { lane.add(q_bar + r * K, decltype(lane.load(bar))(-scratch[r]) * lane.load(bar)); });
        }
    }

private:
    using factor = mixing::psd_factor;

    /// store(lane, offset, (I − Q) x) for every block, whose first channel is `offset`.
    template <class Team, class T, class Store>
    FPRNN_BOTH static void apply(index D, const T* q, const T* x, const Store& store) {
        for (index at = 0; at < D; at += K)
            mixing::multiply<Team>(1, K, K, mixing::scalars<T>{x + at, K, 1}, q + at * K,
                                   [&](auto lane, index, auto sum) { store(lane, at, sum); });
    }
};

}  // namespace fprnn
