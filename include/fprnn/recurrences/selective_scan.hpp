#pragma once

#include <fprnn/ops/bodies.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace fprnn {

/// Mamba's recurrence of Δ, b, c and u with the state H [N,D]:             (eq. mamba, app. mamba-definition)
///
///     H_t = exp(−A ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ,   y_t = c_tᵀ H_t,   A = exp(ω) [N,D]
struct selective_scan_recurrence {
    static constexpr const char* name = "selective_scan";
    static constexpr std::size_t inputs = 4, open_input = 3;
    static constexpr bool scales_state = true;

    struct sizes {
        index states, channels;
    };
    /// Errors: Δ is not as wide as u, c not as wide as b.
    static sizes of(const std::array<index, inputs>& widths) {
        const auto as_wide = [&](const char* one, std::size_t i, const char* other, std::size_t j) {
            require(widths[i] == widths[j], name, [&] {
                return std::string(one) + " must be as wide as " + other + ", " + std::to_string(widths[j]) + ", got " +
                       std::to_string(widths[i]);
            });
        };
        as_wide("delta", 0, "u", 3);
        as_wide("c", 2, "b", 1);
        return {widths[1], widths[3]};
    }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return s.states * s.channels; }
    static constexpr index value(const sizes& s) { return s.channels; }
    FPRNN_BOTH static constexpr index scratch(const sizes& s) { return 2 * s.channels; }
    static constexpr index parameters(const sizes& s) { return s.states * s.channels; }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(const sizes& s, const T* omega, T* A) {
        using math::exp;
        Team::each(s.states * s.channels, [&](auto lane) { lane.store(A, exp(lane.load(omega))); });
    }
    /// ω̄ += A ⊙ Ā
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(const sizes& s, const T* A, const T* A_bar, T* omega_bar) {
        Team::each(s.states * s.channels, [&](auto lane) { lane.add(omega_bar, lane.load(A) * lane.load(A_bar)); });
    }
    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T* A, const small_array<const T*, inputs>& x, const T* from,
                                T* to, T* y) {
        step_of<Team, T>(s, 0, s.channels, A, x, from, to, y);
    }
    template <class Team, class T>
    FPRNN_BOTH static void step_of(const sizes& s, index i, index count, const T* A,
                                   const small_array<const T*, inputs>& x, const T* from, T* to, T* y) {
        const auto& [delta, b, c, u] = x.values;
        if (y)
            kernel::selective_scan_token<Team, T>(s.states, count, s.channels, A + i, delta + i, b, c, u + i, from + i,
                                                  to + i, y + i);
        else
            kernel::selective_scan_advance<Team, T>({1, s.states, count, 0, 0}, s.channels, A + i, delta + i, b, u + i,
                                                    from + i, to + i);
    }

    /// exp(−A ⊙ Δ_t)
    static constexpr unsigned hoisted_inputs = 1;
    static constexpr index hoisted(const sizes& s) { return state(s); }
    template <class Team, class T>
    FPRNN_BOTH static void hoist(const sizes& s, const T* A, const small_array<const T*, inputs>& x, T* decay) {
        kernel::selective_scan_decay<Team, T>(s.states, s.channels, A, x[0], decay);
    }
    template <class Team, class T>
    FPRNN_BOTH static void step_hoisted(const sizes& s, index i, index count, const T* decay,
                                        const small_array<const T*, inputs>& x, const T* from, T* to, T* y) {
        const auto& [delta, b, c, u] = x.values;
        kernel::selective_scan_token_of_decay<Team, T>(s.states, count, s.channels, decay + i, delta + i, b, c, u + i,
                                                       from + i, to + i, y + i);
    }

    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T* A, const small_array<const T*, inputs>& x, const T* H,
                                const T* y_bar, T* H_bar, const small_array<T*, inputs>& x_bar, T* A_bar, T* scratch) {
        const auto& [delta, b, c, u] = x.values;
        const auto& [delta_bar, b_bar, c_bar, u_bar] = x_bar.values;
        kernel::selective_scan_back_token<Team, T>(s.states, s.channels, A, delta, b, c, u, H, y_bar, H_bar, A_bar,
                                                   delta_bar, b_bar, c_bar, u_bar, scratch);
    }

    template <class Team, class T>
    FPRNN_BOTH static void open(const sizes& s, const T* A, const small_array<const T*, inputs>& x, T* H, T* p, T* g,
                                const small_array<const T*, inputs>* before) {
        const auto& [delta, b, c, u] = x.values;
        kernel::open_token<T> awaited{};
        if (before) awaited = {(*before)[0], (*before)[1], (*before)[3]};
        kernel::selective_scan_open<Team, T>(s.states, s.channels, A, delta, b, c, H, p, g,
                                             before ? &awaited : nullptr);
    }
    template <class Team, class T>
    FPRNN_BOTH static void close(const sizes& s, const small_array<const T*, inputs>& x, T* H) {
        kernel::selective_scan_close<Team, T>(s.states, s.channels, x[0], x[1], x[3], H);
    }
    template <class Team, class T>
    FPRNN_BOTH static void open_back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* H_bar,
                                     T* k, T* g) {
        kernel::selective_scan_open_back<Team, T>(s.states, s.channels, x[0], x[1], x[2], H_bar, k, g);
    }
    template <class Team, class T>
    FPRNN_BOTH static void back_input(const sizes& s, const T* A, const small_array<const T*, inputs>& x,
                                      const T* y_bar, T* H_bar, T* u_bar) {
        kernel::selective_scan_back_input<Team, T>({1, s.states, s.channels, 0, 0}, A, x[0], x[1], x[2], y_bar, H_bar,
                                                   u_bar);
    }
};

}  // namespace fprnn
