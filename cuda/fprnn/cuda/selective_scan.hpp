#pragma once

#include <fprnn/cuda/pass.hpp>
#include <fprnn/cuda/row.hpp>
#include <fprnn/cuda/scan.hpp>
#include <fprnn/cuda/selective_scan_back_kernel.hpp>
#include <fprnn/cuda/selective_scan_kernel.hpp>
#include <fprnn/cuda/tensor.hpp>

#include <string>
#include <type_traits>

/// The selective scan on tensors of a device. Sources that call it with numbers that no other source does
/// include selective_scan.cuh instead, which has the kernels.
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

/// Starts selective_scan_tile or selective_scan_back_tile for all tiles: a kernel in selective_scan.cuh,
/// threads of the host in tests.
template <int Threads, int N, int Items, class Sequences>
void selective_scan_start(const device& d, index tiles, const Sequences& s);
template <int Threads, int N, int Items, class Adjoint>
void selective_scan_back_start(const device& d, index tiles, const Adjoint& s);

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

/// Blocks of a multiprocessor that the adjoint's registers shall suffice for: 5 is what shared memory has
/// room for with 16 floats, and 168 registers do for these. With more states, and double, they are all taken.
template <class S>
constexpr int selective_scan_back_blocks(int states) {
    return std::is_same_v<S, float> && states <= 16 ? 5 : 1;
}

/// Tokens that are computed while the next are on their way, and that the adjoint computes between two states
/// that it keeps.
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

inline constexpr auto call_now = [](const auto& calls) { calls(); };

/// `s` without what is scratch, of which b_bar and c_bar are added up for the cotangents of b and c, which
/// are not wanted when they are null. What writes is called by call().
template <int N = 4, class Adjoint, class T = typename Adjoint::number, class Call = decltype(call_now)>
void selective_scan_back_launch(const device& d, Adjoint s, T* b_bar, T* c_bar, const Call& call = call_now) {
    using S = typename Adjoint::state;
    if constexpr (N < max_back_states<S>)
        if (s.states > N) return selective_scan_back_launch<2 * N>(d, s, b_bar, c_bar, call);
    constexpr int threads = selective_scan_back_threads<S>, items = selective_scan_items<S>(N);
    const index tiles = selective_scan_back_tiles(s, threads), bands = s.workers ? tiles / s.workers : 0,
                rows = s.sequences * s.tokens;
    tensor<S> kept(d, {s.workers, selective_scan_rounds(s.tokens, items), s.states, s.channels}),
        b_sums(d, {b_bar ? bands : 0, rows, s.states}), c_sums(d, {c_bar ? bands : 0, rows, s.states});
    s.scratch = kept.data();
    s.b_bar = b_sums.data();
    s.c_bar = c_sums.data();
    const auto add = [&](const tensor<S>& sums, T* to) {
        constexpr bool overwrites = Adjoint::adds == update::overwrite;
        if (to && rows * s.states > 0)
            start_row<S>(d, add_parts<S, S, T>{rows * s.states, bands, sums.data(), to, overwrites});
    };
    call([&] {
        if (tiles > 0) selective_scan_back_start<threads, N, items>(d, tiles, s);
        add(b_sums, b_bar);
        add(c_sums, c_bar);
    });
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

/// What lies where, once shapes fit and all is on one device. Errors: as selective_scan.
template <class T>
selective_scan_arguments<T> require_selective_scan(const char* operation, index most, const tensor<T>& delta,
                                                   const tensor<T>& omega, const tensor<T>& b, const tensor<T>& c,
                                                   const tensor<T>& u, const tensor<T>& H,
                                                   const selective_scan_around<T>& around) {
    fprnn::detail::require_rank(operation, "u", u.shape(), 3, "[B,T,D]");
    fprnn::detail::require_rank(operation, "omega", omega.shape(), 2, "[N,D]");
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2], N = omega.shape()[0];
    fprnn::detail::require_same(operation, "delta", delta.shape(), "u", u.shape());
    fprnn::detail::require_shape(operation, "omega", omega.shape(), {N, D});
    fprnn::detail::require_shape(operation, "b", b.shape(), {B, tokens, N});
    fprnn::detail::require_shape(operation, "c", c.shape(), {B, tokens, N});
    require_optional(operation, "H", H, {B, N, D});
    if (around.skip) fprnn::detail::require_shape(operation, "skip", around.skip->shape(), {D});
    if (around.gate) fprnn::detail::require_same(operation, "gate", around.gate->shape(), "u", u.shape());
    require(N <= most, operation, [&] {
        return "N = " + std::to_string(N) + " states, at most " + std::to_string(most) +
               " fit the registers of a thread";
    });
    require(u.where().has_value(), operation, [] { return "u is on no GPU"; });
    const auto together = [&](const char* name, const tensor<T>& x) { require_together(operation, "u", u, name, x); };
    together("delta", delta), together("omega", omega), together("b", b), together("c", c), together("H", H);
    if (around.skip) together("skip", *around.skip);
    if (around.gate) together("gate", *around.gate);
    return {.sequences = B,
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
            .softplus = around.softplus};
}

}  // namespace detail

