#pragma once

#include <fprnn/graph/lower.hpp>
#include <fprnn/graph/node_types.hpp>
#include <fprnn/operations/attention.hpp>
#include <fprnn/operations/elementwise.hpp>
#include <fprnn/operations/leaves.hpp>
#include <fprnn/operations/linear.hpp>
#include <fprnn/operations/linear_of_parts.hpp>
#include <fprnn/operations/mixers.hpp>
#include <fprnn/operations/norms.hpp>
#include <fprnn/operations/norms_of_parts.hpp>
#include <fprnn/operations/recurrence.hpp>
#include <fprnn/operations/repeat.hpp>
#include <fprnn/operations/scan.hpp>
#include <fprnn/operations/shift.hpp>
#include <fprnn/operations/weight_normed.hpp>
#include <fprnn/recurrences/selective_scan.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

/// Which operation evaluates a node: a table for each expression, made when a program is compiled.
namespace fprnn {

namespace detail {

/// The operation of a node of type E, number S of a graph G.
template <class E, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of;
template <const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<input_node, G, S, T, Backend> : std::type_identity<operations::input<T, Backend>> {};
template <class W, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<previous_of<W>, G, S, T, Backend> : std::type_identity<operations::previous<T, Backend>> {};
template <auto Name, class W, class Init, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<parameter_node<Name, W, Init>, G, S, T, Backend>
    : std::type_identity<operations::parameter<T, Backend>> {};
template <class E, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<shift_node<E>, G, S, T, Backend> : std::type_identity<operations::shift<T, Backend>> {};
template <class W, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<shift_node<previous_of<W>>, G, S, T, Backend>
    : std::type_identity<operations::shift_of_iterate<T, Backend>> {};
template <auto Name, class E, class W, class B, class Init, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<linear_node<Name, E, W, B, Init>, G, S, T, Backend>
    : std::type_identity<operations::linear<T, Backend>> {};
template <auto Name, class E, class Parts, class W, class B, class Init, const graph::view& G, graph::slot S, class T,
          class Backend>
struct operation_of<linear_of_parts_node<Name, E, Parts, W, B, Init>, G, S, T, Backend>
    : std::type_identity<operations::linear_of_parts<T, Backend>> {};
template <class Map, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<weight_normed_node<Map>, G, S, T, Backend>
    : std::type_identity<operations::weight_normed_linear<T, Backend>> {};
template <class Lambda, class U, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<scan_node<Lambda, U>, G, S, T, Backend> : std::type_identity<operations::scan<T, Backend>> {};
template <auto Name, class Delta, class B, class C, class U, const graph::view& G, graph::slot S, class T,
          class Backend>
struct operation_of<selective_scan_node<Name, Delta, B, C, U>, G, S, T, Backend>
    : std::type_identity<operations::recur<selective_scan_recurrence, T, Backend>> {};
template <class M, auto Name, class W, class... E, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<recurrence_node<M, Name, W, E...>, G, S, T, Backend>
    : std::type_identity<operations::recur<M, T, Backend>> {};
template <positions P, class Q, class K, class V, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<attention_node<P, Q, K, V>, G, S, T, Backend>
    : std::type_identity<operations::attention<P, T, Backend>> {};
template <class Function, auto Name, class E, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<norm_node<Function, Name, E>, G, S, T, Backend>
    : std::type_identity<operations::norm<Function, T, Backend>> {};
template <class E, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<l2_normalise_node<E>, G, S, T, Backend> : std::type_identity<operations::l2_normalise<T, Backend>> {
};
template <class Function, auto Name, class E, class Part, class Weights, const graph::view& G, graph::slot S, class T,
          class Backend>
struct operation_of<norm_node<Function, Name, E, Part, Weights>, G, S, T, Backend>
    : std::type_identity<operations::norm_of_parts<Function, T, Backend>> {};
template <class E, class Part, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<l2_normalise_node<E, Part>, G, S, T, Backend>
    : std::type_identity<operations::l2_normalise_parts<T, Backend>> {};
template <class E, class Times, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<repeat_node<E, Times>, G, S, T, Backend>
    : std::type_identity<operations::repeat_or_sum<false, T, Backend>> {};
template <class E, class W, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<sum_parts_node<E, W>, G, S, T, Backend>
    : std::type_identity<operations::repeat_or_sum<true, T, Backend>> {};
template <class M, class... Maps, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<prepared_node<mixer_node<M, Maps...>>, G, S, T, Backend>
    : std::type_identity<operations::prepared_mixer<M, sizeof...(Maps), T, Backend>> {};
template <class Q, class V, class W, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<mix_node<Q, V, W>, G, S, T, Backend>
    : std::type_identity<operations::mix<typename Q::mixer_type, T, Backend>> {};
template <class F, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<fixed_point_node<F>, G, S, T, Backend> : std::type_identity<operations::fixed_point<T, Backend>> {};

/// As Operation<Functor, Numbers...>. A functor is taken apart, because nvcc spells a type in its kernels by
/// the alias that named it, here chain_functor<E> with all names of the expression.
template <class Functor>
struct functor_apart;
template <template <class...> class F, class... A>
struct functor_apart<F<A...>> {
    template <const graph::view& G, graph::slot S, class T, class Backend, std::size_t... k>
    static operations::elementwise<F<A...>, T, Backend, (G[G.operand(S, k)].overwritten_by == S)...> elementwise(
        std::index_sequence<k...>);
};
template <template <class...> class F, class... E, const graph::view& G, graph::slot S, class T, class Backend>
struct operation_of<elementwise_node<F, E...>, G, S, T, Backend> {
    using type =
        decltype(functor_apart<chain_functor<elementwise_node<F, E...>>>::template elementwise<G, S, T, Backend>(
            std::make_index_sequence<G[S].operands>()));
};

}  // namespace detail

/// How the expressions of a backend are planned that says nothing of it (Backend::planning).
struct plain_planning {
    /// The operation of node S of an expression, which is of type E.
    template <class Root, class E, graph::slot S, class T, class Backend>
    static constexpr auto operation() {
        return typename detail::operation_of<E, graph::view_of<Root>, S, T, Backend>::type();
    }
    /// Whether a node is evaluated before others that depend on as much.
    static constexpr bool comes_first(const graph::view&, graph::slot) { return false; }
    /// Errors: a way to solve, or lengths of sequences, that the backend does not have.
    template <class Solving, class Lengths>
    static void check(const Solving&, const Lengths&) {}
};

namespace detail {

template <class Backend>
struct planning_of : std::type_identity<plain_planning> {};
template <class Backend>
    requires requires { typename Backend::planning; }
struct planning_of<Backend> : std::type_identity<typename Backend::planning> {};

/// Of an operation that knows which node it is for, an object for each; of others one for all.
template <class Root, class E, graph::slot S, class T, class Backend>
consteval auto operation_at() {
    return planning_of<Backend>::type::template operation<Root, E, S, T, Backend>();
}
template <class Root, class E, graph::slot S, class T, class Backend, bool Adjoint>
inline constexpr auto object_at = operation_object<decltype(operation_at<Root, E, S, T, Backend>()), T, Backend,
                                                   Adjoint>(operation_at<Root, E, S, T, Backend>());
template <class Root, class E, graph::slot S, class T, class Backend, bool Adjoint>
consteval const operation<T, Backend>* find_operation() {
    using type = decltype(operation_at<Root, E, S, T, Backend>());
    if constexpr (std::is_empty_v<type>)
        return &instance<operation_object<type, T, Backend, Adjoint>>;
    else
        return &object_at<Root, E, S, T, Backend, Adjoint>;
}
template <class Root, class T, class Backend, bool Adjoint, class... E, std::size_t... s>
consteval auto table_of(type_list<E...>, std::index_sequence<s...>) {
    return std::array<const operation<T, Backend>*, sizeof...(E)>{find_operation<Root, E, s, T, Backend, Adjoint>()...};
}

/// Nodes that depend in one of the ways, those that come first before the others.
template <std::size_t N>
struct slots {
    std::array<graph::slot, N> at{};
    std::size_t count = 0;

