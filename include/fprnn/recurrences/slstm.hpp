#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/recurrences/exponential_gates.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace fprnn {

/// xLSTM's scalar cell of the raw gates i, f, z and o, each with D channels (Beck et al. 2024):
///
///     c_t = σ(f) c_{t−1} + e^i tanh(z),   n_t = σ(f) n_{t−1} + e^i,   y_t = σ(o) c_t / n_t
///
/// The state is [3,D]: c and n in units of e^{⌈m⌉}, and m, see exponential_gates. y does not depend on the
/// unit.
struct slstm_recurrence {
    static constexpr const char* name = "slstm";
    static constexpr std::size_t inputs = 4;

    struct sizes {
        index channels;
    };
    static sizes of(const std::array<index, inputs>& widths) {
        const char* const names[] = {"i", "f", "z", "o"};
        for (std::size_t k = 1; k < inputs; ++k)
            require(widths[k] == widths[0], "slstm", [&] {
                return std::string(names[k]) + " must have " + std::to_string(widths[0]) + " channels, as i, got " +
                       std::to_string(widths[k]);
            });
        return {widths[0]};
    }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return 3 * s.channels; }
    static constexpr index value(const sizes& s) { return s.channels; }
    FPRNN_BOTH static constexpr index scratch(const sizes&) { return 0; }

    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T* p, const small_array<const T*, inputs>& x, const T* from,
                                T* to, T* y) {
        step_of<Team, T>(s, 0, s.channels, p, x, from, to, y);
    }
    template <class Team, class T>
    FPRNN_BOTH static void step_of(const sizes& s, index first, index count, const T*,
                                   const small_array<const T*, inputs>& x, const T* from, T* to, T* y) {
        const index D = s.channels;
        Team::each(count, [&](auto lane) {
            const token<decltype(lane.load(from)), T> now(lane, D, first, x, from);
            lane.store(to + first, now.c);
            lane.store(to + D + first, now.n);
            lane.store(to + 2 * D + first, now.gates.m);
            if (y) lane.store(y + first, now.o * now.c / now.n);
        });
    }

    /// With h = c_t / n_t:
    ///
    ///     ō += ȳ h σ'(o),   h̄ = σ(o) ȳ,   c̄ += h̄ / n_t,   n̄ −= h̄ h / n_t,
    ///     z̄ += i' c̄ (1 − tanh²z),   ī' = c̄ tanh(z) + n̄,   f̄' = c̄ c_{t−1} + n̄ n_{t−1};
    ///     c̄_{t−1} = f' c̄,   n̄_{t−1} = f' n̄
    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* S,
                                const T* y_bar, T* S_bar, const small_array<T*, inputs>& x_bar, T*, T*) {
        const index D = s.channels;
        Team::each(s.channels, [&](auto lane) {
            using V = decltype(lane.load(S));
            const token<V, T> now(lane, D, 0, x, S);
            const V one(T(1)), h = now.c / now.n, y = lane.load(y_bar), h_bar = now.o * y / now.n;
            const V c_bar = lane.load(S_bar) + h_bar, n_bar = lane.load(S_bar + D) - h_bar * h;
            V m_bar = lane.load(S_bar + 2 * D);
            const V f_bar = c_bar * lane.load(S) + n_bar * lane.load(S + D);
            const auto raw = now.gates.back(lane.load(x[1]), f_bar, c_bar * now.z + n_bar, m_bar);
            if (x_bar[0]) lane.add(x_bar[0], raw.i);
            if (x_bar[1]) lane.add(x_bar[1], raw.f);
            if (x_bar[2]) lane.add(x_bar[2], now.gates.i * c_bar * (one - now.z * now.z));
            if (x_bar[3]) lane.add(x_bar[3], y * h * now.o * (one - now.o));
            lane.store(S_bar, now.gates.f * c_bar);
            lane.store(S_bar + D, now.gates.f * n_bar);
            lane.store(S_bar + 2 * D, m_bar);
        });
    }

private:
    /// Channels of one token, the first of which is `first`.
    template <class V, class T>
    struct token {
        exponential_gates<V, T> gates;
        V z, o;  ///< tanh(z), σ(o)
        V c, n;

        template <class Lane>
        FPRNN_BOTH token(Lane lane, index D, index first, const small_array<const T*, inputs>& x, const T* S)
            : gates(lane.load(x[0] + first), lane.load(x[1] + first), lane.load(S + 2 * D + first)),
              z(chain::tanh_function::value(lane.load(x[2] + first))),
              o(chain::sigmoid_function::value(lane.load(x[3] + first))),
              c(gates.f * lane.load(S + first) + gates.i * z),
              n(gates.f * lane.load(S + D + first) + gates.i) {}
    };
};

}  // namespace fprnn
