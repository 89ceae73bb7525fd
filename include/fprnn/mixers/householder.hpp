#pragma once

#include <fprnn/mixers/unit_directions.hpp>

#include <cstddef>

namespace fprnn {

/// Q = Π_i (I − α_i ū_i ū_iᵀ), reflection 0 applied first.
///                                                    (sec. parametrization-Q-Lambda, app. fixed-point-mamba)
/// Raw and prepared as unit_directions has it, and ū_iᵀū_j for j < i, row by row: c = S a is c_i = α_i (a_i −
/// Σ_{j<i} ū_iᵀū_j c_j).
/// Guaranteed: ‖Q‖₂ ≤ 1 for both scales. Not guaranteed: ‖I − Q‖₂ < 1. It holds for R = 1 and scale 1, in
/// exact arithmetic; the supremum is 1.15 for R = 2, 1.38 for R = 4 and 1.59 for R = 8, and with scale 2
/// iterations can enter an orbit of period 2.
template <int R, int Scale = 1>
struct householder_mixer : unit_directions<householder_mixer<R, Scale>, R, Scale> {
    static constexpr const char* name = "householder";
    static_assert(R >= 1, "householder<R>: R must be at least 1");
    static_assert(Scale == 1 || Scale == 2, "householder<R>: reflection_scale is 1 (paper) or 2 (the authors' code)");
    using base = unit_directions<householder_mixer, R, Scale>;
    template <class T>
    using numbers = typename base::template numbers<T>;
    static constexpr index more = R * (R - 1) / 2;

    static void check(index D) { base::check("householder", "reflections", D); }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q) {
        base::template prepare<Team, T>(D, raw, q);
        if constexpr (R > 1) {
            const auto U = mixing::held_rows<Team, R>(D, static_cast<const T*>(q));
            for (std::size_t i = 1; i < R; ++i) {
                const auto products = Team::template sum<static_cast<std::size_t>(R)>(D, [&](auto lane) {
                    const auto u = lane.load(U[i]);
                    numbers<std::remove_const_t<decltype(u)>> s;
                    for (std::size_t j = 0; j < R; ++j) s[j] = j < i ? u * lane.load(U[j]) : decltype(u)(T(0));
                    return s;
                });
                Team::once([&] {
                    for (std::size_t j = 0; j < i; ++j) q[R * D + in_products(i, j)] = products[j];
                });
            }
        }
    }

    template <class T>
    FPRNN_BOTH static numbers<T> S(const T* few, numbers<T> a) {
        for (std::size_t i = 0; i < R; ++i) {
            for (std::size_t j = 0; j < i; ++j) a[i] -= few[in_products(i, j)] * a[j];
            a[i] *= few[i];
        }
        return a;
    }
    template <class T>
    FPRNN_BOTH static numbers<T> S_back(const T* few, numbers<T> b) {
        for (std::size_t i = R; i-- > 0;) {
            b[i] *= few[i];
            for (std::size_t j = 0; j < i; ++j) b[j] -= few[in_products(i, j)] * b[i];
        }
        return b;
    }
    /// ᾱ_i −= c̄_i c_i / α_i², where c̄_i / α_i = b_i − Σ_{k>i} ū_kᵀū_i c̄_k, and of ū_iᵀū_j: += c̄_i c_j.
    template <class T>
    FPRNN_BOTH static void few_back(const T* few, const numbers<T>& a, numbers<T> b, T* few_bar) {
        const numbers<T> c = S(few, a);
        for (std::size_t i = R; i-- > 0;) {
            T before = a[i];  // c_i / α_i
            for (std::size_t j = 0; j < i; ++j) before -= few[in_products(i, j)] * c[j];
            few_bar[i] -= b[i] * before;
            b[i] *= few[i];
            for (std::size_t j = 0; j < i; ++j) {
                few_bar[in_products(i, j)] += b[i] * c[j];
                b[j] -= few[in_products(i, j)] * b[i];
            }
        }
    }
    template <class Lane, class T>
    FPRNN_BOTH static auto direction_bar(Lane lane, index D, const T* q, const T* q_bar, index i) {
        auto bar = lane.load(q_bar + i * D);
        const T* few_bar = q_bar + R * D;
        for (index j = 0; j < R; ++j)
            if (j != i) {
                const auto k = static_cast<std::size_t>(i < j ? j : i), l = static_cast<std::size_t>(i < j ? i : j);
                bar += decltype(bar)(few_bar[in_products(k, l)]) * lane.load(q + j * D);
            }
        return bar;
    }

    template <class Team, class T>
    FPRNN_BOTH static void compact(index D, const T* q, small_array<small_array<T, R>, R>& matrix) {
        const T* few = q + R * D;
        for (std::size_t i = 0; i < R; ++i)
            for (std::size_t k = 0; k < R; ++k) {
                T& x = matrix[i][k];
                x = i == k ? T(1) : T(0);
                for (std::size_t j = 0; j < i; ++j) x -= few[in_products(i, j)] * matrix[j][k];
                x *= few[i];
            }
    }

private:
    /// Where ū_iᵀū_j stands, j < i.
    FPRNN_BOTH static constexpr index in_products(std::size_t i, std::size_t j) {
        return 2 * R + static_cast<index>(i * (i - 1) / 2 + j);
    }
};

}  // namespace fprnn
