#pragma once

#include <fprnn/expression/mixers.hpp>
#include <fprnn/ops/elementwise.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>

/// From an expression to the list of nodes that are evaluated, operands first. Trees of elementwise functions become one
/// node with a chain type; a subtree that depends on less is a node of its own, because it is evaluated less often.
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

namespace detail {

inline constexpr std::size_t no_sender = static_cast<std::size_t>(-1);

/// Of the nodes that send to one outside of the iteration, the first on the way back, all rows at once: the output's nodes
/// come first, last to first, the iteration's chunk by chunk, the input's last. `no_sender` when one of them is iterated.
consteval std::size_t first_sender(std::span<const bool> sends, std::span<const dependence> depends) {
    std::size_t first = no_sender;
    for (std::size_t i = sends.size(); i-- > 0;) {
        if (!sends[i]) continue;
        if (depends[i] != dependence::input && depends[i] != dependence::output) return no_sender;
        if (first == no_sender || (depends[first] == dependence::input && depends[i] == dependence::output)) first = i;
    }
    return first;
}
template <class E, class... C>
consteval std::size_t first_sender(type_list<C...>) {
    constexpr bool sends[] = {contains<typename needs<C>::type, E>...};
    constexpr dependence depends[] = {C::depends...};
    return first_sender(sends, depends);
}

}  // namespace detail

/// The slot of the node that is the first on the way back to send something to E, all rows at once, or detail::no_sender.
template <class Program, class E>
inline constexpr std::size_t first_sender = E::depends == dependence::input || E::depends == dependence::output
                                                ? detail::first_sender<E>(typename Program::nodes{})
                                                : detail::no_sender;

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