    constexpr operator std::span<const graph::slot>() const { return {at.data(), count}; }
};
template <class Root, class Backend>
consteval auto slots_that_depend(std::size_t stage, dependence first, dependence last) {
    using planning = typename planning_of<Backend>::type;
    constexpr const graph::view& g = graph::view_of<Root>;
    slots<g.size()> found;
    for (const bool comes_first : {true, false})
        for (graph::slot s = 0; s < g.size(); ++s)
            if (g[s].stage == stage && first <= g[s].depends && g[s].depends <= last &&
                planning::comes_first(g, s) == comes_first)
                found.at[found.count++] = s;
    return found;
}

}  // namespace detail

/// The operations of an expression's nodes, with their adjoints or without.
template <class Root, class T, class Backend, bool Adjoint>
inline constexpr auto operations_of = detail::table_of<Root, T, Backend, Adjoint>(
    types_by_slot<Root>(), std::make_index_sequence<graph::view_of<Root>.size()>());

/// Nodes of a stage of an expression that depend in one of the ways from First to Last, in the order in which
/// they are evaluated.
template <class Root, class Backend, std::size_t Stage, dependence First, dependence Last = First>
inline constexpr auto slots_of = detail::slots_that_depend<Root, Backend>(Stage, First, Last);

}  // namespace fprnn
