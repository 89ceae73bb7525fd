#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

#include <algorithm>
#include <complex>

namespace fprnn {

namespace kernel {

template <class T>
FPRNN_BOTH T conjugate(T x) {
    return x;
}
template <class T>
std::complex<T> conjugate(std::complex<T> x) {
    return std::conj(x);
}

/// How many tokens ahead the kernels fetch: rows of several arrays are, measured, more than the processor
/// fetches by itself.
inline constexpr index fetched_ahead = 4;

/// h_t = λ_t ⊙ h_{t−1} + u_t for one sequence of T rows that are `stride` apart, from h_{−1} = carry (zero
/// when null).
template <class Team, class T>
FPRNN_BOTH void scan(index tokens, index channels, index stride, const T* lambda, const T* u, const T* carry, T* h) {
    for (index t = 0; t < tokens; ++t) {
        const index at = t * stride;
        const T* before = t > 0 ? h + at - stride : carry;
        const index ahead = t + fetched_ahead < tokens ? at + fetched_ahead * stride : at;
        if (before)
            Team::each(channels, [&](auto lane) {
                for (const T* row : {lambda, u, static_cast<const T*>(h)}) lane.prefetch(row + ahead);
                lane.store(h + at, lane.load(lambda + at) * lane.load(before) + lane.load(u + at));
            });
        else
            Team::each(channels, [&](auto lane) { lane.store(h + at, lane.load(u + at)); });
    }
}

/// The same of one token at least and few channels: their state stays in registers.
template <class Team, class T>
FPRNN_BOTH void scan_few(index tokens, index channels, index stride, const T* lambda, const T* u, const T* carry,
                         T* h) {
    Team::each(channels, [&](auto lane) {
        auto state = lane.load(carry ? carry : u);
        if (!carry) lane.store(h, state);
        for (index t = carry ? 0 : 1; t < tokens; ++t) {
            const index at = t * stride;
            state = lane.load(lambda + at) * state + lane.load(u + at);
            lane.store(h + at, state);
        }
    });
}

/// The adjoint: g_t = ḣ_t + conj(λ_{t+1}) ⊙ g_{t+1};  ū_t += g_t;  λ̄_t += g_t ⊙ conj(h_{t−1}).
/// `running` [D] holds the cotangent of the carry out and ends as that of the carry in. lambda_bar and u_bar
/// may be null.
template <class Team, update Update = update::accumulate, class T>
FPRNN_BOTH void scan_back(index tokens, index channels, index stride, const T* lambda, const T* h, const T* carry,
                          const T* h_bar, T* running, T* lambda_bar, T* u_bar) {
    for (index t = tokens - 1; t >= 0; --t) {
        const index at = t * stride;
        const T* before = t > 0 ? h + at - stride : carry;
        const index ahead = t >= fetched_ahead ? at - fetched_ahead * stride : at;
        Team::each(channels, [&](auto lane) {
            using V = decltype(lane.load(h_bar));
            for (const T* row : {h_bar, lambda, h}) lane.prefetch(row + ahead);
            if (lambda_bar) lane.prefetch(lambda_bar + ahead);
            if (u_bar) lane.prefetch(u_bar + ahead);
            const V g = lane.load(h_bar + at) + lane.load(running);
            const auto put = [&](T* to, V value) {
                if constexpr (Update == update::accumulate)
                    lane.add(to, value);
                else
                    lane.store(to, value);
            };
            if (u_bar) put(u_bar + at, g);
            if (lambda_bar && before)
                put(lambda_bar + at, g * conjugate(lane.load(before)));
            else if (lambda_bar && Update == update::overwrite)
                lane.store(lambda_bar + at, V(T(0)));
            lane.store(running, conjugate(lane.load(lambda + at)) * g);
        });
    }
}

}  // namespace kernel

enum class direction { forward, reversed };

namespace detail {

/// A sequence read backwards is one whose stride is negative.
struct sequence_walk {
    index begin, stride;
    sequence_walk(index b, index tokens, index channels, direction d)
        : begin((d == direction::forward ? b * tokens : (b + 1) * tokens - 1) * channels),
          stride(d == direction::forward ? channels : -channels) {}
};

/// body(sequence, first channel, channels) for blocks of channels, which do not know of each other: few
/// sequences of many channels keep all threads busy, too.
template <class Backend, class Body>
void for_each_scan(Backend& backend, index sequences, index channels, Body&& body) {
    constexpr index block = 512;
    const index blocks = (channels + block - 1) / block;
    backend.for_each(sequences * blocks, [&](index i) {
        const index first = i % blocks * block;
        body(i / blocks, first, std::min(block, channels - first));
    });
}

}  // namespace detail

/// As scan, over the memory of h [B,T,D], which must not overlap lambda; it may be u's.
template <host_array A, host_memory_backend<element<A>> Backend = reference>
void scan_into(A& h, reads<A> lambda, reads<A> u, reads<A> carry = {}, direction d = direction::forward,
               Backend backend = {}) {
    using T = element<A>;
    detail::require_rank("scan", "lambda", lambda.shape(), 3, "[B,T,D]");
    detail::require_same("scan", "lambda", lambda.shape(), "u", u.shape());
    detail::require_same("scan", "lambda", lambda.shape(), "h", h.shape());
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2];
    detail::require_optional("scan", "carry", carry, {B, D});
    if (h.size() == 0) return;
    detail::for_each_scan(backend, B, D, [&](index b, index first, index channels) {
        const detail::sequence_walk s(b, tokens, D, d);
        const index at = s.begin + first;
        const T* before = carry.data() ? carry.data() + b * D + first : nullptr;
        using team = typename Backend::template team<T>;
        const T *l = lambda.data() + at, *x = u.data() + at;
        T* out = h.data() + at;
        if constexpr (requires { team::scan_line(tokens, l, x, T(0), out); })
            if (s.stride == 1) {
                if (before) return team::scan_line(tokens, l, x, *before, out);
                const T of_first = out[0] = x[0];
                return team::scan_line(tokens - 1, l + 1, x + 1, of_first, out + 1);
            }
        constexpr index few = 16;  // a register or two, whose walk alone through the sequence is no loss
        (channels <= few ? kernel::scan_few<team, T> : kernel::scan<team, T>)(tokens, channels, s.stride, l, x, before,
                                                                              out);
    });
}

