#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

/// The recurrence of Mamba with a matrix state H [N,D]:                              (eq. mamba, app. mamba-definition)
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

/// y_t for all tokens; H [N,D] enters as H_{−1} and leaves as H_{T−1}.
template <class Team, class T>
FPRNN_BOTH void selective_scan(const selective_scan_shape& s, const T* A, const T* delta, const T* b, const T* c,
                               const T* u, T* H, T* y) {
    using math::exp;
    const index D = s.channels, N = s.states;
    for (index t = 0; t < s.tokens; ++t) {
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(u));
            const V step = lane.load(delta), input = step * lane.load(u);
            V sum(T(0));
            for (index n = 0; n < N; ++n) {
                const V h = exp(-lane.load(A + n * D) * step) * lane.load(H + n * D) + V(b[n]) * input;
                lane.store(H + n * D, h);
                sum += V(c[n]) * h;
            }
            lane.store(y, sum);
        });
        delta += s.stride, u += s.stride, y += s.stride, b += s.state_stride, c += s.state_stride;
    }
}

/// The states alone, of one token or more: from H_{−1} to H_{T−1}, which may be the same memory.
template <class Team, class T>
FPRNN_BOTH void selective_scan_advance(const selective_scan_shape& s, const T* A, const T* delta, const T* b,
                                       const T* u, const T* from, T* to) {
    using math::exp;
    const index D = s.channels, N = s.states;
    for (index t = 0; t < s.tokens; ++t, delta += s.stride, u += s.stride, b += s.state_stride) {
        const T* H = t == 0 ? from : to;
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(u));
            const V step = lane.load(delta), input = step * lane.load(u);
            for (index n = 0; n < N; ++n)
                lane.store(to + n * D, exp(-lane.load(A + n * D) * step) * lane.load(H + n * D) + V(b[n]) * input);
        });
    }
}

/// One token with its input left open: H ← λ ⊙ H, and then y = p + g ⊙ u with p = cᵀH and g = (cᵀb) Δ.
template <class Team, class T>
FPRNN_BOTH void selective_scan_open(index N, index D, const T* A, const T* delta, const T* b, const T* c, T* H, T* p,
                                    T* g) {
    using math::exp;
    T cb = 0;
    for (index n = 0; n < N; ++n) cb += c[n] * b[n];
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(delta));
        const V step = lane.load(delta);
        V sum(T(0));
        for (index n = 0; n < N; ++n) {
            const V h = exp(-lane.load(A + n * D) * step) * lane.load(H + n * D);
            lane.store(H + n * D, h);
            sum += V(c[n]) * h;
        }
        lane.store(p, sum);
        lane.store(g, V(cb) * step);
    });
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
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(delta));
        const V input = lane.load(delta) * lane.load(u);
        for (index n = 0; n < N; ++n) lane.add(H + n * D, V(b[n]) * input);
    });
}

/// The part of the adjoint that iterations need: with Ḣ_t += c_t ȳ_tᵀ,  ū_t += Δ_t ⊙ (b_tᵀ Ḣ_t),  Ḣ_{t−1} = λ_t ⊙ Ḣ_t.
/// H_bar enters as the cotangent of H_{T−1} and leaves as that of H_{−1}.
template <class Team, class T>
FPRNN_BOTH void selective_scan_back_input(const selective_scan_shape& s, const T* A, const T* delta, const T* b,
                                          const T* c, const T* y_bar, T* H_bar, T* u_bar) {
    using math::exp;
    const index D = s.channels, N = s.states;
    for (index t = s.tokens - 1; t >= 0; --t) {
        const index at = t * s.stride, at_n = t * s.state_stride;
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(delta));
            const V step = lane.load(delta + at), y = lane.load(y_bar + at);
            V sum(T(0));
            for (index n = 0; n < N; ++n) {
                const V h = lane.load(H_bar + n * D) + V(c[at_n + n]) * y;
                sum += V(b[at_n + n]) * h;
                lane.store(H_bar + n * D, exp(-lane.load(A + n * D) * step) * h);
            }
            lane.add(u_bar + at, step * sum);
        });
    }
}

