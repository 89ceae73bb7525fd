#pragma once

#include <fprnn/backend/reference.hpp>

#include <algorithm>
#include <type_traits>

/// The recurrence of Mamba with a matrix state H [N,D]:                    (eq. mamba, app. mamba-definition)
///
///     λ_t = exp(−A ⊙ Δ_t),  A = exp(ω) [N,D]
///     H_t = λ_t ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ
///     y_t = c_tᵀ H_t
///
/// Rows of one sequence: Δ, u, y of D channels, `stride` apart; b, c of N states, `state_stride` apart.
namespace fprnn::kernel {

struct selective_scan_shape {
    index tokens, states, channels;
    index stride, state_stride;
};

/// x = e^x of n numbers: A of ω.
template <class Team, class T>
FPRNN_BOTH void exponentials(index n, T* x) {
    using math::exp;
    Team::each(n, [&](auto lane) { lane.store(x, exp(lane.load(x))); });
}

/// −Δ log₂e: λ = 2^(A ⊙ rate).
template <class T, class V>
FPRNN_BOTH inline V decay_rate(V step) {
    return step * V(T(-1.44269504088896340736));
}

/// y_t of one token, from H_{t−1} = from to H_t = to, [N,width], which may be the same memory, of D of the
/// channels.
template <class Team, class T>
FPRNN_BOTH void selective_scan_token(index N, index D, index width, const T* A, const T* delta, const T* b, const T* c,
                                     const T* u, const T* from, T* to, T* y) {
    using math::exp2, math::multiply_add;
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(u));
        const V step = lane.load(delta), rate = decay_rate<T>(step), input = step * lane.load(u);
        V sum(T(0));
        for (index n = 0; n < N; ++n) {
            const index at = n * width;
            const V h = multiply_add(V(b[n]), input, exp2(lane.load(A + at) * rate) * lane.load(from + at));
            lane.store(to + at, h);
            sum = multiply_add(V(c[n]), h, sum);
        }
        lane.store(y, sum);
    });
}
/// exp(−A ⊙ Δ_t) [N,D] of one token.
template <class Team, class T>
FPRNN_BOTH void selective_scan_decay(index N, index D, const T* A, const T* delta, T* decay) {
    using math::exp2;
    Team::each(D, [&](auto lane) {
        const auto rate = decay_rate<T>(lane.load(delta));
        for (index n = 0; n < N; ++n) lane.store(decay + n * D, exp2(lane.load(A + n * D) * rate));
    });
}
/// selective_scan_token where that is at hand, to the bit.
template <class Team, class T>
FPRNN_BOTH void selective_scan_token_of_decay(index N, index D, index width, const T* decay, const T* delta, const T* b,
                                              const T* c, const T* u, const T* from, T* to, T* y) {
    using math::multiply_add;
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(u));
        const V input = lane.load(delta) * lane.load(u);
        V sum(T(0));
        for (index n = 0; n < N; ++n) {
            const index at = n * width;
            const V h = multiply_add(V(b[n]), input, lane.load(decay + at) * lane.load(from + at));
            lane.store(to + at, h);
            sum = multiply_add(V(c[n]), h, sum);
        }
        lane.store(y, sum);
    });
}
/// y_t for all tokens; H [N,D] enters as H_{−1} and leaves as H_{T−1}.
template <class Team, class T>
FPRNN_BOTH void selective_scan(const selective_scan_shape& s, const T* A, const T* delta, const T* b, const T* c,
                               const T* u, T* H, T* y) {
    for (index t = 0; t < s.tokens; ++t) {
        selective_scan_token<Team, T>(s.states, s.channels, s.channels, A, delta, b, c, u, H, H, y);
        delta += s.stride, u += s.stride, y += s.stride, b += s.state_stride, c += s.state_stride;
    }
}

/// The states alone, of one token or more: from H_{−1} to H_{T−1}, [N,width], which may be the same memory,
/// of s.channels channels.
template <class Team, class T>
FPRNN_BOTH void selective_scan_advance(const selective_scan_shape& s, index width, const T* A, const T* delta,
                                       const T* b, const T* u, const T* from, T* to) {
    using math::exp2, math::multiply_add;
    const index D = s.channels, N = s.states;
    for (index t = 0; t < s.tokens; ++t, delta += s.stride, u += s.stride, b += s.state_stride) {
        const T* H = t == 0 ? from : to;
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(u));
            const V step = lane.load(delta), rate = decay_rate<T>(step), input = step * lane.load(u);
            for (index n = 0; n < N; ++n)
                lane.store(
                    to + n * width,
                    multiply_add(V(b[n]), input, exp2(lane.load(A + n * width) * rate) * lane.load(H + n * width)));
        });
    }
}

/// A token whose input b (Δ ⊙ u)ᵀ has not arrived in H: Δ, u [D]; b [N].
template <class T>
struct open_token {
    const T *delta, *b, *u;
};

