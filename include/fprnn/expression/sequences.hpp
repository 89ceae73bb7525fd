#pragma once

#include <fprnn/expression/expression.hpp>
#include <fprnn/recurrences/convolution.hpp>
#include <fprnn/recurrences/gated_delta.hpp>
#include <fprnn/recurrences/head_scan.hpp>
#include <fprnn/recurrences/mlstm.hpp>
#include <fprnn/recurrences/slstm.hpp>

#include <type_traits>

/// What goes along the tokens of a sequence, scans and recurrences; and between heads and their channels.
namespace fprnn {

/// The diagonal recurrence h_t = λ_t ⊙ h_{t−1} + u_t of λ and u, equally wide, from the carry's h_{−1} or
/// zero.
///                                                                                           (eq. intro_rnn)
template <expression Lambda, expression U>
constexpr auto scan(Lambda, U) {
    detail::require_equal_widths<Lambda, U>();
    return scan_node<Lambda, U>{};
}
/// Mamba's recurrence of channels with a state of d_state rows each, H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t
/// (Δ_t ⊙ u_t)ᵀ, y_t = c_tᵀ H_t: Δ and u of width D, which y has, b and c of width d_state; ω [N,D] is its
/// parameter "Name.omega". The carry holds H.                                                    (eq. mamba)
template <fixed_string Name, expression Delta, expression B, expression C, expression U>
constexpr auto selective_scan(Delta, B, C, U) {
    detail::require_equal_widths<Delta, U>();
    static_assert(std::is_same_v<typename B::width, d_state> && std::is_same_v<typename C::width, d_state>,
                  "selective_scan: b and c must have width d_state: linear<\"b\", d_state>(s)");
    static_assert(join(Delta::depends, join(B::depends, C::depends)) != dependence::current,
                  "selective_scan: Δ, b and c may depend on shift(prev) but not on prev");
    return selective_scan_node<Name, Delta, B, C, U>{};
}
template <class... NoName, expression Delta, expression B, expression C, expression U, class... More>
constexpr auto selective_scan(Delta, B, C, U, const More&...) {
    static_assert(detail::never<Delta>,
                  "selective_scan has a name, that of its parameters: selective_scan<\"ssm\">(delta, b, c, u)");
    return previous_node{};  // an expression, so that this stays the only error
}
namespace detail {
/// What a token of n steps has, divided by n.
template <index Steps, class Width>
struct width_of_step {
    using type = void;
};
template <class Width>
struct width_of_step<1, Width> {
    using type = Width;
};
template <index Steps, class Width>
    requires(Steps > 1)
struct width_of_step<Steps, times_width<Steps, Width>> {
    using type = Width;
};
}  // namespace detail

/// The gated delta rule, n = Steps steps a token: see gated_delta_recurrence. α as wide as there are heads, q
/// heads · K, v n · heads · V (times_width<n, …>), k n · heads · K, β n · heads; the value is as wide as v is
/// for one step.
template <index Steps = 1, expression Alpha, expression K, expression V, expression Beta, expression Q>
constexpr auto gated_delta(Alpha, K, V, Beta, Q) {
    using width = typename detail::width_of_step<Steps, typename V::width>::type;
    static_assert(Steps >= 1, "gated_delta<n>: n must be at least 1");
    static_assert(Steps < 1 || !std::is_void_v<width>,
                  "gated_delta<n>(alpha, k, v, beta, q): v must have n times a width: linear<\"v\", times_width<n, "
                  "d_inner>>(s)");
    if constexpr (std::is_void_v<width>)
        return previous_node{};  // an expression, so that this stays the only error
    else
        return recurrence_node<gated_delta_recurrence, fixed_string(""), width, Alpha, K, V, Beta, Q>{};
}

/// The scan of Mamba-2, one decay for a head: see head_scan_recurrence. a as wide as there are heads, b and c
/// groups · N, u heads · P; the value is as wide as u.
template <int Groups = 1, expression A, expression B, expression U, expression C>
constexpr auto head_scan(A, B, U, C) {
    static_assert(Groups >= 1, "head_scan<groups>: there must be at least 1 group");
    static_assert(std::is_same_v<typename B::width, typename C::width>,
                  "head_scan(a, b, u, c): b and c must have the same symbolic width, such as d_state");
    if constexpr (Groups < 1)
        return previous_node{};  // an expression, so that this stays the only error
    else
        return recurrence_node<head_scan_recurrence<Groups>, fixed_string(""), typename U::width, A, B, U, C>{};
}

/// xLSTM's matrix cell: see mlstm_recurrence. Raw i and f as wide as there are heads, k and q heads · K, v
/// heads · V; the value is as wide as v.
template <expression In, expression F, expression K, expression V, expression Q>
constexpr auto mlstm(In, F, K, V, Q) {
    constexpr bool fits =
        std::is_same_v<typename In::width, typename F::width> && std::is_same_v<typename K::width, typename Q::width>;
    static_assert(fits,
                  "mlstm(i, f, k, v, q): i and f must have the same symbolic width, such as heads, and k and q must "
                  "have the same, such as d_inner");
    if constexpr (fits)
        return recurrence_node<mlstm_recurrence, fixed_string(""), typename V::width, In, F, K, V, Q>{};
    else
        return previous_node{};  // an expression, so that this stays the only error
}
/// xLSTM's scalar cell: see slstm_recurrence. Raw i, f, z and o, and the value, have one width.
template <expression In, expression F, expression Z, expression O>
constexpr auto slstm(In, F, Z, O) {
    constexpr bool fits = std::is_same_v<typename In::width, typename F::width> &&
                          std::is_same_v<typename In::width, typename Z::width> &&
                          std::is_same_v<typename In::width, typename O::width>;
    static_assert(fits, "slstm(i, f, z, o): all four must have the same symbolic width: linear<\"i\", d_inner>(e)");
    if constexpr (fits)
        return recurrence_node<slstm_recurrence, fixed_string(""), typename In::width, In, F, Z, O>{};
    else
        return previous_node{};  // an expression, so that this stays the only error
}

/// The short causal convolution, y_t = bias + Σ_{j<K} w_j ⊙ e_{t−K+1+j}, of each channel: see
/// convolution_recurrence. "Name" [K, e's width], "Name.bias" [e's width]; the carry is e of K − 1 tokens.
template <fixed_string Name, int K = 4, expression E>
constexpr auto convolution(E e) {
    static_assert(K >= 1, "convolution<\"name\", K>(e): K, the number of tokens that it sees, must be at least 1");
    if constexpr (K < 1)
        return e;  // an expression, so that this stays the only error
    else
        return recurrence_node<convolution_recurrence<K>, Name, typename E::width, E>{};
}
template <class... NoName, expression E, class... More>
constexpr auto convolution(E, const More&...) {
    static_assert(detail::never<E>, "convolution has a name, that of its parameters: convolution<\"conv\">(e)");
    return previous_node{};  // an expression, so that this stays the only error
}

/// Causal softmax attention outside of a fixed point, see attention_node: of `heads` heads, into which q, k
/// and v are parted. The carry holds keys and values of `context` tokens (attention_sizes). With
/// positions::rotary the channels c and c + K/2 of q_t and k_t are turned by t · 10000^(−2c/K) (Su et al.
/// 2021), t counted from the first call on.
template <positions P = positions::none, expression Q, expression K, expression V>
constexpr auto attention(Q, K, V v) {
    constexpr bool is_outside = joined<Q, K, V> <= dependence::output,
                   fits = std::is_same_v<typename Q::width, typename K::width>;
    static_assert(is_outside,
                  "attention(q, k, v): q, k and v may depend on `in` and on fixed points that are solved, but not on "
                  "prev or shift(prev)");
    static_assert(fits,
                  "attention(q, k, v): q and k must have the same symbolic width, such as product_width<heads, d_key>");
    if constexpr (!is_outside || !fits)
        return v;  // an expression, so that this stays the only error
    else
        return attention_node<P, Q, K, V>{};
}

/// Each number of e for every channel of a part: a head's α for the head's channels, repeat<d_head>(alpha),
/// of width product_width<heads, d_head>; repeat<quotient_width<d_inner, heads>>(alpha) is as wide as
/// d_inner.
template <class Times, expression E>
constexpr auto repeat(E) {
    return repeat_node<E, Times>{};
}
namespace detail {
template <class Part, class Width>
struct number_of_parts {
    using type = void;
};
template <class Part, class Parts>
struct number_of_parts<Part, product_width<Parts, Part>> {
    using type = Parts;
};
template <class Whole, class Parts>
struct number_of_parts<quotient_width<Whole, Parts>, Whole> {
    using type = Parts;
};
}  // namespace detail
/// The sum over the channels of each part as wide as Part, the adjoint of `repeat`: e must have width
/// product_width<…, Part>.
template <class Part, expression E>
constexpr auto sum_parts(E e) {
    using width = typename detail::number_of_parts<Part, typename E::width>::type;
    static_assert(!std::is_void_v<width>,
                  "sum_parts<part>(e): e must have width product_width<number, part>, such as product_width<heads, "
                  "d_head>");
    if constexpr (std::is_void_v<width>)
        return e;  // so that this stays the only error
    else
        return sum_parts_node<E, width>{};
}

}  // namespace fprnn
