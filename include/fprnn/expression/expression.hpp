#pragma once

#include <fprnn/expression/nodes.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/rms_norm.hpp>

/// How users write expressions: every function returns an empty node, and nothing is computed.
namespace fprnn {

namespace symbols {
inline constexpr input_node in{};
inline constexpr previous_node prev{};
/// The iterate of a fixed point that is not as wide as d_inner.
template <class Width>
inline constexpr previous_of<Width> prev_of{};
inline constexpr identity_symbol identity{};
#ifndef I  // a macro of <complex.h>
inline constexpr identity_symbol I{};
#endif
}  // namespace symbols

namespace detail {
template <class A, class B>
constexpr void require_equal_widths() {
    static_assert(std::is_same_v<typename A::width, typename B::width>,
                  "elementwise operands must have the same symbolic width: give the narrower linear<\"name\", width>");
}
/// 1 in 1 - e, and nothing else.
struct one_literal {
    int value;
    consteval one_literal(int v) : value(v) {
        if (v != 1) throw "only 1 may be written as a literal: use constant<2>() or constant<1,2>()";
    }
};
template <class... T>
inline constexpr bool never = false;

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
}  // namespace detail

/// Numerator / Denominator in every channel of what it stands beside: numbers in an expression are written so,
/// 1 and I aside.
template <int Numerator, int Denominator = 1>
constexpr auto constant() {
    static_assert(Denominator != 0, "constant<Numerator, Denominator>() is a quotient: its denominator must not be 0");
    return constant_symbol<Numerator, Denominator>{};
}
/// A trained vector, the same for all tokens: [d_inner] that starts at 1 unless Width and Init say another.
/// AdamW's weight decay leaves it alone, as all vectors but the scales of weight-normalised maps.
template <fixed_string Name, class Width = d_inner, class Init = start::constant<1>>
constexpr auto parameter() {
    return parameter_node<Name, Width, Init>{};
}
template <class... NoName, class... More>
constexpr auto parameter(const More&...) {
    static_assert(detail::never<NoName..., More...>, "parameter has a name: parameter<\"a\">()");
    return previous_node{};  // an expression, so that this stays the only error
}

/// e of the token before, e_{t−1}, as wide as e: zero at the first token, or what the carry holds of the call
/// before. shift(prev) is y_{t−1}.
template <expression E>
constexpr auto shift(E) {
    return shift_node<E>{};
}
/// The channels of all operands, one behind the other. Stands in maps and mixers alone: linear<"W">(cat(in,
/// shift(prev))). A cat within it stands for its operands.
template <expression... E>
constexpr auto cat(E...) {
    return typename cat_of_parts<type_list<>, E...>::type{};
}
/// W e without a bias; W starts uniform on ±1/√(its columns).
template <fixed_string Name, class Width = d_inner, class WeightInit = start::fan_in<1>, expression E>
constexpr auto linear(E) {
    return linear_node<Name, E, Width, void, WeightInit>{};
}
/// W e + bias.
template <fixed_string Name, class Width = d_inner, class BiasInit = start::constant<0>,
          class WeightInit = start::fan_in<1>, expression E>
constexpr auto affine(E) {
    return linear_node<Name, E, Width, BiasInit, WeightInit>{};
}
namespace detail {
/// A map with its weights normalised; what is no map stays as it is.
template <class E>
struct weight_normed_map : std::type_identity<E> {};
template <auto Name, class E, class Width, class BiasInit, class WeightInit>
struct weight_normed_map<linear_node<Name, E, Width, BiasInit, WeightInit>>
    : std::type_identity<weight_normed_node<linear_node<Name, E, Width, BiasInit, WeightInit>>> {};

template <class E>
inline constexpr bool is_weight_normed = false;
template <class Map>
inline constexpr bool is_weight_normed<weight_normed_node<Map>> = true;
}  // namespace detail

/// The map linear<"W">(e) or affine<"W">(e) with normalised weights, W_r = g_r v_r / ‖v_r‖ for each of its
/// rows: it starts as the map itself, v ("W") as that's W and g ("W.scale") at ‖v_r‖. A row v_r = 0 is 0 and
/// stays so: it has no gradient. W is computed once a call for each tile of sequences.
template <expression E>
constexpr auto weight_normed(E) {
    using map = typename detail::weight_normed_map<E>::type;
    static_assert(
        detail::is_weight_normed<map>,
        "weight_normed takes a map, linear<\"W\">(e) or affine<\"W\">(e), or a mixer, whose maps it are then");
    return map{};
}

// Without a name, or with one that is no template argument.
template <class... NoName, expression E, class... More>
constexpr auto linear(E, const More&...) {
    static_assert(detail::never<E>, "linear has a name, that of its parameters: linear<\"W\">(e)");
    return linear<"W">(E());  // so that this stays the only error
}
template <class... NoName, expression E, class... More>
constexpr auto affine(E, const More&...) {
    static_assert(detail::never<E>, "affine has a name, that of its parameters: affine<\"W\">(e)");
    return affine<"W">(E());  // so that this stays the only error
}

namespace detail {
template <auto Name, class Parts, class Width, class BiasInit, class WeightInit, class E>
constexpr auto map_of_parts(E) {
    constexpr bool is_one = std::is_same_v<typename parts_of<E>::type, type_list<E>>;
    static_assert(is_one, "a map of parts takes one expression, not cat(...): add the maps of its operands");
    if constexpr (is_one)
        return linear_of_parts_node<Name, E, Parts, Width, BiasInit, WeightInit>{};
    else
        return input_node{};  // an expression, so that this stays the only error
}
}  // namespace detail

/// W e with a block-diagonal W: as many parts of e as Parts says, such as heads or quotient_width<d_inner,
/// fixed_width<4>>, have each a matrix of its own, "Name" [Parts, width of a part, e's width of a part].
/// Parts must divide both widths.
template <fixed_string Name, class Parts, class Width = d_inner, class WeightInit = start::fan_in<1>, expression E>
constexpr auto linear_of_parts(E e) {
    return detail::map_of_parts<Name, Parts, Width, void, WeightInit>(e);
}
/// W e + bias.
template <fixed_string Name, class Parts, class Width = d_inner, class BiasInit = start::constant<0>,
          class WeightInit = start::fan_in<1>, expression E>
constexpr auto affine_of_parts(E e) {
    return detail::map_of_parts<Name, Parts, Width, BiasInit, WeightInit>(e);
}
template <class... NoName, expression E, class... More>
constexpr auto linear_of_parts(E, const More&...) {
    static_assert(detail::never<E>,
                  "linear_of_parts has a name and a number of parts: linear_of_parts<\"W\", heads>(e)");
    return previous_node{};  // an expression, so that this stays the only error
}
template <class... NoName, expression E, class... More>
constexpr auto affine_of_parts(E, const More&...) {
    static_assert(detail::never<E>,
                  "affine_of_parts has a name and a number of parts: affine_of_parts<\"W\", heads>(e)");
    return previous_node{};  // an expression, so that this stays the only error
}

namespace detail {
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

/// Elementwise functions, each as wide as e: σ(e) = 1 / (1 + exp(−e)), SiLU(e) = e σ(e), softplus(e) = log(1 +
/// exp(e)), exp, tanh and −e. Those of one token are evaluated together, in one pass.
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

namespace detail {
template <class Function, auto Name, class Part, class Weights, class E>
constexpr auto norm_of_parts(E e) {
    constexpr bool fits = is_made_of<Part, typename E::width>,
                   weights_fit = std::is_same_v<Weights, Part> || std::is_same_v<Weights, typename E::width>;
    static_assert(are_sequences<E>, "a norm of parts takes an expression, not a parameter");
    static_assert(
        fits,
        "a norm of parts: e must be made of parts of this width, such as product_width<heads, d_head> of d_head, or "
        "d_inner of quotient_width<d_inner, heads>");
    static_assert(!fits || weights_fit,
                  "a norm of parts: its weight is as wide as a part, which all parts share, or as wide as e");
    if constexpr (fits && weights_fit)
        return norm_node<Function, Name, E, Part, Weights>{};
    else
        return e;  // an expression, so that this stays the only error
}
}  // namespace detail

/// Over all channels, with a weight and a bias.
template <fixed_string Name, expression E>
constexpr auto layer_norm(E) {
    return norm_node<layer_norm_function, Name, E>{};
}
/// Of each part as wide as Part, such as a head; Weights says how wide weight and bias are: a part, for all
/// of them, or as wide as e.
template <fixed_string Name, class Part, class Weights = Part, expression E>
constexpr auto layer_norm(E e) {
    return detail::norm_of_parts<layer_norm_function, Name, Part, Weights>(e);
}
template <class... NoName, expression E, class... More>
constexpr auto layer_norm(E, const More&...) {
    static_assert(detail::never<E>, "layer_norm has a name, that of its parameters: layer_norm<\"norm\">(e)");
    return previous_node{};  // an expression, so that this stays the only error
}
/// Over all channels, with a weight.
template <fixed_string Name, expression E>
constexpr auto rms_norm(E) {
    return norm_node<rms_norm_function, Name, E>{};
}
/// Of each part as wide as Part, as layer_norm: rms_norm<"norm", d_head>(o) of heads of width d_head.
template <fixed_string Name, class Part, class Weights = Part, expression E>
constexpr auto rms_norm(E e) {
    return detail::norm_of_parts<rms_norm_function, Name, Part, Weights>(e);
}
template <class... NoName, expression E, class... More>
constexpr auto rms_norm(E, const More&...) {
    static_assert(detail::never<E>, "rms_norm has a name, that of its parameters: rms_norm<\"norm\">(e)");
    return previous_node{};  // an expression, so that this stays the only error
}
/// e / max(‖e‖₂, 1e-5)
template <expression E>
constexpr auto normalise(E) {
    return l2_normalise_node<E>{};
}
/// The same of each part as wide as Part: normalise<d_key>(k) of heads of width d_key.
template <class Part, expression E>
constexpr auto normalise(E e) {
    constexpr bool fits = detail::is_made_of<Part, typename E::width>;
    static_assert(detail::are_sequences<E>, "normalise<part>(e) takes an expression, not a parameter");
    static_assert(
        fits,
        "normalise<part>(e): e must be made of parts of this width, such as product_width<heads, d_key> of d_key, or "
        "d_inner of quotient_width<d_inner, heads>");
    if constexpr (fits)
        return l2_normalise_node<E, Part>{};
    else
        return e;  // an expression, so that this stays the only error
}

}  // namespace fprnn
