#pragma once

#include <fprnn/expression/symbols.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/rms_norm.hpp>

#include <type_traits>

/// Norms of expressions, over all channels or of each part.
namespace fprnn {

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