/// Scan with a matrix state, from H_{−1} = H (eq. mamba, app. mamba-definition):
///
///     H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ,   y_t = c_tᵀ H_t
///
/// As fprnn::selective_scan, whose numbers it has but for roundings; float, double, and bf16, whose states
/// are float. delta, u: [B,T,D]; omega: [N,D]; b, c: [B,T,N]; H: [B,N,D], zero when left out; N at most 64,
/// for double 32. selective_scan_into uses the memory of `out` when it has the shapes; H may be what it has.
/// Errors: shapes that do not match; more states; tensors of several devices; what CUDA says.
template <class T>
void selective_scan_into(selective_scan_value<T>& out, const tensor<T>& delta, const tensor<T>& omega,
                         const tensor<T>& b, const tensor<T>& c, const tensor<T>& u, const tensor<T>& H = {},
                         const selective_scan_around<T>& around = {}) {
    using S = typename detail::computed_in<T>::type;
    selective_scan_sequences<T, S> s{
        detail::require_selective_scan("selective_scan", detail::max_states<S>, delta, omega, b, c, u, H, around)};
    const device& d = *u.where();
    const auto reuse = [&](tensor<T>& x, const fprnn::shape& extents) {
        if (x.shape() != extents || x.where() != d) x = tensor<T>(d, extents);
    };
    reuse(out.y, u.shape());
    reuse(out.H, {s.sequences, s.states, s.channels});
    s.y = out.y.data(), s.carry_out = out.H.data();
    if (!out.y.empty() || !out.H.empty()) detail::selective_scan_launch(d, s);
}
template <class T>
selective_scan_value<T> selective_scan(const tensor<T>& delta, const tensor<T>& omega, const tensor<T>& b,
                                       const tensor<T>& c, const tensor<T>& u, const tensor<T>& H = {},
                                       const selective_scan_around<T>& around = {}) {
    selective_scan_value<T> out;
    selective_scan_into(out, delta, omega, b, c, u, H, around);
    return out;
}

/// Cotangents of a selective scan's arguments, and of what is around it.
template <class T>
struct selective_scan_cotangents {
    tensor<T> delta, omega, b, c, u, H, skip, gate;

    selective_scan_cotangents() = default;
    /// Zero, for sequences of [B,T,D] and N states; of the skip and the gate where they are around.
    selective_scan_cotangents(const device& d, const fprnn::shape& s, index N,
                              const selective_scan_around<T>& around = {})
        : delta(d, s),
          omega(d, {N, s[2]}),
          b(d, {s[0], s[1], N}),
          c(d, {s[0], s[1], N}),
          u(d, s),
          H(d, {s[0], N, s[2]}) {
        if (around.skip) skip = tensor<T>(d, {s[2]});
        if (around.gate) gate = tensor<T>(d, s);
        for (tensor<T>* x : {&delta, &omega, &b, &c, &u, &H, &skip, &gate}) x->clear();
    }
};

