#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/row_algebra.hpp>
#include <fprnn/ops/chain.hpp>
#include <fprnn/ops/l2_normalise.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace fprnn {

namespace mixing {
/// argument_error, in the name of a mixer, where D channels do not suffice for R directions.
inline void require_directions(index R, const char* name, const char* of, index D) {
    require(D >= R, name, [&] {
        return "R = " + std::to_string(R) + " " + of + " need d_inner >= " + std::to_string(R) + ", got " +
               std::to_string(D);
    });
    // size, which nothing checks again; what S takes is less than 2 D where that matters.
    (void)checked_product(R + 2, D, std::string(name) + ": R + 2 times d_inner");
}
}  // namespace mixing

/// Mixers I − Q = U S Uᵀ with R directions ū_i = SiLU(u_i) / ‖SiLU(u_i)‖, the columns of U, and α_i = Scale ·
/// σ(a_i) (sec. parametrization-Q-Lambda, app. fixed-point-mamba).
/// Raw: u [R·D] and a [R]; prepared: ū [R·D], then `few`: α [R], 1/‖SiLU(u_i)‖ [R] for the adjoint, and what
/// S takes beside α. Scale 1 is the paper's, 2 the authors' code's. With e = v − w, out = v − U c where c = S
/// Uᵀe, so that a row is read twice, whatever R is. Self has
///
///     S(few, a) → S a,   S_back(few, b) → Sᵀ b,   few_back(few, a, b, few_bar): adds −∂(bᵀ S a)
///     direction_bar(lane, D, q, q_bar, i)   ū_i's cotangent, what S's own numbers send included
template <class Self, int R, int Scale>
struct unit_directions {
    static constexpr int rank = R;
    static constexpr bool holds = true;
    template <class T>
    using numbers = small_array<T, static_cast<std::size_t>(R)>;

    static std::array<index, 2> raw_sizes(index D) { return {R * D, R}; }
    FPRNN_BOTH static constexpr index size(index D) { return R * D + 2 * R + Self::more; }
    FPRNN_BOTH static constexpr index scratch(index) { return 0; }

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
                D, q + i * D, q[R * D + R + i], q_bar[R * D + R + i],
                [&](auto lane) { return Self::direction_bar(lane, D, q, q_bar, i); },
                [&](auto lane, auto x_bar) {
                    lane.add(raw_bar[0] + i * D, x_bar * chain::silu_function::slope(lane.load(u), {}));
                });
            const T sigma = chain::sigmoid_function::value(raw[1][i]);
            Team::once([&] { raw_bar[1][i] += q_bar[R * D + i] * T(Scale) * sigma * (T(1) - sigma); });
        }
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T*) {
        const auto U = mixing::held_rows<Team, R>(D, q);
        const auto from = held<Team>(D, v), rest = held<Team>(D, w);
        const auto apply = [&](auto e, auto origin) {
            const auto c = Self::S(q + R * D, along<Team, T>(D, U, e));
            Team::each(D, [&](auto lane) { lane.store(out, origin(lane) - combined(lane, U, c)); });
        };
        if (v && w)
            apply([&](auto lane) { return lane.load(from) - lane.load(rest); },
                  [&](auto lane) { return lane.load(from); });
        else if (v)
            apply([&](auto lane) { return lane.load(from); }, [&](auto lane) { return lane.load(from); });
        else if (w)
            apply([&](auto lane) { return -lane.load(rest); }, [](auto lane) { return decltype(lane.load(q))(T(0)); });
        else
            Team::each(D, [&](auto lane) { lane.store(out, decltype(lane.load(q))(T(0))); });
    }

    /// With c̄ = Sᵀ Uᵀō: v̄ += ō − U c̄,  w̄ += U c̄.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        const auto U = mixing::held_rows<Team, R>(D, q);
        const auto bar = held<Team>(D, out_bar);
        const auto c = Self::S_back(q + R * D, along<Team, T>(D, U, [&](auto lane) { return lane.load(bar); }));
        Team::each(D, [&](auto lane) {
            const auto rest = combined(lane, U, c);
            if (v_bar) lane.add(v_bar, lane.load(bar) - rest);
            if (w_bar) lane.add(w_bar, rest);
        });
    }

    /// ōᵀ U S Uᵀe is bilinear in U: ū̄_i −= (Sᵀ Uᵀō)_i e + (S Uᵀe)_i ō.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar, T*) {
        const auto bar = held<Team>(D, out_bar), from = held<Team>(D, v), rest = held<Team>(D, w);
        const auto e = [&](auto lane) {
            const decltype(lane.load(q)) zero(T(0));
            return (v ? lane.load(from) : zero) - (w ? lane.load(rest) : zero);
        };
        numbers<T> a, b;
        {
            const auto U = mixing::held_rows<Team, R>(D, q);
            const auto both = Team::template sum<2 * static_cast<std::size_t>(R)>(D, [&](auto lane) {
                const auto x = e(lane), g = lane.load(bar);
                small_array<decltype(lane.load(q)), 2 * static_cast<std::size_t>(R)> s;
                for (std::size_t i = 0; i < R; ++i) {
                    const auto u = lane.load(U[i]);
                    s[i] = u * x;
                    s[R + i] = u * g;
                }
                return s;
            });
            for (std::size_t i = 0; i < R; ++i) a[i] = both[i], b[i] = both[R + i];
        }
        const T* few = q + R * D;
        Team::once([&] { Self::few_back(few, a, b, q_bar + R * D); });
        const auto c = Self::S(few, a), c_bar = Self::S_back(few, b);
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            const V x = e(lane), g = lane.load(bar);
            for (std::size_t i = 0; i < R; ++i)
                lane.add(q_bar + static_cast<index>(i) * D, V(-c_bar[i]) * x - V(c[i]) * g);
        });
    }

    /// Of ū_i where S has no numbers that depend on it.
    template <class Lane, class T>
    FPRNN_BOTH static auto direction_bar(Lane lane, index D, const T*, const T* q_bar, index i) {
        return lane.load(q_bar + i * D);
    }

protected:
    /// argument_error, in the name of a mixer, where D channels do not suffice.
    static void check(const char* name, const char* of, index D) { mixing::require_directions(R, name, of, D); }

private:
    /// Uᵀx, where x(lane) is a row.
    template <class Team, class T, class Rows, class Row>
    FPRNN_BOTH static numbers<T> along(index D, const Rows& U, const Row& x) {
        return Team::template sum<static_cast<std::size_t>(R)>(D, [&](auto lane) {
            const auto value = x(lane);
            numbers<std::remove_const_t<decltype(value)>> s;
            for (std::size_t i = 0; i < R; ++i) s[i] = lane.load(U[i]) * value;
            return s;
        });
    }
    /// U c
    template <class Lane, class Rows, class T>
    FPRNN_BOTH static auto combined(Lane lane, const Rows& U, const numbers<T>& c) {
        using math::multiply_add;
        using V = decltype(lane.load(U[0]));
        V sum = V(c[0]) * lane.load(U[0]);
        for (std::size_t i = 1; i < R; ++i) sum = multiply_add(V(c[i]), lane.load(U[i]), sum);
        return sum;
    }
};

}  // namespace fprnn
