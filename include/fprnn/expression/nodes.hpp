#pragma once

#include <fprnn/expression/start.hpp>
#include <fprnn/expression/width.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <concepts>
#include <tuple>
#include <type_traits>

/// Expressions: empty types that are the equation of a layer. They compute nothing. Equal types are one node:
/// one set of parameters, one evaluation. A node says
///
///     width       its symbolic number of channels
///     depends     on what of the iteration it depends (see `dependence`)
///     operands    the nodes that must have been evaluated before it
namespace fprnn {

/// How a node of y = f(x, y^{ℓ−1}) depends on the previous iterate, and hence when it is evaluated. What
/// stands outside of an iteration comes first: a fixed point that has been solved is an input of the
/// iterations that read it.
enum class dependence {
    input,    ///< on x alone: once per call, for all tokens, as one large product
    output,   ///< on fixed points: the same, after the last of them
    shifted,  ///< on y_{t−1}^{ℓ−1}: once per iteration of a chunk; for one-token chunks once per token
    current,  ///< on y_t^{ℓ−1}: in the innermost loop
};

constexpr dependence join(dependence a, dependence b) { return a < b ? b : a; }

template <class... T>
struct type_list {};

/// Base of all nodes.
struct node_tag {};
/// Base of mixers; they stand only in Q * v and (I - Q) * w.
struct mixer_tag {};

template <class E>
concept expression = std::derived_from<E, node_tag>;
template <class Q>
concept mixer_expression = std::derived_from<Q, mixer_tag>;

template <class... E>
inline constexpr dependence joined = dependence::input;
template <class E, class... Rest>
inline constexpr dependence joined<E, Rest...> = join(E::depends, joined<Rest...>);

// ---- leaves ----------------------------------------------------------------

/// x_t, the layer's input.
struct input_node : node_tag {
    using width = d_in;
    using operands = type_list<>;
    static constexpr dependence depends = dependence::input;
};
/// y_t^{ℓ−1}, the previous iterate, as wide as Width.
template <class Width = d_inner>
struct previous_of : node_tag {
    using width = Width;
    using operands = type_list<>;
    static constexpr dependence depends = dependence::current;
};
using previous_node = previous_of<>;
namespace detail {
template <class E>
inline constexpr bool is_previous = false;
template <class Width>
inline constexpr bool is_previous<previous_of<Width>> = true;
}  // namespace detail
/// I in (I - Q) * w.
struct identity_symbol {};
/// The left-out half of Q * v or (I - Q) * w.
struct zero_node : node_tag {
    using width = d_inner;
    using operands = type_list<>;
    static constexpr dependence depends = dependence::input;
};

/// A learned vector, the same for every token.
template <auto Name, class Width, class Init>
struct parameter_node : node_tag {
    using width = Width;
    using operands = type_list<>;
    static constexpr dependence depends = dependence::input;
};

namespace detail {
template <class... E>
inline constexpr bool are_sequences = (are_sequences<E> && ...);
template <class E>
inline constexpr bool are_sequences<E> = true;
template <auto Name, class Width, class Init>
inline constexpr bool are_sequences<parameter_node<Name, Width, Init>> = false;

/// Nodes that look at rows of tokens inherit it.
template <class... E>
struct token_node : node_tag {
    static_assert(
        are_sequences<E...>,
        "a parameter is no sequence of tokens: shift, cat, linear and the scans take an elementwise function of "
        "it, such as constant<1>() * parameter<\"a\">()");
};
}  // namespace detail

// ---- structure -------------------------------------------------------------

/// The operand one token earlier: x_{t−1}, y_{t−1}^{ℓ−1}; at the start of a sequence, what the carry holds.
template <class E>
struct shift_node : detail::token_node<E> {
    static_assert(
        detail::is_previous<E> || E::depends == dependence::input || E::depends == dependence::output,
        "shift takes `in`, `prev` or a node outside the iteration: shift before you map, linear(shift(prev))");
    using width = typename E::width;
    using operands = type_list<E>;
    static constexpr dependence depends = detail::is_previous<E> ? dependence::shifted : E::depends;
};

/// Several operands side by side, as a linear map sees them. It is never evaluated: maps split over it.
template <class... E>
struct cat_node : detail::token_node<E...> {
    using parts = type_list<E...>;
    using width = sum_width<typename E::width...>;
    static constexpr dependence depends = joined<E...>;
};

template <class E>
struct parts_of {
    using type = type_list<E>;
};
template <class... E>
struct parts_of<cat_node<E...>> {
    using type = type_list<E...>;
};
/// The parts of several operands side by side.
template <class Taken, class... E>
struct cat_of_parts;
template <class... Taken>
struct cat_of_parts<type_list<Taken...>> {
    using type = cat_node<Taken...>;
};
template <class... Taken, class E, class... More>
struct cat_of_parts<type_list<Taken...>, E, More...> : cat_of_parts<type_list<Taken..., E>, More...> {};
template <class... Taken, class... E, class... More>
struct cat_of_parts<type_list<Taken...>, cat_node<E...>, More...> : cat_of_parts<type_list<Taken..., E...>, More...> {};

/// W e, or W e + bias: "Name" [width, e's width] and "Name.bias" [width].
template <auto Name, class E, class Width, class BiasInit, class WeightInit>
struct linear_node : detail::token_node<E> {
    using width = Width;
    using operands = typename parts_of<E>::type;
    static constexpr dependence depends = E::depends;
    static constexpr bool has_bias = !std::same_as<BiasInit, void>;
};

/// Each part of e times a matrix of its own, W block-diagonal, for as many parts as Parts says: "Name"
/// [Parts, width of a part, e's width of a part] and "Name.bias" [width].
template <auto Name, class E, class Parts, class Width, class BiasInit, class WeightInit>
struct linear_of_parts_node : detail::token_node<E> {
    using width = Width;
    using operands = type_list<E>;
    static constexpr dependence depends = E::depends;
};
/// The linear or affine map Map with W_r = g_r v_r/‖v_r‖ in row r: v is "Name" [width, e's width], g
/// "Name.scale" [width], which starts at ‖v_r‖.
template <class Map>
struct weight_normed_node : node_tag {
    using width = typename Map::width;
    using operands = typename Map::operands;
    static constexpr dependence depends = Map::depends;
};

/// An elementwise function of its operands; F<A, B> is the chain node that computes it.
template <template <class...> class F, class... E>
struct elementwise_node : node_tag {
    using width = typename std::tuple_element_t<0, std::tuple<E...>>::width;
    using operands = type_list<E...>;
    static constexpr dependence depends = joined<E...>;
};
/// A number in constant<1, 2>() * e.
template <int Numerator, int Denominator>
struct constant_symbol {};

/// h_t = λ_t ⊙ h_{t−1} + u_t                                                                  (eq. intro_rnn)
template <class Lambda, class U>
struct scan_node : detail::token_node<Lambda, U> {
    using width = typename U::width;
    using operands = type_list<Lambda, U>;
    static constexpr dependence depends = joined<Lambda, U>;
};

/// y = cᵀH, H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ, with ω "Name.omega" [d_state, width]
/// (eq. mamba).
template <auto Name, class Delta, class B, class C, class U>
struct selective_scan_node : detail::token_node<Delta, B, C, U> {
    using width = typename U::width;
    using operands = type_list<Delta, B, C, U>;
    static constexpr dependence depends = joined<Delta, B, C, U>;
};

/// A recurrence of its inputs, y_t = read(S_t), S_t = step(S_{t−1}; x_t), as wide as Width; parameters, if
/// there are any, "Name".
template <class M, auto Name, class Width, class... E>
struct recurrence_node : detail::token_node<E...> {
    static_assert(
        is_recurrence<M>,
        "recurrence_node<M, …>: M must satisfy the concept fprnn::recurrence: inputs, sizes, of, state, value, "
        "scratch, step and back, see fprnn/recurrences/recurrence.hpp");
    using width = Width;
    using operands = type_list<E...>;
    static constexpr dependence depends = joined<E...>;
};

/// What attention knows of the places of tokens: nothing, or that q and k are turned by angles proportional
/// to them.
enum class positions { none, rotary };

/// y_{t,h} = Σ_{s≤t} softmax_s(q_{t,h}ᵀk_{s,h} / √K) v_{s,h} for each head h of K channels of q and k; as
/// wide as v.
template <positions P, class Q, class K, class V>
struct attention_node : detail::token_node<Q, K, V> {
    using width = typename V::width;
    using operands = type_list<Q, K, V>;
    static constexpr dependence depends = joined<Q, K, V>;
};

/// Layer norm or RMS norm over the channels, or over those of each part as wide as Part: "Name.weight",
/// "Name.bias", as wide as Weights.
template <class Function, auto Name, class E, class Part = void, class Weights = Part>
struct norm_node : node_tag {
    using width = typename E::width;
    using operands = type_list<E>;
    static constexpr dependence depends = E::depends;
};
/// e / max(‖e‖₂, ε) over the channels, or over those of each part.
template <class E, class Part = void>
struct l2_normalise_node : node_tag {
    using width = typename E::width;
    using operands = type_list<E>;
    static constexpr dependence depends = E::depends;
};

/// Each number of e for all channels of a part as wide as Times.
template <class E, class Times>
struct repeat_node : detail::token_node<E> {
    using width = typename detail::width_of_parts<typename E::width, Times>::type;
    using operands = type_list<E>;
    static constexpr dependence depends = E::depends;
};
/// The sum of each part of e, which is Width parts wide.
template <class E, class Width>
struct sum_parts_node : detail::token_node<E> {
    using width = Width;
    using operands = type_list<E>;
    static constexpr dependence depends = E::depends;
};

// ---- mixers ----------------------------------------------------------------

/// A mixer whose raw numbers are the given maps.
template <class M, class... Maps>
struct mixer_node : mixer_tag {
    static_assert(is_mixer<M>,
                  "mixer_node<M, Maps...>: M must satisfy the concept fprnn::mixer: size, raw_sizes, scratch, prepare, "
                  "prepare_back, mix, mix_back and mix_back_q, see fprnn/mixers/mixer.hpp");
    using mixer_type = M;
    using maps = type_list<Maps...>;
    static constexpr dependence depends = joined<Maps...>;
};
template <class Q>
struct complement_node : mixer_tag {};

/// A mixer's numbers, made ready: its own node, so that several uses of one Q share it.
template <class Q>
struct prepared_node;
template <class M, class... Maps>
struct prepared_node<mixer_node<M, Maps...>> : node_tag {
    using width = void;
    using operands = type_list<Maps...>;
    static constexpr dependence depends = joined<Maps...>;
};

/// Q v + (I − Q) w = w + Q (v − w): one application.
template <class Q, class V, class W>
struct mix_node : node_tag {
    static_assert(std::is_same_v<typename V::width, d_inner> && std::is_same_v<typename W::width, d_inner>,
                  "Q * v and (I - Q) * w need operands of width d_inner: linear<\"name\">(v)");
    using width = d_inner;
    using operands = type_list<prepared_node<Q>, V, W>;
    static constexpr dependence depends = joined<prepared_node<Q>, V, W>;
};

// ---- the fixed point -------------------------------------------------------

/// y* = F(x, y*), a node outside the iteration. Each `prev` in F that is in no fixed point in F is its
/// iterate.
template <class F>
struct fixed_point_node : node_tag {
    using width = typename F::width;
    using operands = type_list<F>;
    static constexpr dependence depends = dependence::output;
};

}  // namespace fprnn
