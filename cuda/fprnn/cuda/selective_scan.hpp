#pragma once

#include <fprnn/cuda/row.hpp>
#include <fprnn/cuda/scan.hpp>
#include <fprnn/cuda/selective_scan_back_kernel.hpp>
#include <fprnn/cuda/selective_scan_kernel.hpp>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/ops/elementwise.hpp>

#include <string>

/// The selective scan on tensors of a device. Sources that call it with numbers that no other source does include
/// selective_scan.cuh instead, which has the kernels.
namespace fprnn::cuda {

/// What an expression has around its selective scan, done in the same kernel.
template <class T>
struct selective_scan_around {
    const tensor<T>* skip = nullptr;  ///< D [D]: y_t gains D ⊙ u_t
    const tensor<T>* gate = nullptr;  ///< z [B,T,D]: then y_t is multiplied by SiLU(z_t)
    bool softplus = false;            ///< Δ_t = softplus(delta_t)
};

/// What a selective scan returns: y [B,T,D] and the carry out H_{T−1} [B,N,D].
template <class T>
struct selective_scan_value {
    tensor<T> y, H;
};

namespace detail {

/// Starts selective_scan_tile or selective_scan_back_tile for all tiles: a kernel in selective_scan.cuh, threads of the host in tests.
template <int Threads, int N, int Items, class Sequences>
void selective_scan_start(const device& d, index tiles, const Sequences& s);
template <int Threads, int N, int Items, class T, class S, update Update>
void selective_scan_back_start(const device& d, index tiles, const selective_scan_adjoint<T, S, Update>& s);

/// States of a thread are in its registers; the adjoint has four numbers of each.
template <class S>
constexpr index max_states = 256 / sizeof(S);
template <class S>
constexpr index max_back_states = 128 / sizeof(S);

/// Threads of a block. The adjoint's has all states of its tokens in shared memory, less than 48 KB.
template <class S>
constexpr int selective_scan_threads = 128;
template <class S>
constexpr int selective_scan_back_threads = 64;

/// Tokens that are computed while the next are on their way, and that the adjoint computes between two states that it keeps.
template <class S>
constexpr int selective_scan_items(int states) {
    return static_cast<std::size_t>(states) * sizeof(S) <= 64 ? 8 : 4;
}

template <int N = 4, class Sequences>
void selective_scan_launch(const device& d, const Sequences& s) {
    using S = typename Sequences::state;
    if constexpr (N < max_states<S>)
        if (s.states > N) return selective_scan_launch<2 * N>(d, s);
    constexpr int threads = selective_scan_threads<S>;
    selective_scan_start<threads, N, selective_scan_items<S>(N)>(d, selective_scan_tiles(s, threads), s);
}

/// `s` without what is scratch, of which b_bar and c_bar are added up for the cotangents of b and c, which are not wanted when they are null.
template <int N = 4, class T, class S, update Update>
void selective_scan_back_launch(const device& d, selective_scan_adjoint<T, S, Update> s, T* b_bar, T* c_bar) {
    if constexpr (N < max_back_states<S>)
        if (s.states > N) return selective_scan_back_launch<2 * N>(d, s, b_bar, c_bar);
    constexpr int threads = selective_scan_back_threads<S>, items = selective_scan_items<S>(N);
    const index tiles = selective_scan_tiles(s, threads), bands = s.workers ? tiles / s.workers : 0,
                rows = s.sequences * s.tokens;
    tensor<S> kept(d, {s.workers, selective_scan_rounds(s.tokens, items), s.states, s.channels}),
        b_sums(d, {b_bar ? bands : 0, rows, s.states}), c_sums(d, {c_bar ? bands : 0, rows, s.states});
    s.scratch = kept.data();
    s.b_bar = b_sums.data();
    s.c_bar = c_sums.data();
    if (tiles > 0) selective_scan_back_start<threads, N, items>(d, tiles, s);
    const auto add = [&](const tensor<S>& sums, T* to) {
        constexpr bool overwrites = Update == update::overwrite;
        if (to && rows * s.states > 0)
            start_row<S>(d, add_parts<S, S, T>{rows * s.states, bands, sums.data(), to, overwrites});
    };
    add(b_sums, b_bar), add(c_sums, c_bar);
}

/// ω̄ += A ⊙ Σ Ā of the parts, or overwrites it.
template <class T, class S>
struct selective_scan_rates_back {
    index channels, parts;
    const T* omega;
    const S* A_bar;
    T* omega_bar;
    bool overwrites;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        using math::exp;
        Team::each(channels, [&](auto lane) {
            S sum = S(0);
            for (index i = 0; i < parts; ++i) sum += lane.load(A_bar + i * channels);
            sum *= exp(lane.load(omega));
            lane.store(omega_bar, overwrites ? sum : lane.load(omega_bar) + sum);
        });
    }
};

/// Shapes of a selective scan's arguments, all on one device. Errors: as selective_scan.
template <class T>
void require_selective_scan(const char* operation, index most, const tensor<T>& delta, const tensor<T>& omega,
                            const tensor<T>& b, const tensor<T>& c, const tensor<T>& u, const tensor<T>& H) {
    fprnn::detail::require_rank(operation, "u", u.shape(), 3, "[B,T,D]");
    fprnn::detail::require_rank(operation, "omega", omega.shape(), 2, "[N,D]");
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2], N = omega.shape()[0];
    fprnn::detail::require_same(operation, "delta", delta.shape(), "u", u.shape());
    fprnn::detail::require_shape(operation, "omega", omega.shape(), {N, D});
    fprnn::detail::require_shape(operation, "b", b.shape(), {B, tokens, N});
    fprnn::detail::require_shape(operation, "c", c.shape(), {B, tokens, N});
    require_optional(operation, "H", H, {B, N, D});
    require(N <= most, operation, [&] {
        return "N = " + std::to_string(N) + " states, at most " + std::to_string(most) +
               " fit the registers of a thread";
    });
    require(u.where().has_value(), operation, [] { return "u is on no GPU"; });
    const auto together = [&](const char* name, const tensor<T>& x) { require_together(operation, "u", u, name, x); };
    together("delta", delta), together("omega", omega), together("b", b), together("c", c), together("H", H);
}

}  // namespace detail