/// One token with its input left open: H ← λ ⊙ H, and then y = p + g ⊙ u with p = cᵀH and g = (cᵀb) Δ. The
/// input of the token `before`, when there is one, arrives first: H is then read and written once for both.
template <class Team, class T>
FPRNN_BOTH void selective_scan_open(index N, index D, const T* A, const T* delta, const T* b, const T* c, T* H, T* p,
                                    T* g, const open_token<T>* before = nullptr) {
    using math::exp2, math::multiply_add;
    T cb = 0;
    for (index n = 0; n < N; ++n) cb += c[n] * b[n];
    const auto open = [&](auto arrives) {
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(delta));
            const V step = lane.load(delta), rate = decay_rate<T>(step);
            V input(T(0)), sum(T(0));
            if constexpr (decltype(arrives)::value) input = lane.load(before->delta) * lane.load(before->u);
            for (index n = 0; n < N; ++n) {
                V h = lane.load(H + n * D);
                if constexpr (decltype(arrives)::value) h = multiply_add(V(before->b[n]), input, h);
                h *= exp2(lane.load(A + n * D) * rate);
                lane.store(H + n * D, h);
                sum = multiply_add(V(c[n]), h, sum);  // as the compiler likes, the two cases would have other bits
            }
            lane.store(p, sum);
            lane.store(g, V(cb) * step);
        });
    };
    before ? open(std::true_type{}) : open(std::false_type{});
}

/// The adjoint of an open token for its input: ū = g ⊙ ȳ + k with g = (cᵀb) Δ and k = Δ ⊙ Ḣᵀb.
template <class Team, class T>
FPRNN_BOTH void selective_scan_open_back(index N, index D, const T* delta, const T* b, const T* c, const T* H_bar, T* k,
                                         T* g) {
    T cb = 0;
    for (index n = 0; n < N; ++n) cb += c[n] * b[n];
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(delta));
        V sum(T(0));
        for (index n = 0; n < N; ++n) sum += V(b[n]) * lane.load(H_bar + n * D);
        lane.store(k, lane.load(delta) * sum);
        lane.store(g, V(cb) * lane.load(delta));
    });
}

/// The input of an open token arrives: H += b (Δ ⊙ u)ᵀ.
template <class Team, class T>
FPRNN_BOTH void selective_scan_close(index N, index D, const T* delta, const T* b, const T* u, T* H) {
    using math::multiply_add;
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(delta));
        const V input = lane.load(delta) * lane.load(u);
        for (index n = 0; n < N; ++n) lane.store(H + n * D, multiply_add(V(b[n]), input, lane.load(H + n * D)));
    });
}

/// The part of the adjoint that iterations need:
///
///     Ḣ_t += c_t ȳ_tᵀ,   ū_t += Δ_t ⊙ (b_tᵀ Ḣ_t),   Ḣ_{t−1} = λ_t ⊙ Ḣ_t
///
/// H_bar enters as the cotangent of H_{T−1} and leaves as that of H_{−1}.
template <class Team, class T>
FPRNN_BOTH void selective_scan_back_input(const selective_scan_shape& s, const T* A, const T* delta, const T* b,
                                          const T* c, const T* y_bar, T* H_bar, T* u_bar) {
    using math::exp2;
    const index D = s.channels, N = s.states;
    for (index t = s.tokens - 1; t >= 0; --t) {
        const index at = t * s.stride, at_n = t * s.state_stride;
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(delta));
            const V step = lane.load(delta + at), rate = decay_rate<T>(step), y = lane.load(y_bar + at);
            V sum(T(0));
            for (index n = 0; n < N; ++n) {
                const V h = lane.load(H_bar + n * D) + V(c[at_n + n]) * y;
                sum += V(b[at_n + n]) * h;
                lane.store(H_bar + n * D, exp2(lane.load(A + n * D) * rate) * h);
            }
            lane.add(u_bar + at, step * sum);
        });
    }
}

