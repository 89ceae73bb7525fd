#pragma once

#include <fprnn/expression/symbols.hpp>
#include <fprnn/ops/chain.hpp>

#include <concepts>
#include <type_traits>

/// Elementwise functions of expressions, sums and products, and what a mixer is applied to.
namespace fprnn {

namespace detail {
/// 1 in 1 - e, and nothing else.
struct one_literal {
    int value;
    consteval one_literal(int v) : value(v) {
        if (v != 1) throw "only 1 may be written as a literal: use constant<2>() or constant<1,2>()";
    }
};
template <class N>
inline constexpr bool is_constant = false;
template <int N, int D>
inline constexpr bool is_constant<constant_symbol<N, D>> = true;
template <class Q>
inline constexpr bool is_complement = false;
template <class Q>
inline constexpr bool is_complement<complement_node<Q>> = true;
/// What has no place beside an expression.
template <class N>
concept number = std::is_arithmetic_v<N>;
template <class N>
concept number_or_constant = number<N> || is_constant<N>;
template <class E, class... N>
constexpr E refuse_number(E) {
    static_assert(
        never<N...>,
        "a number beside an expression, or a quotient: write factors as constant<1, 2>() * e, which is e / 2, and "
        "learnt offsets as affine<\"name\">(e) or e + parameter<\"name\">(); the only other number is that of 1 - e");
    return {};  // an expression, so that this stays the only error
}

template <class A>
using sigmoid_of = chain::apply<chain::sigmoid_function, A>;
template <class A>
using silu_of = chain::apply<chain::silu_function, A>;
template <class A>
using softplus_of = chain::apply<chain::softplus_function, A>;
template <class A>
using exp_of = chain::apply<chain::exp_function, A>;
template <class A>
using tanh_of = chain::apply<chain::tanh_function, A>;
template <class A>
using negative_of = chain::apply<chain::negate_function, A>;
template <class A>
using one_minus = chain::subtract<chain::constant<1>, A>;
template <int N, int D>
struct scale_by {
    template <class A>
    using of = chain::multiply<chain::constant<N, D>, A>;
};
}  // namespace detail

/// Elementwise functions, each as wide as e: σ(e) = 1 / (1 + exp(−e)), SiLU(e) = e σ(e), softplus(e) = log(1
/// + exp(e)), exp, tanh and −e. Those of one token are evaluated together, in one pass.
template <expression E>
constexpr auto sigmoid(E) {
    return elementwise_node<detail::sigmoid_of, E>{};
}
template <expression E>
constexpr auto silu(E) {
    return elementwise_node<detail::silu_of, E>{};
}
template <expression E>
constexpr auto softplus(E) {
    return elementwise_node<detail::softplus_of, E>{};
}
template <expression E>
constexpr auto exp(E) {
    return elementwise_node<detail::exp_of, E>{};
}
template <expression E>
constexpr auto tanh(E) {
    return elementwise_node<detail::tanh_of, E>{};
}
template <expression E>
constexpr auto operator-(E) {
    return elementwise_node<detail::negative_of, E>{};
}

template <expression A, expression B>
constexpr auto operator+(A, B) {
    detail::require_equal_widths<A, B>();
    return elementwise_node<chain::add, A, B>{};
}
template <expression A, expression B>
constexpr auto operator-(A, B) {
    detail::require_equal_widths<A, B>();
    return elementwise_node<chain::subtract, A, B>{};
}
template <expression A, expression B>
constexpr auto operator*(A, B) {
    detail::require_equal_widths<A, B>();
    return elementwise_node<chain::multiply, A, B>{};
}
template <int N, int D, expression E>
constexpr auto operator*(constant_symbol<N, D>, E) {
    return elementwise_node<detail::scale_by<N, D>::template of, E>{};
}
template <int N, int D, expression E>
constexpr auto operator*(E e, constant_symbol<N, D> scale) {
    return scale * e;
}
template <expression E>
constexpr auto operator-(detail::one_literal, E) {
    return elementwise_node<detail::one_minus, E>{};
}

template <expression E, detail::number N>
constexpr auto operator*(E e, N) {
    return detail::refuse_number<E, N>(e);
}
template <detail::number N, expression E>
constexpr auto operator*(N, E e) {
    return detail::refuse_number<E, N>(e);
}
template <expression E, class N>
    requires detail::number_or_constant<N> || expression<N>
constexpr auto operator/(E e, N) { return detail::refuse_number<E, N>(e); }
template <detail::number_or_constant N, expression E>
constexpr auto operator/(N, E e) {
    return detail::refuse_number<E, N>(e);
}
template <expression E, detail::number_or_constant N>
constexpr auto operator+(E e, N) {
    return detail::refuse_number<E, N>(e);
}
template <detail::number_or_constant N, expression E>
constexpr auto operator+(N, E e) {
    return detail::refuse_number<E, N>(e);
}
template <expression E, detail::number_or_constant N>
constexpr auto operator-(E e, N) {
    return detail::refuse_number<E, N>(e);
}
/// Floating-point numbers would become 1, and integers are one_literal's.
template <detail::number_or_constant N, expression E>
    requires(!std::is_integral_v<N>)
constexpr auto operator-(N, E e) { return detail::refuse_number<E, N>(e); }

template <mixer_expression Q>
constexpr auto operator-(identity_symbol, Q) {
    return complement_node<Q>{};
}
template <class Q>
    requires(!mixer_expression<Q>)
constexpr auto operator-(identity_symbol, Q) {
    static_assert(detail::never<Q>,
                  "I - Q needs a mixer such as householder<4, \"Q\">(s): a type made by mixer_node<M, Maps...> whose M "
                  "satisfies the concept fprnn::mixer");
    return previous_node{};  // an expression, so that this stays the only error
}
/// I of <complex.h>.
template <class N, mixer_expression Q>
    requires(!expression<N> && !mixer_expression<N>)
constexpr auto operator-(N, Q) {
    static_assert(detail::never<N, Q>,
                  "only I of fprnn::symbols stands before a mixer, I - Q; where <complex.h> has made I a macro, write "
                  "identity - Q");
    return complement_node<Q>{};  // so that this stays the only error
}
template <class M, class... Maps, expression V>
constexpr auto operator*(mixer_node<M, Maps...>, V) {
    return mix_node<mixer_node<M, Maps...>, V, zero_node>{};
}
template <class Q, expression W>
constexpr auto operator*(complement_node<Q>, W) {
    return mix_node<Q, zero_node, W>{};
}
template <class Q, class V>
    requires((mixer_expression<Q> || detail::is_complement<Q>)&&!expression<V>)
constexpr auto operator*(Q, V) {
    static_assert(detail::never<Q, V>,
                  "Q * v and (I - Q) * w need an expression of width d_inner behind the mixer, such as prev or "
                  "linear<\"v\">(in), or another mixer, Q * P");
    return previous_node{};
}
template <class Q, expression V, expression W>
    requires(!std::same_as<V, zero_node> && !std::same_as<W, zero_node>)
constexpr auto operator+(mix_node<Q, V, zero_node>, mix_node<Q, zero_node, W>) { return mix_node<Q, V, W>{}; }
template <class Q, expression V, expression W>
    requires(!std::same_as<V, zero_node> && !std::same_as<W, zero_node>)
constexpr auto operator+(mix_node<Q, zero_node, W>, mix_node<Q, V, zero_node>) { return mix_node<Q, V, W>{}; }

}  // namespace fprnn
