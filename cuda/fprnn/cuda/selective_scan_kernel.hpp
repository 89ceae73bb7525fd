#pragma once

#include <fprnn/cuda/scan_chain.hpp>
#include <fprnn/cuda/team.hpp>
#include <fprnn/ops/chain.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <algorithm>

/// The selective scan over [B,T,D], its states in registers.
///                                                           (docs/decisions/0013-selective-scan-on-a-gpu.md)
namespace fprnn::cuda {

/// Arguments of a selective scan, stored as T: delta, u, and z, `gate`, are [B,T,D], ω is [N,D], b and c are
/// [B,T,N], carry_in is [B,N,D], and D, `skip`, is [D]. Token t of sequence s is row s sequence_rows + t
/// token_rows of all that have tokens. `A` is exp(ω) where that is at hand, and ω then null. What else is
/// null is left out; `softplus` takes Δ_t = softplus(delta_t).
template <class T>
struct selective_scan_arguments {
    index sequences = 0, tokens = 0, channels = 0, states = 0;
    index sequence_rows = 0, token_rows = 0;
    const T *A = nullptr, *delta = nullptr, *omega = nullptr, *b = nullptr, *c = nullptr, *u = nullptr,
            *carry_in = nullptr, *skip = nullptr, *gate = nullptr;
    bool softplus = false;
};

/// H_t = λ_t ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ with λ_t = exp(−exp(ω) ⊙ Δ_t), and y_t = (c_tᵀ H_t + D ⊙ u_t) ⊙
/// SiLU(z_t) (eq. mamba, app. mamba-definition). S is how numbers are computed. y may be delta, u or gate;
/// carry_out [B,N,D] may be null or carry_in.
template <class T, class S>
struct selective_scan_sequences : selective_scan_arguments<T> {
    using number = T;
    using state = S;
    static constexpr bool is_adjoint = false, has_chains = false;
    using step_chain = kernel::no_chain<T>;
    using chain_behind = kernel::no_chain<T>;
    T *y = nullptr, *carry_out = nullptr;
};

/// As an expression has it: Δ_t is a chain of rows, and another, of y_t = c_tᵀ H_t and what lies in rows, is
/// stored beside it (fprnn/cuda/scan_chains.hpp); skip, gate and softplus are left out.
template <class T, class S, class Step, class Behind>
struct selective_scan_in_chains : selective_scan_sequences<T, S> {
    static constexpr bool has_chains = true;
    using step_chain = Step;
    using chain_behind = Behind;
    Step step;
    Behind behind;
};

/// What the adjoint's iterations need:
///
///     Ḣ_t += c_t ȳ_tᵀ,   ū_t += Δ_t ⊙ Ḣ_tᵀ b_t,   Ḣ_{t−1} = λ_t ⊙ Ḣ_t
///
/// Read from the last token to the first it is a scan like the other, with c in the place of b, ȳ of u, ū of
/// y, Ḣ of the carries. ȳ has what the chain behind sends to the scan's value beside what others do; nothing
/// else is around it.
template <class T, class S, class Behind = kernel::no_chain<T>>
struct selective_scan_input_adjoint : selective_scan_sequences<T, S> {
    static constexpr bool is_adjoint = true, has_chains = Behind::is_chain;
    using chain_behind = Behind;
    Behind behind;
};

/// Teams of `threads` take that many neighbouring channels of a sequence each: so many tiles.
template <class Sequences>
index selective_scan_tiles(const Sequences& s, int threads) {
    return checked_product(s.sequences, s.channels / threads + (s.channels % threads != 0), "selective_scan");
}

/// b and c of `Items` tokens, twice: of those that are computed, and of the next.
template <class S, int N, int Items>
constexpr std::size_t selective_scan_shared_bytes = 4 * std::size_t(N) * Items * sizeof(S);

namespace detail {

/// What a thread loads of `Items` tokens long before it computes them: its channel, and its share of what all
/// channels need.
template <class Sequences, int Threads, int N, int Items>
struct selective_scan_rows {
    using T = typename Sequences::number;
    static constexpr int shares = (Items * N + Threads - 1) / Threads;
    T delta[Items], u[Items], gate[Items], b[shares], c[shares];  // the adjoint has ȳ as u
    T step[Items][Sequences::step_chain::size], behind[Items][Sequences::chain_behind::size];  // where there are chains
    T behind_bar[Items];  // what the adjoint's chain sends back
};

}  // namespace detail

/// Scans one tile from its first token to its last. A thread owns a channel and its states, at most N; b and
/// c come from memory once for all channels of the team.
template <int Threads, int N, int Items, team Team, class Sequences>
FPRNN_BOTH void selective_scan_tile(const Team& team, index tile, const Sequences& s) {
    using math::exp, math::exp2;
    using T = typename Sequences::number;
    using S = typename Sequences::state;
    using rows = detail::selective_scan_rows<Sequences, Threads, N, Items>;
    using step_chain = typename Sequences::step_chain;
    using chain_behind = typename Sequences::chain_behind;
    const index bands = s.channels / Threads + (s.channels % Threads != 0);
    const index sequence = tile / bands, channel = tile % bands * Threads + team.rank();
    const bool mine = channel < s.channels;
    const index start = sequence * s.sequence_rows * s.channels + channel;
    const index start_n = sequence * s.sequence_rows * s.states;
    const index stride = s.token_rows * s.channels, stride_n = s.token_rows * s.states;

    S rate[N], h[N];
    const auto state = [&](int n) { return (sequence * s.states + n) * s.channels + channel; };
    FPRNN_UNROLL for (int n = 0; n < N; ++n) {
        const bool there = mine && n < s.states;
        const index at = n * s.channels + channel;
        rate[n] = S(0);
        if (there) rate[n] = kernel::decay_rate<S>(s.A ? static_cast<S>(s.A[at]) : exp(static_cast<S>(s.omega[at])));
        h[n] = there && s.carry_in ? static_cast<S>(s.carry_in[state(n)]) : S(0);
    }
    const S skip = mine && s.skip ? static_cast<S>(s.skip[channel]) : S(0);
    [[maybe_unused]] T of_step[step_chain::size], of_behind[chain_behind::size];
    if constexpr (Sequences::has_chains)
        if (mine) {
            if constexpr (step_chain::is_chain) s.step.load_vectors(channel, of_step);
            if constexpr (chain_behind::is_chain) s.behind.load_vectors(channel, of_behind);
        }

    const auto token = [&](index i) { return Sequences::is_adjoint ? s.tokens - 1 - i : i; };
    const auto tokens_from = [&](index first) {
        const index left = s.tokens - first;
        return left < Items ? static_cast<int>(left) : Items;
    };
    const auto load = [&](index first, rows& to) {
        const int count = tokens_from(first);
        if (mine)
            detail::each_item<Items>(count, [&](int i) {
                const index at = start + token(first + i) * stride;
                to.u[i] = s.u[at];
                if constexpr (!step_chain::is_chain) to.delta[i] = s.delta[at];
                if constexpr (Sequences::is_adjoint) {
                    if constexpr (chain_behind::is_chain) to.behind_bar[i] = s.behind.bar.data[at];
                } else if constexpr (Sequences::has_chains) {
                    s.step.load_rows(at, to.step[i]), s.behind.load_rows(at, to.behind[i]);
                } else if (s.gate) {
                    to.gate[i] = s.gate[at];
                }
            });
        FPRNN_UNROLL for (int k = 0; k < rows::shares; ++k) {
            const int i = k * Threads + team.rank(), t = i / N, n = i % N;
            const bool there = t < count && n < s.states;
            const index at = start_n + token(first + t) * stride_n + n;
            to.b[k] = there ? s.b[at] : T(0);
            to.c[k] = there ? s.c[at] : T(0);
        }
    };
    auto* const shared = static_cast<S*>(team.shared());  // [2, tokens, b and c, N]
    const auto stage = [&](int side, const rows& from) {
        FPRNN_UNROLL for (int k = 0; k < rows::shares; ++k) {
            const int i = k * Threads + team.rank(), t = i / N, n = i % N;
            if (i >= Items * N) continue;
            S* to = shared + (side * Items + t) * 2 * N + n;
            to[0] = static_cast<S>(from.b[k]);
            to[N] = static_cast<S>(from.c[k]);
        }
    };

    rows now;
    load(0, now);
    team.barrier();  // of the tile before, all has been read
    stage(0, now);
    int side = 0;
    for (index first = 0; first < s.tokens; first += Items, side = 1 - side) {
        team.barrier();
        rows next;
        const bool more = first + Items < s.tokens;
        if (more) load(first + Items, next);
        if (mine)
            detail::each_item<Items>(tokens_from(first), [&](int i) {
                const S *b = shared + (side * Items + i) * 2 * N, *c = b + N;
                const index at = start + token(first + i) * stride;
                T& to = s.y[at];
                const S u = static_cast<S>(now.u[i]);
                S step;
                if constexpr (step_chain::is_chain) {
                    step = step_chain::value(of_step, now.step[i], S(0), u);
                    if (s.step.is_read) s.step.to.data[at] = static_cast<T>(step);
                } else {
                    step = static_cast<S>(now.delta[i]);
                }
                if constexpr (Sequences::is_adjoint) {
                    S y = S(0), y_bar = u, to_input = S(0);
                    if constexpr (chain_behind::is_chain) {
                        S input = S(0), to_vectors[chain_behind::size] = {};  // an iteration asks for none of vectors
                        chain_behind::template each<kernel::operand::input>(
                            [&](std::size_t k) { input = static_cast<S>(s.behind.a[k].data[at]); });
                        const auto received =
                            s.behind.back_at(at, of_behind, input, static_cast<S>(now.behind_bar[i]), to_vectors);
                        y_bar += received.value;
                        to_input = received.input;
                    }
                    FPRNN_UNROLL for (int n = 0; n < N; ++n) {
                        h[n] += b[n] * y_bar;
                        y += c[n] * h[n];
                        h[n] *= exp2(rate[n] * step);
                    }
                    to = static_cast<T>(static_cast<S>(to) + step * y + to_input);
                } else {
                    if constexpr (!Sequences::has_chains)
                        if (s.softplus) step = chain::softplus_function::value(step);
                    const S input = step * u;
                    S y = Sequences::has_chains ? S(0) : skip * u;
                    FPRNN_UNROLL for (int n = 0; n < N; ++n) {
                        h[n] = math::multiply_add(b[n], input, exp2(rate[n] * step) * h[n]);
                        y = math::multiply_add(c[n], h[n], y);
                    }
                    if constexpr (chain_behind::is_chain)
                        s.behind.to.data[at] = static_cast<T>(chain_behind::value(of_behind, now.behind[i], y, u));
                    if constexpr (!Sequences::has_chains)
                        if (s.gate) y *= chain::silu_function::value(static_cast<S>(now.gate[i]));
                    to = static_cast<T>(y);
                }
            });
        if (more) {
            stage(1 - side, next);
            now = next;
        }
    }
    if (mine && s.carry_out)
        FPRNN_UNROLL for (int n = 0; n < N; ++n) if (n < s.states) s.carry_out[state(n)] = static_cast<T>(h[n]);
}

}  // namespace fprnn::cuda
