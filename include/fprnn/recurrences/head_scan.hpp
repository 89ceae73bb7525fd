#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace fprnn {

/// The scan of Mamba-2, one decay for a head, of a, b, u and c: a state S [N,P] for each of H heads, which
/// share the b and c of G groups.
///
///     S_t = a_t S_{t−1} + b_t u_tᵀ,   y_t = S_tᵀ c_t
///
/// A token has a [H], b and c [G,N], u and y [H,P]; head h is of group ⌊hG/H⌋. Mamba-2 has a = exp(−exp(A) Δ)
/// and u = Δ x.
template <int G = 1>
struct head_scan_recurrence {
    static_assert(G >= 1, "head_scan<groups>: there must be at least 1 group");
    static constexpr const char* name = "head_scan";
    static constexpr std::size_t inputs = 4, open_input = 2;
    static constexpr bool scales_state = true;

    struct sizes {
        index heads, states, channels;  ///< H, N, P
    };
    static sizes of(const std::array<index, inputs>& widths) {
        const index H = widths[0], b = widths[1], u = widths[2], c = widths[3];
        const auto divide = [](const char* what, index width, index parts, const char* each) {
            require(parts > 0 && width > 0 && width % parts == 0, "head_scan", [&] {
                return std::string(what) + " must have a multiple of " + std::to_string(parts) +
                       " channels, as many for each " + each + ", got " + std::to_string(width);
            });
            return width / parts;
        };
        divide("a", H, G, "group");
        const sizes s{H, divide("b", b, G, "group"), divide("u", u, H, "of a's heads")};
        require(c == b, "head_scan",
                [&] { return "c must have " + std::to_string(b) + " channels, as b, got " + std::to_string(c); });
        return s;
    }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return s.heads * s.states * s.channels; }
    static constexpr index value(const sizes& s) { return s.heads * s.channels; }
    FPRNN_BOTH static constexpr index scratch(const sizes&) { return 0; }

    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T* p, const small_array<const T*, inputs>& x, const T* from,
                                T* to, T* y) {
        step_of<Team, T>(s, 0, s.heads * s.channels, p, x, from, to, y);
    }
    template <class Team, class T>
    FPRNN_BOTH static void step_of(const sizes& s, index first, index count, const T*,
                                   const small_array<const T*, inputs>& x, const T* from, T* to, T* y) {
        using math::multiply_add;
        each_head(s, first, count, [&](index h, index i, index n_channels) {
            const T *b = of_group(s, x[1], h), *c = of_group(s, x[3], h), *u = x[2] + h * s.channels + i;
            const index at = h * s.states * s.channels + i;
            Team::each(n_channels, [&](auto lane) {
                using V = decltype(lane.load(u));
                const V a(x[0][h]), now = lane.load(u);
                V sum(T(0));
                for (index n = 0; n < s.states; ++n) {
                    const V S = multiply_add(V(b[n]), now, a * lane.load(from + at + n * s.channels));
                    lane.store(to + at + n * s.channels, S);
                    if (y) sum = multiply_add(V(c[n]), S, sum);
                }
                if (y) lane.store(y + h * s.channels + i, sum);
            });
        });
    }

    /// With Ḡ = S̄_t + c ȳᵀ:  c̄ += S_t ȳ,  b̄ += Ḡ u,  ū += Ḡᵀb,  ā += ⟨Ḡ, S_{t−1}⟩,  S̄_{t−1} = a Ḡ.
    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* S,
                                const T* y_bar, T* S_bar, const small_array<T*, inputs>& x_bar, T*, T*) {
        const index P = s.channels;
        for (index h = 0; h < s.heads; ++h, S += s.states * P, S_bar += s.states * P) {
            const T *b = of_group(s, x[1], h), *c = of_group(s, x[3], h), *u = x[2] + h * P, *ybar = y_bar + h * P;
            const T a = x[0][h];
            T a_bar = 0;
            for (index n = 0; n < s.states; ++n) {
                const auto sums = Team::template sum<3>(P, [&](auto lane) {
                    using V = decltype(lane.load(u));
                    const V before = lane.load(S + n * P), now = lane.load(u), y = lane.load(ybar);
                    const V g = lane.load(S_bar + n * P) + V(c[n]) * y;
                    if (x_bar[2]) lane.add(x_bar[2] + h * P, V(b[n]) * g);
                    lane.store(S_bar + n * P, V(a) * g);
                    return small_array{(V(a) * before + V(b[n]) * now) * y, g * now, g * before};
                });
                a_bar += sums[2];
                Team::once([&] {
                    const index at = group(s, h) * s.states + n;
                    if (x_bar[3]) x_bar[3][at] += sums[0];
                    if (x_bar[1]) x_bar[1][at] += sums[1];
                });
            }
            Team::once([&] {
                if (x_bar[0]) x_bar[0][h] += a_bar;
            });
        }
    }

    /// p = a S_{t−1}ᵀ c,  g = bᵀc
    template <class Team, class T>
    FPRNN_BOTH static void open(const sizes& s, const T*, const small_array<const T*, inputs>& x, T* S, T* p, T* g,
                                const small_array<const T*, inputs>* before) {
        using math::multiply_add;
        const index P = s.channels;
        for (index h = 0; h < s.heads; ++h, S += s.states * P) {
            const T *b = of_group(s, x[1], h), *c = of_group(s, x[3], h), a = x[0][h], cb = product(s, b, c);
            const T *b_before = before ? of_group(s, (*before)[1], h) : nullptr,
                    *u_before = before ? (*before)[2] + h * P : nullptr;
            Team::each(P, [&](auto lane) {
                using V = decltype(lane.load(S));
                V sum(T(0)), input(T(0));
                if (before) input = lane.load(u_before);
                for (index n = 0; n < s.states; ++n) {
                    V now = lane.load(S + n * P);
                    if (before) now = multiply_add(V(b_before[n]), input, now);
                    now = V(a) * now;
                    lane.store(S + n * P, now);
                    sum = multiply_add(V(c[n]), now, sum);
                }
                lane.store(p + h * P, sum);
                lane.store(g + h * P, V(cb));
            });
        }
    }
    template <class Team, class T>
    FPRNN_BOTH static void close(const sizes& s, const small_array<const T*, inputs>& x, T* S) {
        using math::multiply_add;
        const index P = s.channels;
        for (index h = 0; h < s.heads; ++h, S += s.states * P) {
            const T *b = of_group(s, x[1], h), *u = x[2] + h * P;
            Team::each(P, [&](auto lane) {
                using V = decltype(lane.load(u));
                const V input = lane.load(u);
                for (index n = 0; n < s.states; ++n)
                    lane.store(S + n * P, multiply_add(V(b[n]), input, lane.load(S + n * P)));
            });
        }
    }
    /// ū = g ⊙ ȳ + k,  k = S̄ᵀb
    template <class Team, class T>
    FPRNN_BOTH static void open_back(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* S_bar,
                                     T* k, T* g) {
        const index P = s.channels;
        for (index h = 0; h < s.heads; ++h, S_bar += s.states * P) {
            const T *b = of_group(s, x[1], h), *c = of_group(s, x[3], h), cb = product(s, b, c);
            Team::each(P, [&](auto lane) {
                using V = decltype(lane.load(S_bar));
                V sum(T(0));
                for (index n = 0; n < s.states; ++n) sum += V(b[n]) * lane.load(S_bar + n * P);
                lane.store(k + h * P, sum);
                lane.store(g + h * P, V(cb));
            });
        }
    }
    template <class Team, class T>
    FPRNN_BOTH static void back_input(const sizes& s, const T*, const small_array<const T*, inputs>& x, const T* y_bar,
                                      T* S_bar, T* u_bar) {
        const index P = s.channels;
        for (index h = 0; h < s.heads; ++h, S_bar += s.states * P) {
            const T *b = of_group(s, x[1], h), *c = of_group(s, x[3], h), a = x[0][h];
            Team::each(P, [&](auto lane) {
                using V = decltype(lane.load(S_bar));
                const V y = lane.load(y_bar + h * P);
                V sum(T(0));
                for (index n = 0; n < s.states; ++n) {
                    const V g = lane.load(S_bar + n * P) + V(c[n]) * y;
                    sum += V(b[n]) * g;
                    lane.store(S_bar + n * P, V(a) * g);
                }
                lane.add(u_bar + h * P, sum);
            });
        }
    }

private:
    FPRNN_BOTH static index group(const sizes& s, index h) { return h * G / s.heads; }
    template <class T>
    FPRNN_BOTH static const T* of_group(const sizes& s, const T* x, index h) {
        return x + group(s, h) * s.states;
    }
    template <class T>
    FPRNN_BOTH static T product(const sizes& s, const T* b, const T* c) {
        T sum = 0;
        for (index n = 0; n < s.states; ++n) sum += b[n] * c[n];
        return sum;
    }
    /// f(h, i, count) of the channels from i on of head h, for all heads that have some of the given
    /// channels.
    template <class F>
    FPRNN_BOTH static void each_head(const sizes& s, index first, index count, const F& f) {
        for (index end = first + count; first < end;) {
            const index h = first / s.channels, i = first - h * s.channels;
            const index n = end - first < s.channels - i ? end - first : s.channels - i;
            f(h, i, n);
            first += n;
        }
    }
};

}  // namespace fprnn