/// The whole adjoint of one token, from H = H_{t−1} and H_bar = Ḣ_t, which becomes Ḣ_{t−1}. With G = Ḣ_t + c ȳᵀ:
///
///     c̄ += H_t ȳ,  b̄ += G (Δ ⊙ u),  ū += Δ ⊙ Gᵀb,  Δ̄ += u ⊙ Gᵀb − Σ_n A ⊙ λ ⊙ H ⊙ G,  Ā −= Δ ⊙ λ ⊙ H ⊙ G
///
/// `scratch` holds 2 D numbers.
template <class Team, class T>
FPRNN_BOTH void selective_scan_back_token(index N, index D, const T* A, const T* delta, const T* b, const T* c,
                                          const T* u, const T* H, const T* y_bar, T* H_bar, T* A_bar, T* delta_bar,
                                          T* b_bar, T* c_bar, T* u_bar, T* scratch) {
    using math::exp;
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
            const V decay = exp(-a * step);
            const V decayed = decay * lane.load(H + n * D);
            const V G = lane.load(H_bar + n * D) + V(cn) * y;
            const V through_decay = decayed * G;
            lane.store(H_bar + n * D, decay * G);
            lane.add(through_b, V(bn) * G);
            lane.add(delta_bar, -a * through_decay);
            lane.add(A_bar + n * D, -step * through_decay);
            return small_array<V, 2>{y * (decayed + V(bn) * in), G * in};
        });
        c_bar[n] += sums[0];
        b_bar[n] += sums[1];
    }
    Team::each(D, [&](auto lane) {
        const auto g = lane.load(through_b);
        lane.add(u_bar, lane.load(delta) * g);
        lane.add(delta_bar, lane.load(u) * g);
    });
}

/// Tokens between two states that the adjoint keeps while it recomputes the others.
inline constexpr index selective_scan_block = 16;

/// Numbers of scratch that selective_scan_back needs for T tokens.
inline index selective_scan_back_scratch(index tokens, index N, index D) {
    const index blocks = (tokens + selective_scan_block - 1) / selective_scan_block;
    return (blocks + std::clamp<index>(tokens, 1, selective_scan_block) - 1) * N * D + 2 * D;
}

/// The whole adjoint of T tokens from H = H_{−1}: states are recomputed forward once, keeping one in 16, and again block
/// by block on the way back. Everything accumulates; H_bar enters as Ḣ_{T−1} and leaves as Ḣ_{−1}.
template <class Team, class T>
void selective_scan_back(const selective_scan_shape& s, const T* A, const T* delta, const T* b, const T* c, const T* u,
                         const T* H, const T* y_bar, T* H_bar, T* A_bar, T* delta_bar, T* b_bar, T* c_bar, T* u_bar,
                         T* scratch) {
    const index state = s.states * s.channels;
    const index blocks = (s.tokens + selective_scan_block - 1) / selective_scan_block;
    T* token_scratch = scratch;
    T* starts = token_scratch + 2 * s.channels;
    T* inside = starts + blocks * state;

    const auto advance = [&](index t, index tokens, const T* from, T* to) {
        const selective_scan_shape part{tokens, s.states, s.channels, s.stride, s.state_stride};
        selective_scan_advance<Team>(part, A, delta + t * s.stride, b + t * s.state_stride, u + t * s.stride, from, to);
    };
    if (s.tokens == 0) return;
    if (s.tokens == 1) {
        selective_scan_back_token<Team>(s.states, s.channels, A, delta, b, c, u, H, y_bar, H_bar, A_bar, delta_bar,
                                        b_bar, c_bar, u_bar, token_scratch);
        return;
    }
    std::copy_n(H, state, starts);
    for (index k = 1; k < blocks; ++k)
        advance((k - 1) * selective_scan_block, selective_scan_block, starts + (k - 1) * state, starts + k * state);
    for (index k = blocks - 1; k >= 0; --k) {
        const index first = k * selective_scan_block, last = std::min(first + selective_scan_block, s.tokens);
        // H_t of the block's tokens but the last; before the first stands the block's start.
        const auto before = [&](index t) { return t == first ? starts + k * state : inside + (t - 1 - first) * state; };
        for (index t = first; t + 1 < last; ++t) advance(t, 1, before(t), inside + (t - first) * state);
        for (index t = last - 1; t >= first; --t) {
            const index at = t * s.stride, at_n = t * s.state_stride;
            selective_scan_back_token<Team>(s.states, s.channels, A, delta + at, b + at_n, c + at_n, u + at, before(t),
                                            y_bar + at, H_bar, A_bar, delta_bar + at, b_bar + at_n, c_bar + at_n,
                                            u_bar + at, token_scratch);
        }
    }
}

}  // namespace fprnn::kernel

namespace fprnn {

namespace detail {

template <class T>
kernel::selective_scan_shape require_selective_scan(const char* operation, const shape& delta, const shape& omega,
                                                    const shape& b, const shape& c, const shape& u, view<const T> H) {
    require_rank(operation, "u", u, 3, "[B,T,D]");
    require_rank(operation, "omega", omega, 2, "[N,D]");
    const index N = omega[0], D = u[2];
    require_same(operation, "delta", delta, "u", u);
    require_shape(operation, "omega", omega, {N, D});
    require_shape(operation, "b", b, {u[0], u[1], N});
    require_shape(operation, "c", c, {u[0], u[1], N});
    require_optional(operation, "H", H, {u[0], N, D});
    return {u[1], N, D, D, N};
}

/// Many tokens of a sequence are scanned in blocks of channels whose states and rates, up to N = 128, take half of a
/// first-level cache. Within a block, which begins at channel `first`, a matrix [N,D] lies as [N, channels].
template <class T>
struct channel_blocks {
    index N, D, tokens;
    index width = tokens < kernel::selective_scan_block
                      ? std::max<index>(D, 1)
                      : std::max<index>(16, (index(1) << 13) / (std::max<index>(N, 1) * index(sizeof(T))) / 16 * 16);
    index count = (D + width - 1) / width;