/// Scan with a matrix state: H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ,  y_t = c_tᵀ H_t, from H_{−1} = H.
///                                                                                        (eq. mamba, app. mamba-definition)
/// As fprnn::selective_scan, whose numbers it has but for roundings; float, double, and bf16, whose states are float.
/// delta, u: [B,T,D]; omega: [N,D]; b, c: [B,T,N]; H: [B,N,D], zero when left out; N at most 64, for double 32. Errors: shapes that
/// do not match; more states; tensors of several devices; what CUDA says.
template <class T>
selective_scan_value<T> selective_scan(const tensor<T>& delta, const tensor<T>& omega, const tensor<T>& b,
                                       const tensor<T>& c, const tensor<T>& u, const tensor<T>& H = {},
                                       const selective_scan_around<T>& around = {}) {
    using S = typename detail::computed_in<T>::type;
    const char* operation = "selective_scan";
    detail::require_selective_scan(operation, detail::max_states<S>, delta, omega, b, c, u, H);
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2], N = omega.shape()[0];
    const fprnn::shape states{B, N, D};
    const auto together = [&](const char* name, const tensor<T>& x) {
        detail::require_together(operation, "u", u, name, x);
    };
    if (around.skip) {
        fprnn::detail::require_shape(operation, "skip", around.skip->shape(), {D});
        together("skip", *around.skip);
    }
    if (around.gate) {
        fprnn::detail::require_same(operation, "gate", around.gate->shape(), "u", u.shape());
        together("gate", *around.gate);
    }

    const device& d = *u.where();
    selective_scan_value<T> out{tensor<T>(d, u.shape()), tensor<T>(d, states)};
    if (out.y.empty() && out.H.empty()) return out;
    detail::selective_scan_launch(d, selective_scan_sequences<T, S>{.sequences = B,
                                                                    .tokens = tokens,
                                                                    .channels = D,
                                                                    .states = N,
                                                                    .sequence_rows = tokens,
                                                                    .token_rows = 1,
                                                                    .A = nullptr,
                                                                    .delta = delta.data(),
                                                                    .omega = omega.data(),
                                                                    .b = b.data(),
                                                                    .c = c.data(),
                                                                    .u = u.data(),
                                                                    .carry_in = H.data(),
                                                                    .skip = around.skip ? around.skip->data() : nullptr,
                                                                    .gate = around.gate ? around.gate->data() : nullptr,
                                                                    .softplus = around.softplus,
                                                                    .y = out.y.data(),
                                                                    .carry_out = out.H.data()});
    return out;
}

/// Cotangents of a selective scan's arguments.
template <class T>
struct selective_scan_cotangents {
    tensor<T> delta, omega, b, c, u, H;