/// The whole adjoint of one token, from H = H_{t−1} and H_bar = Ḣ_t, which becomes Ḣ_{t−1}. With G = Ḣ_t + c
/// ȳᵀ:
///
///     c̄ += H_t ȳ,  b̄ += G (Δ ⊙ u),  ū += Δ ⊙ Gᵀb,  Δ̄ += u ⊙ Gᵀb − Σ_n A ⊙ λ ⊙ H ⊙ G,  Ā −= Δ ⊙ λ ⊙ H ⊙ G
///
/// `scratch` holds 2 D numbers. A cotangent that is null is not wanted.
template <class Team, class T>
FPRNN_BOTH void selective_scan_back_token(index N, index D, const T* A, const T* delta, const T* b, const T* c,
                                          const T* u, const T* H, const T* y_bar, T* H_bar, T* A_bar, T* delta_bar,
                                          T* b_bar, T* c_bar, T* u_bar, T* scratch) {
    using math::exp2;
    T* through_b = scratch;
    T* input = scratch + D;
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(delta));
        lane.store(through_b, V(T(0)));
        lane.store(input, lane.load(delta) * lane.load(u));
    });
    for (index n = 0; n < N; ++n) {
        const T bn = b[n], cn = c[n];
        const auto sums = Team::template sum<2>(D, [&](auto lane) {
            using V = decltype(lane.load(delta));
            const V a = lane.load(A + n * D), step = lane.load(delta), y = lane.load(y_bar), in = lane.load(input);
            const V decay = exp2(a * decay_rate<T>(step));
            const V decayed = decay * lane.load(H + n * D);
            const V G = lane.load(H_bar + n * D) + V(cn) * y;
            const V through_decay = decayed * G;
            lane.store(H_bar + n * D, decay * G);
            lane.add(through_b, V(bn) * G);
            if (delta_bar) lane.add(delta_bar, -a * through_decay);
            if (A_bar) lane.add(A_bar + n * D, -step * through_decay);
            return small_array<V, 2>{y * (decayed + V(bn) * in), G * in};
        });
        Team::once([&] {
            if (c_bar) c_bar[n] += sums[0];
            if (b_bar) b_bar[n] += sums[1];
        });
    }
    Team::each(D, [&](auto lane) {
        const auto g = lane.load(through_b);
        if (u_bar) lane.add(u_bar, lane.load(delta) * g);
        if (delta_bar) lane.add(delta_bar, lane.load(u) * g);
    });
}

/// Tokens between two states that the adjoint keeps while it recomputes the others.
inline constexpr index selective_scan_block = 16;

/// Numbers of scratch that selective_scan_back needs for T tokens.
inline index selective_scan_back_scratch(index tokens, index N, index D) {
    const index blocks = (tokens + selective_scan_block - 1) / selective_scan_block;
    return (blocks + std::clamp<index>(tokens, 1, selective_scan_block) - 1) * N * D + 2 * D;
}

/// The whole adjoint of T tokens from H = H_{−1}: states are recomputed forward once, keeping one in 16, and
/// again block by block on the way back. Everything accumulates, and a cotangent that is null is not wanted;
/// H_bar enters as Ḣ_{T−1} and leaves as Ḣ_{−1}.
template <class Team, class T>
FPRNN_BOTH void selective_scan_back(const selective_scan_shape& s, const T* A, const T* delta, const T* b, const T* c,
                                    const T* u, const T* H, const T* y_bar, T* H_bar, T* A_bar, T* delta_bar, T* b_bar,
                                    T* c_bar, T* u_bar, T* scratch) {
    const index state = s.states * s.channels;
    constexpr index length = selective_scan_block;
    const index blocks = (s.tokens + length - 1) / length;
    T* token_scratch = scratch;
    T* starts = token_scratch + 2 * s.channels;
    T* inside = starts + blocks * state;

    const auto advance = [&](index t, index tokens, const T* from, T* to) {
        const selective_scan_shape part{tokens, s.states, s.channels, s.stride, s.state_stride};
        selective_scan_advance<Team>(part, s.channels, A, delta + t * s.stride, b + t * s.state_stride,
                                     u + t * s.stride, from, to);
    };
    if (s.tokens == 0) return;
    if (s.tokens == 1) {
        selective_scan_back_token<Team>(s.states, s.channels, A, delta, b, c, u, H, y_bar, H_bar, A_bar, delta_bar,
                                        b_bar, c_bar, u_bar, token_scratch);
        return;
    }
    // Channel by channel in all states, as they are advanced.
    Team::each(s.channels, [&](auto lane) {
        for (index n = 0; n < s.states; ++n) lane.store(starts + n * s.channels, lane.load(H + n * s.channels));
    });
    for (index k = 1; k < blocks; ++k) advance((k - 1) * length, length, starts + (k - 1) * state, starts + k * state);
    const auto moved = [](T* p, index by) { return p ? p + by : nullptr; };
    for (index k = blocks - 1; k >= 0; --k) {
        const index first = k * length, last = first + length < s.tokens ? first + length : s.tokens;
        // H_t of the block's tokens but the last; before the first stands the block's start.
        const auto before = [&](index t) { return t == first ? starts + k * state : inside + (t - 1 - first) * state; };
        for (index t = first; t + 1 < last; ++t) advance(t, 1, before(t), inside + (t - first) * state);
        for (index t = last - 1; t >= first; --t) {
            const index at = t * s.stride, at_n = t * s.state_stride;
            selective_scan_back_token<Team>(s.states, s.channels, A, delta + at, b + at_n, c + at_n, u + at, before(t),
                                            y_bar + at, H_bar, A_bar, moved(delta_bar, at), moved(b_bar, at_n),
                                            moved(c_bar, at_n), moved(u_bar, at), token_scratch);
        }
    }
}

}  // namespace fprnn::kernel