    struct block {
        index first, channels;
    };
    block operator[](index k) const { return {k * width, std::min(width, D - k * width)}; }

    /// g(number of the [N,D] matrix, number of the block's) for all of the block.
    template <class G>
    void for_each(block k, G&& g) const {
        for (index n = 0; n < N; ++n)
            for (index d = 0; d < k.channels; ++d) g(n * D + k.first + d, n * k.channels + d);
    }
};

/// A = exp(ω), block after block.
template <class Team, class T>
buffer<T> decay_rates(view<const T> omega, const channel_blocks<T>& blocks) {
    buffer<T> A(static_cast<std::size_t>(omega.size()));
    for (index k = 0; k < blocks.count; ++k) {
        T* to = A.data() + blocks.N * blocks[k].first;
        blocks.for_each(blocks[k], [&](index from, index at) { to[at] = omega[from]; });
    }
    Team::each(omega.size(), [&](auto lane) {
        using math::exp;
        lane.store(A.data(), exp(lane.load(A.data())));
    });
    return A;
}

}  // namespace detail

/// What a selective scan returns: y [B,T,D] and the carry out H_{T−1} [B,N,D].
template <class T>
struct selective_scan_value {
    tensor<T> y, H;
};

/// Scan with a matrix state: H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ,  y_t = c_tᵀ H_t, from H_{−1} = H.
///                                                                                        (eq. mamba, app. mamba-definition)
/// delta, u: [B,T,D]; omega: [N,D]; b, c: [B,T,N]; H: [B,N,D], zero when left out. selective_scan_into uses the memory of
/// `out` when it has the shapes. Errors: shapes that do not match.
template <array_like A, class Backend = reference>
void selective_scan_into(selective_scan_value<element<A>>& out, const A& delta, reads<A> omega, reads<A> b, reads<A> c,
                         reads<A> u, reads<A> H = {}, Backend backend = {}) {
    using T = element<A>;
    using team = typename Backend::template team<T>;
    const auto s = detail::require_selective_scan("selective_scan", delta.shape(), omega.shape(), b.shape(), c.shape(),
                                                  u.shape(), H);
    const index B = u.shape()[0], one = s.states * s.channels;
    const shape states{B, s.states, s.channels};
    const detail::channel_blocks<T> blocks{s.states, s.channels, s.tokens};
    const auto rates = detail::decay_rates<team>(omega, blocks);
    if (out.y.shape() != u.shape()) out.y = tensor<T>(u.shape());
    if (out.H.shape() != states) out.H = tensor<T>(states);
    if (H.data())
        std::copy_n(H.data(), B * one, out.H.data());
    else
        out.H.fill(T(0));
    backend.for_each(B * blocks.count, [&](index j) {
        const index i = j / blocks.count, at_n = i * s.tokens * s.states;
        const auto k = blocks[j % blocks.count];
        const index at = i * s.tokens * s.channels + k.first;
        T* all = out.H.data() + i * one;
        const auto scan = [&](T* state) {
            kernel::selective_scan<team, T>({s.tokens, s.states, k.channels, s.stride, s.state_stride},
                                            rates.data() + s.states * k.first, delta.data() + at, b.data() + at_n,
                                            c.data() + at_n, u.data() + at, state, out.y.data() + at);
        };
        if (blocks.count == 1) return scan(all);
        buffer<T> state(static_cast<std::size_t>(s.states * k.channels));
        blocks.for_each(k, [&](index from, index to) { state[static_cast<std::size_t>(to)] = all[from]; });
        scan(state.data());
        blocks.for_each(k, [&](index to, index from) { all[to] = state[static_cast<std::size_t>(from)]; });
    });
}
template <array_like A, class Backend = reference>
selective_scan_value<element<A>> selective_scan(const A& delta, reads<A> omega, reads<A> b, reads<A> c, reads<A> u,
                                                reads<A> H = {}, Backend backend = {}) {
    selective_scan_value<element<A>> out;
    selective_scan_into(out, delta, omega, b, c, u, H, backend);
    return out;
}

/// Cotangents of a selective scan's arguments.
template <class T>
struct selective_scan_cotangents {
    tensor<T> delta, omega, b, c, u, H;

