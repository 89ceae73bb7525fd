#pragma once

#include <fprnn/mixers/unit_directions.hpp>

#include <cstddef>

namespace fprnn {

/// Q = I − Σ_i α_i ū_i ū_iᵀ, diagonal plus low rank: S = diag(α).             (sec. parametrization-Q-Lambda)
/// Raw and prepared as unit_directions has it.
/// Guaranteed: I − Q is symmetric, positive semidefinite, and ‖I − Q‖₂ ≤ Σ α_i, which equal directions reach.
/// So ‖I − Q‖₂ < 1 holds for R = 1 and scale 1 alone, in exact arithmetic, and ‖Q‖₂ ≤ max(1, Σ α_i − 1).
/// contractive_mixer makes any of them a contraction.
template <int R, int Scale = 1>
struct dplr_mixer : unit_directions<dplr_mixer<R, Scale>, R, Scale> {
    static constexpr const char* name = "dplr";
    static_assert(R >= 1, "dplr<R>: R must be at least 1");
    static_assert(Scale == 1 || Scale == 2, "dplr<R>: the scale of alpha is 1 (paper) or 2 (the authors' code)");
    using base = unit_directions<dplr_mixer, R, Scale>;
    template <class T>
    using numbers = typename base::template numbers<T>;
    static constexpr index more = 0;

    static void check(index D) { base::check("dplr", "directions", D); }

    template <class T>
    FPRNN_BOTH static numbers<T> S(const T* alpha, numbers<T> a) {
        for (std::size_t i = 0; i < R; ++i) a[i] *= alpha[i];
        return a;
    }
    template <class T>
    FPRNN_BOTH static numbers<T> S_back(const T* alpha, const numbers<T>& b) {
        return S(alpha, b);
    }
    template <class T>
    FPRNN_BOTH static void few_back(const T*, const numbers<T>& a, const numbers<T>& b, T* alpha_bar) {
        for (std::size_t i = 0; i < R; ++i) alpha_bar[i] -= a[i] * b[i];
    }
    template <class Team, class T>
    FPRNN_BOTH static void compact(index D, const T* q, small_array<small_array<T, R>, R>& matrix) {
        for (std::size_t i = 0; i < R; ++i)
            for (std::size_t k = 0; k < R; ++k) matrix[i][k] = i == k ? q[R * D + static_cast<index>(i)] : T(0);
    }
};

}  // namespace fprnn
