#pragma once

#include <fprnn/cuda/selective_scan_kernel.hpp>
#include <fprnn/ops/chain.hpp>
#include <fprnn/ops/rows.hpp>

/// The whole adjoint of the selective scan, its states in registers.
///                                                           (docs/decisions/0013-selective-scan-on-a-gpu.md)
namespace fprnn::cuda {

/// The adjoint (see fprnn::selective_scan_back): with y'_t = ȳ_t ⊙ SiLU(z_t) and G_t = λ_{t+1} ⊙ G_{t+1} +
/// c_t y'_tᵀ,
///
///     c̄_t = H_t y'_t,   b̄_t = G_t (Δ_t ⊙ u_t),   ū_t += Δ_t ⊙ G_tᵀ b_t + D ⊙ y'_t,
///     Δ̄_t += u_t ⊙ G_tᵀ b_t − Σ_n A ⊙ λ_t ⊙ H_{t−1} ⊙ G_t,   Ā −= Σ_t Δ_t ⊙ λ_t ⊙ H_{t−1} ⊙ G_t,
///     z̄_t += ȳ_t ⊙ (c_tᵀ H_t + D ⊙ u_t) ⊙ SiLU'(z_t),   D̄ = Σ_t y'_t ⊙ u_t
///
/// H_bar [B,N,D] enters as Ḣ_{T−1} and leaves as Ḣ_{−1}. Cotangents that are null are not wanted. What a team
/// cannot add up alone goes to sums that belong to somebody: b_bar and c_bar [bands, rows, N] to the channels
/// of a team, which overwrites them; A_bar [workers, N, D] and skip_bar [workers, D] to a worker, who takes
/// the sequences worker, worker + workers, … and accumulates the first and overwrites the second. scratch:
/// [workers, rounds, N, D].
template <class T, class S, update Update>
struct selective_scan_adjoint : selective_scan_arguments<T> {
    using number = T;
    using state = S;
    static constexpr update adds = Update;
    static constexpr bool has_chains = false;
    using step_chain = kernel::no_chain<T>;
    using chain_behind = kernel::no_chain<T>;
    index workers = 0;
    const T* y_bar = nullptr;
    S* scratch = nullptr;
    T *H_bar = nullptr, *delta_bar = nullptr, *u_bar = nullptr, *gate_bar = nullptr;
    S *A_bar = nullptr, *b_bar = nullptr, *c_bar = nullptr, *skip_bar = nullptr;
};

/// As an expression has it: ȳ is what the chain behind sends to the scan's value, beside what others do, and
/// what Δ has goes through its own chain (fprnn/cuda/scan_chains.hpp); skip, gate and softplus are left out,
/// and delta_bar where Δ has a chain.
template <class T, class S, class Step, class Behind>
struct selective_scan_adjoint_in_chains : selective_scan_adjoint<T, S, update::accumulate> {
    static constexpr bool has_chains = true;
    using step_chain = Step;
    using chain_behind = Behind;
    Step step;
    Behind behind;
};

/// Rounds of `Items` tokens, before each of which the states are kept.
FPRNN_BOTH inline index selective_scan_rounds(index tokens, int items) {
    return tokens / items + (tokens % items != 0);
}

/// Teams of `threads` take that many neighbouring channels of a worker's sequences each: so many tiles.
template <class Adjoint>
index selective_scan_back_tiles(const Adjoint& s, int threads) {
    return checked_product(s.workers, s.channels / threads + (s.channels % threads != 0), "selective_scan_back");
}

/// Of each channel the states before and after the tokens of a round, and ȳ; b and c of the round. A row of
/// channels takes one number more, so that threads that read neighbouring rows do not wait for each other.
template <class S, int Threads, int N, int Items>
constexpr std::size_t selective_scan_back_shared_bytes = (((Items + 1) * N + Items) * std::size_t(Threads + 1) +
                                                          2 * Items * std::size_t(N)) *
                                                         sizeof(S);

/// The adjoint of one tile. States are recomputed twice: from the first token to the last, to keep those
/// before each round of `Items` tokens, and on the way back round by round.
template <int Threads, int N, int Items, team Team, class Adjoint>
FPRNN_BOTH void selective_scan_back_tile(const Team& team, index tile, const Adjoint& s) {
    using math::exp, math::exp2;
    using T = typename Adjoint::number;
    using S = typename Adjoint::state;
    using step_chain = typename Adjoint::step_chain;
    using chain_behind = typename Adjoint::chain_behind;
    constexpr int row = Threads + 1;
    constexpr S ln_2 = S(0.693147180559945309417);  // rates are those of powers of two
    auto* const before =
        static_cast<S*>(team.shared());                // [Items + 1, N, row], H before each token, and after the last
    S* const y_rows = before + (Items + 1) * N * row;  // [Items, row]
    S* const b_rows = y_rows + Items * row;            // [Items, N]
    S* const c_rows = b_rows + Items * N;

    const index bands = s.channels / Threads + (s.channels % Threads != 0);
    const index worker = tile / bands, band = tile % bands, channel = band * Threads + team.rank();
    const bool mine = channel < s.channels;
    const index rounds = selective_scan_rounds(s.tokens, Items), one = s.states * s.channels;
    const auto is_state = [&](int n) { return mine && n < s.states; };
    const auto in_state = [&](int n) { return n * s.channels + channel; };

    [[maybe_unused]] constexpr bool sends_first_to_input = [] {
        if constexpr (chain_behind::is_chain)
            return chain_behind::template stores_to<kernel::operand::input>;
        else
            return false;
    }();

    const S skip = mine && s.skip ? static_cast<S>(s.skip[channel]) : S(0);
    S rate[N], h[N], G[N], A_sum[N], skip_sum = S(0);
    FPRNN_UNROLL for (int n = 0; n < N; ++n) {
        rate[n] = A_sum[n] = S(0);
        if (!is_state(n)) continue;
        const index at = in_state(n);
        rate[n] = kernel::decay_rate<S>(s.A ? static_cast<S>(s.A[at]) : exp(static_cast<S>(s.omega[at])));
    }
    // Vectors that a chain reads, and what they receive of all tokens.
    [[maybe_unused]] T of_step[step_chain::size], of_behind[chain_behind::size];
    [[maybe_unused]] S to_step[step_chain::size] = {}, to_behind[chain_behind::size] = {};
    if constexpr (Adjoint::has_chains)
        if (mine) s.step.load_vectors(channel, of_step), s.behind.load_vectors(channel, of_behind);

    for (index sequence = worker; sequence < s.sequences; sequence += s.workers) {
        const auto row_of = [&](index t) { return sequence * s.sequence_rows + t * s.token_rows; };
        const auto tokens_from = [&](index first) {
            const index left = s.tokens - first;
            return left < Items ? static_cast<int>(left) : Items;
        };
        // What all channels of a round need; zero where there is nothing.
        const auto stage = [&](index first, const T* from, S* to) {
            const int count = tokens_from(first);
            for (int i = team.rank(); i < Items * N; i += Threads) {
                const int t = i / N, n = i % N;
                const bool there = t < count && n < s.states;
                to[i] = there ? static_cast<S>(from[row_of(first + t) * s.states + n]) : S(0);
            }
        };
        const auto load = [&](const T* from, index first, S(&to)[Items]) {
            detail::each_item<Items>(mine ? tokens_from(first) : 0, [&](int i) {
                to[i] = static_cast<S>(from[row_of(first + i) * s.channels + channel]);
            });
        };
        const auto step_of = [&](S delta) {
            if constexpr (!Adjoint::has_chains)
                if (s.softplus) return chain::softplus_function::value(delta);
            return delta;
        };
        const auto put = [&](T* to, index t, S value) {
            if (!to || !mine) return;
            T& x = to[row_of(t) * s.channels + channel];
            if constexpr (Adjoint::adds == update::accumulate) value += static_cast<S>(x);
            x = static_cast<T>(value);
        };
        const auto advance = [&](int i, S step, S u) {
            const S input = step * u;
            FPRNN_UNROLL for (int n = 0; n < N; ++n) h[n] =
                math::multiply_add(b_rows[i * N + n], input, exp2(rate[n] * step) * h[n]);
        };
        // Σ over the team's channels, in their order, for all numbers of a round: to[t,n] = Σ_d x(t, n, d).
        const auto sum_channels = [&](index first, S* to, const auto& x) {
            if (!to) return;
            const int count = tokens_from(first);
            for (int i = team.rank(); i < Items * N; i += Threads) {
                const int t = i / N, n = i % N;
                if (t >= count || n >= s.states) continue;
                S sum = S(0);
                for (int d = 0; d < Threads; ++d) sum += x(t, n, d);
                to[(band * s.sequences * s.tokens + row_of(first + t)) * s.states + n] = sum;
            }
        };
        S* const kept = s.scratch + worker * rounds * one;

        FPRNN_UNROLL for (int n = 0; n < N; ++n) {
            const index at = sequence * one + in_state(n);
            h[n] = is_state(n) && s.carry_in ? static_cast<S>(s.carry_in[at]) : S(0);
            G[n] = is_state(n) ? static_cast<S>(s.H_bar[at]) : S(0);
        }
        for (index k = 0; k < rounds; ++k) {
            FPRNN_UNROLL for (int n = 0; n < N; ++n) if (is_state(n)) kept[k * one + in_state(n)] = h[n];
            if (k + 1 == rounds) break;
            S delta[Items], u[Items];
            load(s.delta, k * Items, delta);
            load(s.u, k * Items, u);
            team.barrier();  // of the round before, all has been read
            stage(k * Items, s.b, b_rows);
            team.barrier();
            if (mine) FPRNN_UNROLL for (int i = 0; i < Items; ++i) advance(i, step_of(delta[i]), u[i]);
        }

        for (index k = rounds - 1; k >= 0; --k) {
            const index first = k * Items;
            const int count = tokens_from(first);
            S delta[Items] = {}, step[Items], u[Items] = {}, y[Items] = {};
            load(s.delta, first, delta);
            FPRNN_UNROLL for (int i = 0; i < Items; ++i) step[i] = step_of(delta[i]);
            load(s.u, first, u);
            [[maybe_unused]] S to_input[Items] = {};  // what the chain behind sends to u
            if constexpr (!chain_behind::is_chain)
                load(s.y_bar, first, y);
            else
                detail::each_item<Items>(mine ? count : 0, [&](int i) {
                    const index at = row_of(first + i) * s.channels + channel;
                    const auto received =
                        s.behind.back_at(at, of_behind, u[i], static_cast<S>(s.behind.bar.data[at]), to_behind);
                    y[i] = received.value;
                    if constexpr (!chain_behind::template stores_to<kernel::operand::scan>)
                        y[i] += static_cast<S>(s.y_bar[at]);
                    to_input[i] = received.input;
                });
            [[maybe_unused]] S through_gate[Items];  // ȳ ⊙ SiLU'(z), before y is y'
            if (!Adjoint::has_chains && s.gate) {
                S z[Items] = {};
                load(s.gate, first, z);
                FPRNN_UNROLL for (int i = 0; i < Items; ++i) {
                    const S open = chain::silu_function::value(z[i]);
                    through_gate[i] = y[i] * chain::silu_function::slope(z[i], open);
                    y[i] *= open;
                }
            }
            FPRNN_UNROLL for (int n = 0; n < N; ++n) h[n] = is_state(n) ? kept[k * one + in_state(n)] : S(0);
            team.barrier();
            stage(first, s.b, b_rows);
            stage(first, s.c, c_rows);
            FPRNN_UNROLL for (int i = 0; i < Items; ++i) y_rows[i * row + team.rank()] = y[i];
            team.barrier();
            FPRNN_UNROLL for (int i = 0; i <= Items; ++i) {
                FPRNN_UNROLL for (int n = 0; n < N; ++n) before[(i * N + n) * row + team.rank()] = h[n];
                if (i == Items || i >= count) continue;
                advance(i, step[i], u[i]);
                if (Adjoint::has_chains || !s.gate) continue;
                S before_gate = skip * u[i];
                FPRNN_UNROLL for (int n = 0; n < N; ++n) before_gate += c_rows[i * N + n] * h[n];
                put(s.gate_bar, first + i, through_gate[i] * before_gate);
            }
            team.barrier();
            sum_channels(first, s.c_bar, [&](int t, int n, int d) {
                return before[((t + 1) * N + n) * row + d] * y_rows[t * row + d];
            });
            team.barrier();
            // What b̄ adds up takes the places of the states that it was made of.
            FPRNN_UNROLL for (int i = Items - 1; i >= 0; --i) {
                if (i >= count) continue;
                const S input = step[i] * u[i];
                S through_b = S(0), through_decay = S(0);
                FPRNN_UNROLL for (int n = 0; n < N; ++n) {
                    S& place = before[(i * N + n) * row + team.rank()];
                    const S decay = exp2(rate[n] * step[i]);
                    G[n] += c_rows[i * N + n] * y[i];
                    const S moved = decay * place * G[n];
                    through_b += b_rows[i * N + n] * G[n];
                    through_decay += rate[n] * moved;
                    A_sum[n] -= step[i] * moved;
                    place = G[n] * input;
                    G[n] *= decay;
                }
                S step_bar = u[i] * through_b + ln_2 * through_decay;
                if constexpr (!Adjoint::has_chains) {
                    if (s.softplus) step_bar *= chain::softplus_function::slope(delta[i], step[i]);
                    put(s.delta_bar, first + i, step_bar);
                    put(s.u_bar, first + i, step[i] * through_b + skip * y[i]);
                    skip_sum += y[i] * u[i];
                } else if (mine) {
                    const index at = row_of(first + i) * s.channels + channel;
                    S input_bar = step[i] * through_b + to_input[i];
                    if constexpr (step_chain::is_chain)
                        input_bar += s.step.back_at(at, of_step, u[i], step_bar, to_step).input;
                    if (s.u_bar) {
                        T& to = s.u_bar[at];
                        to = static_cast<T>(sends_first_to_input ? input_bar : static_cast<S>(to) + input_bar);
                    }
                    if constexpr (!step_chain::is_chain) put(s.delta_bar, first + i, step_bar);  // Δ may be u
                }
            }
            team.barrier();
            sum_channels(first, s.b_bar, [&](int t, int n, int d) { return before[(t * N + n) * row + d]; });
        }
        FPRNN_UNROLL for (int n = 0; n < N; ++n) {
            if (!is_state(n)) continue;
            s.H_bar[sequence * one + in_state(n)] = static_cast<T>(G[n]);
        }
    }
    if (s.A_bar)
        FPRNN_UNROLL for (int n = 0; n < N; ++n) if (is_state(n)) s.A_bar[worker * one + in_state(n)] += A_sum[n];
    if constexpr (Adjoint::has_chains)
        if (mine) {
            s.step.send_vectors(worker, channel, to_step);
            s.behind.send_vectors(worker, channel, to_behind);
        }
    if (s.skip_bar && mine) s.skip_bar[worker * s.channels + channel] = skip_sum;
}

}  // namespace fprnn::cuda