/// Diagonal scan: h_t = λ_t ⊙ h_{t−1} + u_t, from h_{−1} = carry.                             (eq. intro_rnn)
/// lambda, u: [B,T,D]; carry: [B,D], zero when left out; returns h [B,T,D]. The carry out is h's last token,
/// or the carry itself where T = 0. Reversed: h_t = λ_t ⊙ h_{t+1} + u_t, from h_T = carry, and the carry out
/// is the first token. Real and complex. Two calls with the carry between them give the bits of one, but for
/// a single channel of many tokens: on Eigen's packets it is computed by stretches of time, of which a
/// product of decays λ is formed. Errors: shapes that do not match.
template <host_array A, host_memory_backend<element<A>> Backend = reference>
tensor<element<A>> scan(const A& lambda, reads<A> u, reads<A> carry = {}, direction d = direction::forward,
                        Backend backend = {}) {
    tensor<element<A>> h(u.shape());
    scan_into(h, lambda, u, carry, d, backend);
    return h;
}
template <host_array A, class U, class Carry = A, class Backend = reference>
    requires(detail::array_of_other<U, element<A>> || detail::array_of_other<Carry, element<A>>)
tensor<element<A>> scan(const A&, const U&, const Carry& = {}, direction = direction::forward, const Backend& = {}) {
    static_assert(!detail::array_of_other<U, element<A>> && !detail::array_of_other<Carry, element<A>>,
                  "scan(lambda, u, carry): lambda, u and carry must hold numbers of one type");
    return {};
}

/// Cotangents of a scan's arguments.
template <class T>
struct scan_cotangents {
    tensor<T> lambda, u, carry;

    scan_cotangents() = default;
    /// Zero, for arguments of [B,T,D].
    explicit scan_cotangents(const shape& s) : lambda(s), u(s), carry({s[0], s[2]}) {}
};

/// The adjoint of scan is a scan in the other direction: g_t = ḣ_t + conj(λ_{t+1}) ⊙ g_{t+1} with the
/// carry-out's cotangent added at the last token; ū += g, λ̄_t += g_t ⊙ conj(h_{t−1}), the carry-in's +=
/// conj(λ_0) ⊙ g_0. h: the scan's value; h_bar: [B,T,D]; carry, carry_bar: [B,D] or left out; accumulates
/// into `into`, or overwrites it on request, which spares reading it. A complex cotangent is ∂/∂Re + i ∂/∂Im.
/// Errors: shapes that do not match.
template <update Update = update::accumulate, host_array A, host_memory_backend<element<A>> Backend = reference>
void scan_back(const A& lambda, reads<A> h, reads<A> carry, reads<A> h_bar, reads<A> carry_bar,
               scan_cotangents<element<A>>& into, direction d = direction::forward, Backend backend = {}) {
    using T = element<A>;
    detail::require_rank("scan_back", "lambda", lambda.shape(), 3, "[B,T,D]");
    detail::require_same("scan_back", "lambda", lambda.shape(), "h", h.shape());
    detail::require_same("scan_back", "lambda", lambda.shape(), "h_bar", h_bar.shape());
    const index B = h.shape()[0], tokens = h.shape()[1], D = h.shape()[2];
    detail::require_optional("scan_back", "carry", carry, {B, D});
    detail::require_optional("scan_back", "carry_bar", carry_bar, {B, D});
    detail::require_same("scan_back", "lambda", lambda.shape(), "into.lambda", into.lambda.shape());
    detail::require_same("scan_back", "lambda", lambda.shape(), "into.u", into.u.shape());
    detail::require_shape("scan_back", "into.carry", into.carry.shape(), {B, D});
    detail::for_each_scan(backend, B, D, [&](index b, index first, index channels) {
        buffer<T> running(static_cast<std::size_t>(channels));
        if (carry_bar.data()) std::copy_n(carry_bar.data() + b * D + first, channels, running.begin());
        if (!h.empty()) {
            const detail::sequence_walk s(b, tokens, D, d);
            const index at = s.begin + first;
            kernel::scan_back<typename Backend::template team<T>, Update, T>(
                tokens, channels, s.stride, lambda.data() + at, h.data() + at,
                carry.data() ? carry.data() + b * D + first : nullptr, h_bar.data() + at, running.data(),
                into.lambda.data() + at, into.u.data() + at);
        }
        T* carry_in = into.carry.data() + b * D + first;
        for (index i = 0; i < channels; ++i)
            carry_in[i] = (Update == update::accumulate ? carry_in[i] : T(0)) + running[static_cast<std::size_t>(i)];
    });
}

}  // namespace fprnn