/// The adjoint, as fprnn::selective_scan_back, from ȳ [B,T,D] and Ḣ_{T−1} = H_bar [B,N,D], zero when left
/// out, of y with all that is around it. Accumulates into `into`, or overwrites it on request, which spares
/// reading it; b̄, c̄, ω̄ and D̄ are added up in an order that the shapes fix, so that the bits are the same
/// in every run. States are recomputed; scratch is the memory of T/8 states of each sequence (T/4 of more
/// than 16 of float or 8 of double), and of D/64 times b and c. Errors: as selective_scan; N above 32, for
/// double 16.
template <update Update = update::accumulate, class T>
void selective_scan_back(const tensor<T>& delta, const tensor<T>& omega, const tensor<T>& b, const tensor<T>& c,
                         const tensor<T>& u, const tensor<T>& H, const tensor<T>& y_bar, const tensor<T>& H_bar,
                         selective_scan_cotangents<T>& into, const selective_scan_around<T>& around = {}) {
    using S = typename detail::computed_in<T>::type;
    const char* operation = "selective_scan_back";
    selective_scan_adjoint<T, S, Update> s{
        detail::require_selective_scan(operation, detail::max_back_states<S>, delta, omega, b, c, u, H, around)};
    const fprnn::shape states{s.sequences, s.states, s.channels};
    const auto require_like = [&](const char* name, const tensor<T>& x, const fprnn::shape& expected) {
        fprnn::detail::require_shape(operation, name, x.shape(), expected);
        detail::require_together(operation, "u", u, name, x);
    };
    detail::require_optional(operation, "H_bar", H_bar, states);
    detail::require_together(operation, "u", u, "H_bar", H_bar);
    require_like("y_bar", y_bar, u.shape());
    require_like("into.delta", into.delta, u.shape());
    require_like("into.omega", into.omega, omega.shape());
    require_like("into.b", into.b, b.shape());
    require_like("into.c", into.c, c.shape());
    require_like("into.u", into.u, u.shape());
    require_like("into.H", into.H, states);
    if (around.skip) require_like("into.skip", into.skip, {s.channels});
    if (around.gate) require_like("into.gate", into.gate, u.shape());

    const device& d = *u.where();
    constexpr bool overwrites = Update == update::overwrite;
    tensor<T> running(d, states);
    tensor<S> A_bar(d, states), skip_bar(d, {around.skip ? s.sequences : 0, s.channels});
    A_bar.clear();
    const auto add = [&](index numbers, index parts, const auto* from, T* to, bool instead) {
        using From = std::remove_const_t<std::remove_pointer_t<decltype(from)>>;
        if (numbers > 0) detail::start_row<S>(d, detail::add_parts<S, From, T>{numbers, parts, from, to, instead});
    };
    add(states.count(), H_bar.where() ? 1 : 0, H_bar.data(), running.data(), true);
    s.workers = s.sequences;
    s.y_bar = y_bar.data(), s.H_bar = running.data(), s.A_bar = A_bar.data(), s.skip_bar = skip_bar.data();
    s.delta_bar = into.delta.data(), s.u_bar = into.u.data();
    if (around.gate) s.gate_bar = into.gate.data();
    detail::selective_scan_back_launch(d, s, into.b.data(), into.c.data(), [&](const auto& scan) {
        detail::known_graphs::call_at_once(d, [&] {
            scan();
            add(states.count(), 1, running.data(), into.H.data(), overwrites);
            if (around.skip) add(s.channels, s.sequences, skip_bar.data(), into.skip.data(), overwrites);
            if (!omega.empty())
                detail::start_row<S>(
                    d, detail::selective_scan_rates_back<T, S>{omega.size(), s.sequences, omega.data(), A_bar.data(),
                                                               into.omega.data(), overwrites});
        });
    });
}

}  // namespace fprnn::cuda

/// The same with the device named, as operations name their backend. Errors: also tensors of another device.
namespace fprnn {

template <class T>
void selective_scan_into(cuda::selective_scan_value<T>& out, const cuda::tensor<T>& delta, const cuda::tensor<T>& omega,
                         const cuda::tensor<T>& b, const cuda::tensor<T>& c, const cuda::tensor<T>& u,
                         const cuda::tensor<T>& H, const cuda::device& d) {
    if (!u.empty()) d.require_here("selective_scan", "u", u);
    cuda::selective_scan_into(out, delta, omega, b, c, u, H);
}
template <class T>
cuda::selective_scan_value<T> selective_scan(const cuda::tensor<T>& delta, const cuda::tensor<T>& omega,
                                             const cuda::tensor<T>& b, const cuda::tensor<T>& c,
                                             const cuda::tensor<T>& u, const cuda::tensor<T>& H,
                                             const cuda::device& d) {
    if (!u.empty()) d.require_here("selective_scan", "u", u);
    return cuda::selective_scan(delta, omega, b, c, u, H);
}
template <update Update = update::accumulate, class T>
void selective_scan_back(const cuda::tensor<T>& delta, const cuda::tensor<T>& omega, const cuda::tensor<T>& b,
                         const cuda::tensor<T>& c, const cuda::tensor<T>& u, const cuda::tensor<T>& H,
                         const cuda::tensor<T>& y_bar, const cuda::tensor<T>& H_bar,
                         cuda::selective_scan_cotangents<T>& into, const cuda::device& d) {
    if (!u.empty()) d.require_here("selective_scan_back", "u", u);
    cuda::selective_scan_back<Update>(delta, omega, b, c, u, H, y_bar, H_bar, into);
}

}  // namespace fprnn
