#pragma once

#include <fprnn/expression/nodes.hpp>

#include <type_traits>

/// What expressions begin with: input, iterate, I, numbers, trained vectors; the token before, and cat.
namespace fprnn {

namespace symbols {
/// x_t, the layer's input, of width d_in.
inline constexpr input_node in{};
/// y_t^{ℓ−1}, the iterate, of width d_inner; every chunk starts from 0.
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
template <class... T>
inline constexpr bool never = false;
}  // namespace detail

/// Numerator / Denominator in every channel of what it stands beside: numbers in an expression are written
/// so, 1 and I aside.
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

}  // namespace fprnn