    selective_scan_cotangents() = default;
    /// Zero, for sequences of [B,T,D] and N states.
    selective_scan_cotangents(const device& d, const fprnn::shape& s, index N)
        : delta(d, s),
          omega(d, {N, s[2]}),
          b(d, {s[0], s[1], N}),
          c(d, {s[0], s[1], N}),
          u(d, s),
          H(d, {s[0], N, s[2]}) {
        delta.clear(), omega.clear(), b.clear(), c.clear(), u.clear(), H.clear();
    }
};

/// The adjoint, as fprnn::selective_scan_back, from ȳ [B,T,D] and Ḣ_{T−1} = H_bar [B,N,D], zero when left out. Accumulates into
/// `into`, or overwrites it on request, which spares reading it; b̄, c̄ and ω̄ are added up in an order that the shapes fix, so that the bits are
/// the same in every run. States are recomputed; scratch is the memory of T/8 states of each sequence (T/4 of more than 16 of float or 8 of double),
/// and of D/64 times b and c. Errors: as selective_scan; N above 32, for double 16.
template <update Update = update::accumulate, class T>
void selective_scan_back(const tensor<T>& delta, const tensor<T>& omega, const tensor<T>& b, const tensor<T>& c,
                         const tensor<T>& u, const tensor<T>& H, const tensor<T>& y_bar, const tensor<T>& H_bar,
                         selective_scan_cotangents<T>& into) {
    using S = typename detail::computed_in<T>::type;
    const char* operation = "selective_scan_back";
    detail::require_selective_scan(operation, detail::max_back_states<S>, delta, omega, b, c, u, H);
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2], N = omega.shape()[0];
    const fprnn::shape states{B, N, D};
    fprnn::detail::require_same(operation, "u", u.shape(), "y_bar", y_bar.shape());
    detail::require_optional(operation, "H_bar", H_bar, states);
    fprnn::detail::require_same(operation, "u", u.shape(), "into.delta", into.delta.shape());
    fprnn::detail::require_shape(operation, "into.omega", into.omega.shape(), omega.shape());
    fprnn::detail::require_shape(operation, "into.b", into.b.shape(), b.shape());
    fprnn::detail::require_shape(operation, "into.c", into.c.shape(), c.shape());
    fprnn::detail::require_same(operation, "u", u.shape(), "into.u", into.u.shape());
    fprnn::detail::require_shape(operation, "into.H", into.H.shape(), states);
    const auto together = [&](const char* name, const tensor<T>& x) {
        detail::require_together(operation, "u", u, name, x);
    };
    together("y_bar", y_bar), together("H_bar", H_bar), together("into.delta", into.delta),
        together("into.omega", into.omega), together("into.b", into.b), together("into.c", into.c),
        together("into.u", into.u), together("into.H", into.H);

    const device& d = *u.where();
    constexpr bool overwrites = Update == update::overwrite;
    tensor<T> running(d, states);
    tensor<S> A_bar(d, states);
    A_bar.clear();
    const auto add = [&](index parts, const T* from, T* to, bool instead) {
        if (states.count() > 0)
            detail::start_row<S>(d, detail::add_parts<S, T, T>{states.count(), parts, from, to, instead});
    };
    add(H_bar.where() ? 1 : 0, H_bar.data(), running.data(), true);
    detail::selective_scan_back_launch(d,
                                       selective_scan_adjoint<T, S, Update>{.sequences = B,
                                                                            .workers = B,
                                                                            .tokens = tokens,
                                                                            .channels = D,
                                                                            .states = N,
                                                                            .sequence_rows = tokens,
                                                                            .token_rows = 1,
                                                                            .A = nullptr,
                                                                            .delta = delta.data(),
                                                                            .omega = omega.data(),
                                                                            .b = b.data(),
                                                                            .c = c.data(),
                                                                            .u = u.data(),
                                                                            .carry_in = H.data(),
                                                                            .y_bar = y_bar.data(),
                                                                            .scratch = nullptr,
                                                                            .H_bar = running.data(),
                                                                            .delta_bar = into.delta.data(),
                                                                            .u_bar = into.u.data(),
                                                                            .A_bar = A_bar.data(),
                                                                            .b_bar = nullptr,
                                                                            .c_bar = nullptr},
                                       into.b.data(), into.c.data());
    add(1, running.data(), into.H.data(), overwrites);
    if (!omega.empty())
        detail::start_row<S>(d, detail::selective_scan_rates_back<T, S>{omega.size(), B, omega.data(), A_bar.data(),
                                                                        into.omega.data(), overwrites});
}

}  // namespace fprnn::cuda
