#pragma once

#include <fprnn/expression/mixers.hpp>
#include <fprnn/graph/chains.hpp>
#include <fprnn/graph/cotangents.hpp>
#include <fprnn/graph/lower.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

/// From an expression to the list of nodes that are evaluated, operands first.
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

template <class List>
struct find_fixed_point;
template <>
struct find_fixed_point<type_list<>> {
    using type = void;
};
template <class E, class... Rest>
struct find_fixed_point<type_list<E, Rest...>> {
    using type = std::conditional_t<is_fixed_point<E>, E, typename find_fixed_point<type_list<Rest...>>::type>;
};

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

/// What evaluates an expression: its nodes in order, and which of them is the fixed point (void when there is none).
template <class Root>
struct program {
    static_assert(Root::depends == dependence::input || Root::depends == dependence::output,
                  "the expression still contains prev: wrap the iteration in fixed_point(f)");
    using root = Root;
    using nodes = typename detail::collect<Root, type_list<>>::type;
    using fixed_point = typename detail::find_fixed_point<nodes>::type;
    static constexpr std::size_t size = length<nodes>;
    static_assert(detail::count_fixed_points(nodes{}) <= 1,
                  "one expression holds one fixed point: stack layers for several");
    static_assert(detail::count_fixed_points(nodes{}) > 1 || detail::iterate_stays_inside(nodes{}),
                  "prev stands outside of fixed_point(f): use shift(y) of y = fixed_point(f) instead");

    template <class E>
    static constexpr std::size_t slot = position<nodes, E>;
};

namespace detail {

template <dependence First, dependence Last>
struct dependence_within {
    template <class E>
    struct of : std::bool_constant<First <= E::depends && E::depends <= Last> {};
};

}  // namespace detail

/// A program's nodes whose dependence is First to Last, in their order.
template <class Program, dependence First, dependence Last = First>
using nodes_that_depend = only<typename Program::nodes, detail::dependence_within<First, Last>::template of>;

/// The slot of the node whose adjoint is the first to write to E's cotangents, all rows at once, or graph::nowhere.
template <class Program, class E>
inline constexpr std::size_t first_writer = graph::first_writer(graph::graph_of<typename Program::root>,
                                                                Program::template slot<E>);

/// Calls `f.template operator()<E>()` for every node of a list, first to last or last to first.
template <class... E, class F>
constexpr void for_each_node(type_list<E...>, F&& f) {
    (f.template operator()<E>(), ...);
}
template <class... E, class F>
constexpr void for_each_node_reversed(type_list<E...>, F&& f) {
    [[maybe_unused]] int order = 0;
    // The operands of an assignment are evaluated from right to left.
    ((f.template operator()<E>(), order) = ... = 0);
}

}  // namespace fprnn
