#pragma once

#include <fprnn/expression/mixers.hpp>
#include <fprnn/graph/chains.hpp>
#include <fprnn/graph/lower.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

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

template <class E>
inline constexpr bool is_fixed_point = false;
template <class F>
inline constexpr bool is_fixed_point<fixed_point_node<F>> = true;
template <class E>
using is_fixed_point_type = std::bool_constant<is_fixed_point<E>>;

template <class... E>
consteval int count_fixed_points(type_list<E...>) {
    return (0 + ... + (is_fixed_point<E> ? 1 : 0));
}

/// Whether the iterates in a list are as wide as Width.
template <class Width, class List>
inline constexpr bool previous_have_width = true;
template <class Width, class... E>
inline constexpr bool previous_have_width<Width, type_list<E...>> = ((!is_previous<E> ||
                                                                      std::is_same_v<typename E::width, Width>)&&...);
/// The same of those of f = E. Fixed points in it have iterates of their own: they count as found, and
/// nothing in them is looked at.
template <class E>
consteval bool is_as_wide_as_prev() {
    using width = typename E::width;
    using all = typename collect<E, type_list<>>::type;
    if constexpr (count_fixed_points(all{}) == 0)
        return previous_have_width<width, all>;
    else
        return previous_have_width<width, typename collect<E, fprnn::only<all, is_fixed_point_type>>::type>;
}

}  // namespace detail

/// The types of the nodes of an expression that can be a layer, each once.
template <class Root>
struct nodes_of {
    using types = typename detail::collect<Root, type_list<>>::type;
    static constexpr std::size_t size = length<types>;
    static constexpr bool is_closed = Root::depends < dependence::shifted;
    static_assert(is_closed || detail::count_fixed_points(types{}) > 0,
                  "the expression still contains prev: wrap the iteration in fixed_point(f)");
    static_assert(is_closed || detail::count_fixed_points(types{}) == 0,
                  "prev stands outside of fixed_point(f): use shift(y) of y = fixed_point(f) instead");
};

namespace detail {

/// Node s of graph_of<Root> is of type s in the list: one that is iterated in several fixed points is as many
/// nodes.
template <class Root>
consteval auto list_by_slot() {
    using types = typename nodes_of<Root>::types;
    constexpr const graph::view& g = graph::view_of<Root>;
    if constexpr (g.size() == length<types>)
        return types();
    else
        return []<std::size_t... s>(std::index_sequence<s...>) {
            return type_list<fprnn::node_at<types, graph::view_of<Root>.place_of_type(s)>...>();
        }
    (std::make_index_sequence<g.size()>());
}

}  // namespace detail

template <class Root>
using types_by_slot = decltype(detail::list_by_slot<Root>());

}  // namespace fprnn
