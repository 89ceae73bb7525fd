#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

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

/// h_t = λ_t ⊙ h_{t−1} + u_t for one sequence of T rows that are `stride` apart, from h_{−1} = carry (zero when null).
template <class Team, class T>
FPRNN_BOTH void scan(index tokens, index channels, index stride, const T* lambda, const T* u, const T* carry, T* h) {
    for (index t = 0; t < tokens; ++t) {
        const index at = t * stride;
        const T* before = t > 0 ? h + at - stride : carry;
        if (before)
            Team::each(channels, [&](auto lane) {
                lane.store(h + at, lane.load(lambda + at) * lane.load(before) + lane.load(u + at));
            });
        else
            Team::each(channels, [&](auto lane) { lane.store(h + at, lane.load(u + at)); });
    }
}

/// The adjoint: g_t = ḣ_t + conj(λ_{t+1}) ⊙ g_{t+1};  ū_t += g_t;  λ̄_t += g_t ⊙ conj(h_{t−1}).
/// `running` [D] holds the cotangent of the carry out and ends as that of the carry in. lambda_bar and u_bar may be null.
template <class Team, class T>
FPRNN_BOTH void scan_back(index tokens, index channels, index stride, const T* lambda, const T* h, const T* carry,
                          const T* h_bar, T* running, T* lambda_bar, T* u_bar) {
    for (index t = tokens - 1; t >= 0; --t) {
        const index at = t * stride;
        const T* before = t > 0 ? h + at - stride : carry;
        Team::each(channels, [&](auto lane) {
            const auto g = lane.load(h_bar + at) + lane.load(running);
            if (u_bar) lane.add(u_bar + at, g);
            if (lambda_bar && before) lane.add(lambda_bar + at, g * conjugate(lane.load(before)));
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

}  // namespace detail

/// Diagonal scan: h_t = λ_t ⊙ h_{t−1} + u_t, from h_{−1} = carry.                                     (eq. intro_rnn)
/// lambda, u: [B,T,D]; carry: [B,D], zero when left out; returns h [B,T,D]. The carry out is h's last token, or the carry
/// itself where T = 0. Reversed: h_t = λ_t ⊙ h_{t+1} + u_t, from h_T = carry, and the carry out is the first token. Real and
/// complex. Errors: shapes that do not match.
template <array_like A, class Backend = reference>
tensor<element<A>> scan(const A& lambda, reads<A> u, reads<A> carry = {}, direction d = direction::forward,
                        Backend backend = {}) {
    using T = element<A>;
    detail::require_rank("scan", "lambda", lambda.shape(), 3, "[B,T,D]");
    detail::require_same("scan", "lambda", lambda.shape(), "u", u.shape());
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2];
    detail::require_optional("scan", "carry", carry, {B, D});
    tensor<T> h(u.shape());
    if (h.empty()) return h;
    backend.for_each(B, [&](index b) {
        const detail::sequence_walk s(b, tokens, D, d);
        kernel::scan<typename Backend::template team<T>, T>(
            tokens, D, s.stride, lambda.data() + s.begin, u.data() + s.begin,
            carry.data() ? carry.data() + b * D : nullptr, h.data() + s.begin);
    });
    return h;
}

/// Cotangents of a scan's arguments.
template <class T>
struct scan_cotangents {
    tensor<T> lambda, u, carry;

    scan_cotangents() = default;
    /// Zero, for arguments of [B,T,D].
    explicit scan_cotangents(const shape& s) : lambda(s), u(s), carry({s[0], s[2]}) {}
};

/// The adjoint of scan is a scan in the other direction: g_t = ḣ_t + conj(λ_{t+1}) ⊙ g_{t+1} with the carry-out's
/// cotangent added at the last token; ū += g, λ̄_t += g_t ⊙ conj(h_{t−1}), the carry-in's += conj(λ_0) ⊙ g_0.
/// h: the scan's value; h_bar: [B,T,D]; carry, carry_bar: [B,D] or left out; accumulates into `into`. A complex cotangent
/// is ∂/∂Re + i ∂/∂Im. Errors: shapes that do not match.
template <array_like A, class Backend = reference>
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
    backend.for_each(B, [&](index b) {
        buffer<T> running(static_cast<std::size_t>(D));
        if (carry_bar.data()) std::copy_n(carry_bar.data() + b * D, D, running.begin());
        if (!h.empty()) {
            const detail::sequence_walk s(b, tokens, D, d);
            kernel::scan_back<typename Backend::template team<T>, T>(
                tokens, D, s.stride, lambda.data() + s.begin, h.data() + s.begin,
                carry.data() ? carry.data() + b * D : nullptr, h_bar.data() + s.begin, running.data(),
                into.lambda.data() + s.begin, into.u.data() + s.begin);
        }
        for (index i = 0; i < D; ++i) into.carry[b * D + i] += running[static_cast<std::size_t>(i)];
    });
}

}  // namespace fprnn
