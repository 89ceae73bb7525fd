#pragma once

#include <fprnn/ops/rows.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <algorithm>

/// The selective scan of whole sequences; its bodies, a sequence or a token at a time, are in
/// selective_scan_kernel.hpp.
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

/// Many tokens of a sequence are scanned in blocks of channels whose states and rates, up to N = 128, take
/// half of a first-level cache. Within a block, which begins at channel `first`, a matrix [N,D] lies as [N,
/// channels].
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
    kernel::exponentials<Team>(omega.size(), A.data());
    return A;
}

}  // namespace detail

/// What a selective scan returns: y [B,T,D] and the carry out H_{T−1} [B,N,D].
template <class T>
struct selective_scan_value {
    tensor<T> y, H;
};

/// Scan with a matrix state, from H_{−1} = H (eq. mamba, app. mamba-definition):
///
///     H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ,   y_t = c_tᵀ H_t
///
/// delta, u: [B,T,D]; omega: [N,D]; b, c: [B,T,N]; H: [B,N,D], zero when left out. selective_scan_into uses
/// the memory of `out` when it has the shapes. Errors: shapes that do not match.
template <host_array A, host_memory_backend<element<A>> Backend = reference>
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
template <host_array A, host_memory_backend<element<A>> Backend = reference>
selective_scan_value<element<A>> selective_scan(const A& delta, reads<A> omega, reads<A> b, reads<A> c, reads<A> u,
                                                reads<A> H = {}, Backend backend = {}) {
    selective_scan_value<element<A>> out;
    selective_scan_into(out, delta, omega, b, c, u, H, backend);
    return out;
}

template <host_array A, class... Others>
    requires(detail::with_other_numbers<element<A>, Others...>)
tensor<element<A>> selective_scan(const A&, const Others&...) {
    static_assert(!detail::with_other_numbers<element<A>, Others...>,
                  "selective_scan(delta, omega, b, c, u, H): all arguments must hold numbers of one type");
    return {};
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

/// The adjoint, from Ḣ_{T−1} = H_bar. With λ_t = exp(−A ⊙ Δ_t), A = exp(ω), and G_t = λ_{t+1} ⊙ G_{t+1} + c_t
/// ȳ_tᵀ:
///
///     c̄_t += H_t ȳ_t,  b̄_t += G_t (Δ_t ⊙ u_t),  ū_t += Δ_t ⊙ G_tᵀ b_t,  H̄ += λ_0 ⊙ G_0,
///     Δ̄_t += u_t ⊙ G_tᵀ b_t − Σ_n A ⊙ λ_t ⊙ H_{t−1} ⊙ G_t,  ω̄ −= A ⊙ Σ_t Δ_t ⊙ λ_t ⊙ H_{t−1} ⊙ G_t
///
/// Arguments as selective_scan's; y_bar: [B,T,D]; H_bar: [B,N,D], zero when left out; accumulates into
/// `into`. States are recomputed: besides the results it takes the memory of B + 1 rates [N,D] and, a thread,
/// of about T/16 + 16 states of a block of channels. Errors: shapes that do not match.
template <host_array A, host_memory_backend<element<A>> Backend = reference>
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
