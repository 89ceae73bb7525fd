#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/row_algebra.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/l2_normalise.hpp>

#include <array>
#include <string>

namespace fprnn {

/// What mixers of R directions have in common: ū_i = SiLU(u_i) / ‖SiLU(u_i)‖ and α_i = scale · σ(a_i).
///                                                                   (sec. parametrization-Q-Lambda, app. fixed-point-mamba)
/// Raw: u [R·D] and a [R]; prepared: ū [R·D], α [R] and, for the adjoint, 1/‖SiLU(u_i)‖ [R]. Scale 1 is the paper's, 2 the
/// authors' code's.
template <int R, int Scale>
struct unit_directions {
    static constexpr int rank = R;
    static constexpr bool holds = true;

    /// argument_error, in the name of a mixer, where D channels do not suffice.
    static void check(const char* name, const char* of, index D) {
        require(D >= R, name, [&] {
            return "R = " + std::to_string(R) + " " + of + " need d_inner >= " + std::to_string(R) + ", got " +
                   std::to_string(D);
        });
        // size and scratch, which nothing checks again.
        (void)checked_product(R + 2, D, std::string(name) + ": R + 2 times d_inner");
    }
    static std::array<index, 2> raw_sizes(index D) { return {R * D, R}; }
    FPRNN_BOTH static constexpr index size(index D) { return R * D + 2 * R; }
    FPRNN_BOTH static constexpr index scratch(index D) { return 2 * D; }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q) {
        for (index i = 0; i < R; ++i) {
            const T* u = raw[0] + i * D;
            auto x = room<Team>(D, q + i * D);
            Team::each(D, [&](auto lane) { lane.store(x, chain::silu_function::value(lane.load(u))); });
            const T scale = l2_normalise_function::value<Team, T>(D, x, q + i * D);
            Team::once([&] {
                q[R * D + R + i] = scale;
                q[R * D + i] = T(Scale) * chain::sigmoid_function::value(raw[1][i]);
            });
        }
    }

    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar) {
        for (index i = 0; i < R; ++i) {
            const T* u = raw[0] + i * D;
            mixing::through_unit<Team>(
                D, q + i * D, q[R * D + R + i], q_bar + i * D, q_bar[R * D + R + i], [&](auto lane, auto x_bar) {
                    lane.add(raw_bar[0] + i * D, x_bar * chain::silu_function::slope(lane.load(u), {}));
                });
            const T sigma = chain::sigmoid_function::value(raw[1][i]);
            Team::once([&] { raw_bar[1][i] += q_bar[R * D + i] * T(Scale) * sigma * (T(1) - sigma); });
        }
    }
};

}  // namespace fprnn
