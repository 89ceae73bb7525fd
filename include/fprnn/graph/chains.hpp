#pragma once

#include <fprnn/expression/expression.hpp>
#include <fprnn/ops/chain.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

/// Elementwise chains of an expression: a tree of elementwise functions becomes one node with a chain type; a
/// subtree that depends on less is a node of its own, because it is evaluated less often.
namespace fprnn {

template <class List, class E>
inline constexpr bool contains = false;
template <class... L, class E>
inline constexpr bool contains<type_list<L...>, E> = (std::same_as<L, E> || ...);

template <class List, class E>
inline constexpr std::size_t position = 0;
template <class... L, class E>
inline constexpr std::size_t position<type_list<L...>, E> = [] {
    std::size_t i = 0;
    (void)((std::same_as<L, E> || (++i, false)) || ...);
    return i;
}();

template <class List, class E>
inline constexpr std::size_t occurrences = 0;
template <class... L, class E>
inline constexpr std::size_t occurrences<type_list<L...>, E> = (std::size_t{0} + ... + (std::same_as<L, E> ? 1 : 0));

template <class List>
inline constexpr std::size_t length = 0;
template <class... L>
inline constexpr std::size_t length<type_list<L...>> = sizeof...(L);

namespace detail {

template <class List, std::size_t Place>
struct node_at;
template <class... L, std::size_t Place>
struct node_at<type_list<L...>, Place> : std::tuple_element<Place, std::tuple<L...>> {};

template <class List, template <class> class Is, class Found = type_list<>>
struct only;
template <template <class> class Is, class Found>
struct only<type_list<>, Is, Found> {
    using type = Found;
};
template <class E, class... Rest, template <class> class Is, class... Found>
struct only<type_list<E, Rest...>, Is, type_list<Found...>>
    : only<type_list<Rest...>, Is, std::conditional_t<Is<E>::value, type_list<Found..., E>, type_list<Found...>>> {};

}  // namespace detail

/// The one whose position is Place.
template <class List, std::size_t Place>
using node_at = typename detail::node_at<List, Place>::type;
/// Those of a list for which Is<E>::value, in their order.
template <class List, template <class> class Is>
using only = typename detail::only<List, Is>::type;

namespace detail {

template <class List, class E>
struct append_unique;
template <class... L, class E>
struct append_unique<type_list<L...>, E> {
    using type = std::conditional_t<contains<type_list<L...>, E>, type_list<L...>, type_list<L..., E>>;
};

/// Whether E is computed inside a chain whose root depends on D.
template <class E, dependence D>
inline constexpr bool inlined = false;
template <template <class...> class F, class... E, dependence D>
inline constexpr bool inlined<elementwise_node<F, E...>, D> = elementwise_node<F, E...>::depends == D;

template <class E, dependence D, class Found>
struct leaves {
    using type = typename append_unique<Found, E>::type;
};
template <class List, dependence D, class Found>
struct leaves_of_all;
template <dependence D, class Found>
struct leaves_of_all<type_list<>, D, Found> {
    using type = Found;
};
template <class E, class... Rest, dependence D, class Found>
struct leaves_of_all<type_list<E, Rest...>, D, Found> {
    using type = typename leaves_of_all<type_list<Rest...>, D, typename leaves<E, D, Found>::type>::type;
};
template <template <class...> class F, class... E, dependence D, class Found>
    requires(inlined<elementwise_node<F, E...>, D>)
struct leaves<elementwise_node<F, E...>, D, Found> {
    using type = typename leaves_of_all<type_list<E...>, D, Found>::type;
};

template <class E, dependence D, class Leaves>
struct chain_of {
    using type = chain::argument<static_cast<int>(position<Leaves, E>)>;
};
template <template <class...> class F, class... E, dependence D, class Leaves>
    requires(inlined<elementwise_node<F, E...>, D>)
struct chain_of<elementwise_node<F, E...>, D, Leaves> {
    using type = F<typename chain_of<E, D, Leaves>::type...>;
};

}  // namespace detail

/// The arguments of an elementwise node's chain: nodes that are evaluated before it.
template <class E>
using chain_arguments = typename detail::leaves<E, E::depends, type_list<>>::type;
/// Its functor: no names, no layers, only positions.
template <class E>
using chain_functor = typename detail::chain_of<E, E::depends, chain_arguments<E>>::type;

/// The nodes that must be there before E.
template <class E>
struct needs {
    using type = typename E::operands;
};
template <class... E>
struct needs<cat_node<E...>> {
    static_assert(detail::never<E...>,
                  "cat(a, b) stands only in linear, affine and mixers such as householder: map it first");
    using type = type_list<E...>;  // so that nothing else is said to be missing
};
template <template <class...> class F, class... E>
struct needs<elementwise_node<F, E...>> {
    using type = chain_arguments<elementwise_node<F, E...>>;
};

namespace detail {

/// The degree of a chain as a polynomial of the arguments whose bits are set in Mask; 2 for everything that
/// is not affine.
template <class F, unsigned Mask>
inline constexpr int degree = 0;
template <int Place, unsigned Mask>
inline constexpr int degree<chain::argument<Place>, Mask> = static_cast<int>(Mask >> Place & 1u);
template <class A, class B, unsigned Mask>
inline constexpr int degree<chain::add<A, B>, Mask> = std::max(degree<A, Mask>, degree<B, Mask>);
template <class A, class B, unsigned Mask>
inline constexpr int degree<chain::subtract<A, B>, Mask> = std::max(degree<A, Mask>, degree<B, Mask>);
template <class A, class B, unsigned Mask>
inline constexpr int degree<chain::multiply<A, B>, Mask> = degree<A, Mask> + degree<B, Mask>;
template <class F, class A, unsigned Mask>
inline constexpr int degree<chain::apply<F, A>, Mask> = degree<A, Mask> == 0 ? 0 : 2;
template <class A, unsigned Mask>
inline constexpr int degree<chain::apply<chain::negate_function, A>, Mask> = degree<A, Mask>;

template <class... A>
consteval unsigned arguments_of_innermost_loop(type_list<A...>) {
    unsigned mask = 0, bit = 1;
    ((mask |= A::depends == dependence::current ? bit : 0u, bit <<= 1), ...);
    return mask;
}

}  // namespace detail

/// Whether an elementwise node is p + g ⊙ x of the arguments x that the innermost loop changes; not, where it
/// has more arguments than a mask has bits.
template <class E>
inline constexpr bool is_affine_chain = [] {
    if constexpr (length<chain_arguments<E>> <= 32)
        return detail::degree<chain_functor<E>, detail::arguments_of_innermost_loop(chain_arguments<E>{})> <= 1;
    else
        return false;
}();

}  // namespace fprnn
