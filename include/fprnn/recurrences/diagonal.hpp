#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace fprnn {

/// The diagonal scan of λ and u as a recurrence, whose state is its value (eq. intro_rnn):
///
///     h_t = λ_t ⊙ h_{t−1} + u_t
///
/// λ, u and h have D channels. Errors: other widths. scan(λ, u) is the same with a loop of its own, over the
/// sequences of a tile side by side: in expressions it is what `scan` evaluates.
struct diagonal_recurrence {
    static constexpr const char* name = "diagonal";
    static constexpr std::size_t inputs = 2;
    static constexpr bool scales_state = true;

    struct sizes {
        index channels;
    };
    static sizes of(const std::array<index, inputs>& widths) {
        require(widths[0] == widths[1], "diagonal", [&] {
            return "u must have " + std::to_string(widths[0]) + " channels, as lambda, got " +
                   std::to_string(widths[1]);
        });
        return {widths[0]};
    }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return s.channels; }
    static constexpr index value(const sizes& s) { return s.channels; }
    FPRNN_BOTH static constexpr index scratch(const sizes&) { return 0; }

    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* from, T* to,
                                T* y) {
        Team::each(s.channels, [&](auto lane) {
            const auto h = lane.load(x[0]) * lane.load(from) + lane.load(x[1]);
            lane.store(to, h);
            if (y) lane.store(y, h);
        });
    }
    /// g = h̄_t + ȳ_t;  ū += g;  λ̄ += g ⊙ h_{t−1};  h̄_{t−1} = λ ⊙ g.
    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* h,
                                const T* y_bar, T* h_bar, const small_array<T*, inputs>& x_bar, T*, T*) {
        kernel::scan_back<Team>(1, s.channels, 0, x[0], h, h, y_bar, h_bar, x_bar[0], x_bar[1]);
    }
};

}  // namespace fprnn
