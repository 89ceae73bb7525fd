#pragma once

#include <fprnn/expression/symbols.hpp>

#include <type_traits>

/// Linear maps of expressions, from all channels or part by part, with or without a bias.
namespace fprnn {

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
/// stays so: it has no gradient. W is computed once per call for each tile of sequences.
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

}  // namespace fprnn