    selective_scan_cotangents() = default;
    /// Zero, for sequences of [B,T,D] and N states.
    selective_scan_cotangents(const shape& s, index N)
        : delta(s), omega({N, s[2]}), b({s[0], s[1], N}), c({s[0], s[1], N}), u(s), H({s[0], N, s[2]}) {}
};

/// The adjoint, from Ḣ_{T−1} = H_bar. With λ_t = exp(−A ⊙ Δ_t), A = exp(ω), and G_t = λ_{t+1} ⊙ G_{t+1} + c_t ȳ_tᵀ:
///
///     c̄_t += H_t ȳ_t,  b̄_t += G_t (Δ_t ⊙ u_t),  ū_t += Δ_t ⊙ G_tᵀ b_t,  H̄ += λ_0 ⊙ G_0,
///     Δ̄_t += u_t ⊙ G_tᵀ b_t − Σ_n A ⊙ λ_t ⊙ H_{t−1} ⊙ G_t,  ω̄ −= A ⊙ Σ_t Δ_t ⊙ λ_t ⊙ H_{t−1} ⊙ G_t
///
/// Arguments as selective_scan's; y_bar: [B,T,D]; H_bar: [B,N,D], zero when left out; accumulates into `into`. States are
/// recomputed: besides the results it takes the memory of B + 1 rates [N,D] and, a thread, of about T/16 + 16 states of a
/// block of channels. Errors: shapes that do not match.
template <array_like A, class Backend = reference>
void selective_scan_back(const A& delta, reads<A> omega, reads<A> b, reads<A> c, reads<A> u, reads<A> H, reads<A> y_bar,
                         reads<A> H_bar, selective_scan_cotangents<element<A>>& into, Backend backend = {}) {
    using T = element<A>;
    using team = typename Backend::template team<T>;
    const char* operation = "selective_scan_back";
    const auto s =
        detail::require_selective_scan(operation, delta.shape(), omega.shape(), b.shape(), c.shape(), u.shape(), H);
    const index B = u.shape()[0], N = s.states, D = s.channels, one = N * D;
    detail::require_same(operation, "u", u.shape(), "y_bar", y_bar.shape());
    detail::require_optional(operation, "H_bar", H_bar, {B, N, D});
    detail::require_same(operation, "u", u.shape(), "into.delta", into.delta.shape());
    detail::require_shape(operation, "into.omega", into.omega.shape(), {N, D});
    detail::require_shape(operation, "into.b", into.b.shape(), b.shape());
    detail::require_shape(operation, "into.c", into.c.shape(), c.shape());
    detail::require_same(operation, "u", u.shape(), "into.u", into.u.shape());
    detail::require_shape(operation, "into.H", into.H.shape(), {B, N, D});
    const detail::channel_blocks<T> blocks{N, D, s.tokens};
    const auto rates = detail::decay_rates<team>(omega, blocks);
    buffer<T> rates_bar(static_cast<std::size_t>(B * one));
    backend.for_each(B, [&](index i) {
        const index at_n = i * s.tokens * N, most = N * std::min(blocks.width, D);
        buffer<T> start(static_cast<std::size_t>(most)), running(static_cast<std::size_t>(most)),
            scratch(
                static_cast<std::size_t>(kernel::selective_scan_back_scratch(s.tokens, N, std::min(blocks.width, D))));
        for (index j = 0; j < blocks.count; ++j) {
            const auto k = blocks[j];
            const index at = i * s.tokens * D + k.first, at_rates = N * k.first;
            blocks.for_each(k, [&](index from, index to) {
                start.data()[to] = H.data() ? H.data()[i * one + from] : T(0);
                running.data()[to] = H_bar.data() ? H_bar.data()[i * one + from] : T(0);
            });
            kernel::selective_scan_back<team, T>(
                {s.tokens, N, k.channels, s.stride, s.state_stride}, rates.data() + at_rates, delta.data() + at,
                b.data() + at_n, c.data() + at_n, u.data() + at, start.data(), y_bar.data() + at, running.data(),
                rates_bar.data() + i * one + at_rates, into.delta.data() + at, into.b.data() + at_n,
                into.c.data() + at_n, into.u.data() + at, scratch.data());
            blocks.for_each(k, [&](index to, index from) { into.H[i * one + to] += running.data()[from]; });
        }
    });
    for (index j = 0; j < blocks.count; ++j) {
        const auto k = blocks[j];
        const T* a = rates.data() + N * k.first;
        for (index i = 0; i < B; ++i) {
            const T* a_bar = rates_bar.data() + i * one + N * k.first;
            blocks.for_each(k, [&](index to, index from) { into.omega[to] += a[from] * a_bar[from]; });
        }
    }
}

}  // namespace fprnn
