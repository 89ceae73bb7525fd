#pragma once

#include <fprnn/expression/mixers.hpp>
#include <fprnn/graph/chains.hpp>

#include <type_traits>

/// The types of a graph's nodes.
namespace fprnn {

namespace detail {

template <class E, class Found>
struct collect;
template <class List, class Found>
struct collect_all;
template <class Found>
struct collect_all<type_list<>, Found> {
    using type = Found;
};
template <class E, class... Rest, class Found>
struct collect_all<type_list<E, Rest...>, Found> {
    using type = typename collect_all<type_list<Rest...>, typename collect<E, Found>::type>::type;
};
template <class E, class Found>
struct collect {
    using type = typename append_unique<typename collect_all<typename needs<E>::type, Found>::type, E>::type;
};
template <class E, class Found>
    requires(contains<Found, E>)
struct collect<E, Found> {
    using type = Found;
};
template <class Found>
struct collect<zero_node, Found> {
    using type = Found;
};

/// Whether the iterates that are in an expression, not within another fixed point, are as wide as Width.
template <class Width, class List>
inline constexpr bool previous_have_width = true;
template <class Width, class... E>
inline constexpr bool previous_have_width<Width, type_list<E...>> = ((!is_previous<E> ||
                                                                      std::is_same_v<typename E::width, Width>)&&...);
template <class E>
inline constexpr bool is_as_wide_as_prev =
    previous_have_width<typename E::width, typename collect<E, type_list<>>::type>;

template <class E>
inline constexpr bool is_fixed_point = false;
template <class F>
inline constexpr bool is_fixed_point<fixed_point_node<F>> = true;

template <class... E>
consteval int count_fixed_points(type_list<E...>) {
    return (0 + ... + (is_fixed_point<E> ? 1 : 0));
}

template <class List>
inline constexpr bool any_in_iteration = false;
template <class... E>
inline constexpr bool any_in_iteration<type_list<E...>> =
    ((E::depends == dependence::current || E::depends == dependence::shifted) || ...);

template <class... E>
consteval bool iterate_stays_inside(type_list<E...>) {
    return ((is_fixed_point<E> || E::depends != dependence::output || !any_in_iteration<typename needs<E>::type>)&&...);
}

}  // namespace detail

/// The nodes of an expression that can be a layer: node s of graph_of<Root> is of type s in the list.
template <class Root>
struct nodes_of {
    static_assert(Root::depends == dependence::input || Root::depends == dependence::output,
                  "the expression still contains prev: wrap the iteration in fixed_point(f)");
    using types = typename detail::collect<Root, type_list<>>::type;
    static constexpr std::size_t size = length<types>;
    static_assert(detail::count_fixed_points(types{}) <= 1,
                  "one expression holds one fixed point: stack layers for several");
    static_assert(detail::count_fixed_points(types{}) > 1 || detail::iterate_stays_inside(types{}),
                  "prev stands outside of fixed_point(f): use shift(y) of y = fixed_point(f) instead");
};

}  // namespace fprnn
