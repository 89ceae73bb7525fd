#pragma once

#include <fprnn/ops/scan_chain.hpp>
#include <fprnn/program/frame.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

/// Elementwise chains that a device evaluates where it scans, and goes back through there: what Δ is made of before a selective scan, softplus say, and one chain of its
/// values behind it, such as a skip and a gate, SiLU(z) ⊙ (S + D ⊙ u). It has these numbers at hand there.
namespace fprnn {

namespace detail {

/// Rows that a scan reads ahead for its step, and for the chain behind it beside its own: more are not worth their registers.
inline constexpr int most_rows_of_step = 1, most_rows_behind = 2;

template <class E>
struct operands_of_scan {
    using step = void;
    using input = void;
};
template <auto Name, class Delta, class B, class C, class U>
struct operands_of_scan<selective_scan_node<Name, Delta, B, C, U>> {
    using step = Delta;
    using input = U;
};
template <class E>
struct is_selective_scan : std::bool_constant<!std::is_void_v<typename operands_of_scan<E>::step>> {};

/// Where a device has E when it scans.
template <class Scan, class E>
consteval kernel::operand operand_of() {
    if (std::same_as<E, Scan>) return kernel::operand::scan;
    if (std::same_as<E, typename operands_of_scan<Scan>::input>) return kernel::operand::input;
    return rule<E>::broadcast ? kernel::operand::vector : kernel::operand::rows;
}

/// Whether E has been evaluated when Scan is.
template <class Program, class Scan, class E>
inline constexpr bool is_before = rule<E>::broadcast || E::depends < Scan::depends ||
                                  (E::depends == Scan::depends &&
                                   Program::template slot<E> < Program::template slot<Scan>);

template <class Program, class Scan, int Most, class... A>
consteval bool are_at_hand(type_list<A...>) {
    return ((std::same_as<A, Scan> || is_before<Program, Scan, A>)&&...) &&
           (0 + ... + (operand_of<Scan, A>() == kernel::operand::rows ? 1 : 0)) <= Most;
}
/// How often E is an operand.
template <class E, class... Nodes>
consteval std::size_t reads(type_list<Nodes...>) {
    return (0 + ... + occurrences<typename needs<Nodes>::type, E>);
}

/// Whether E is evaluated as often as Scan, but for chunks of one token, where scans are opened.
template <class E, class Scan>
inline constexpr bool as_often = E::depends == Scan::depends ||
                                 (E::depends == dependence::shifted && Scan::depends == dependence::current);

template <class Program, class Scan, class E>
inline constexpr bool may_precede = false;
template <class Program, class Scan, template <class...> class G, class... E>
inline constexpr bool may_precede<Program, Scan, elementwise_node<G, E...>> = [] {
    using node = elementwise_node<G, E...>;
    return as_often<node, Scan> && reads<node>(typename Program::nodes{}) == 1 &&
           are_at_hand<Program, Scan, most_rows_of_step>(chain_arguments<node>{});
}();

template <class Program, class Scan, class E>
inline constexpr bool may_follow = false;
template <class Program, class Scan, template <class...> class G, class... E>
inline constexpr bool may_follow<Program, Scan, elementwise_node<G, E...>> = [] {
    using node = elementwise_node<G, E...>;
    return contains<chain_arguments<node>, Scan> &&
           are_at_hand<Program, Scan, most_rows_behind>(chain_arguments<node>{});
}();

template <class Program, class Scan, class Nodes>
struct first_behind {
    using type = void;
};
template <class Program, class Scan, class E, class... Rest>
struct first_behind<Program, Scan, type_list<E, Rest...>>
    : std::conditional_t<may_follow<Program, Scan, E>, std::type_identity<E>,
                         first_behind<Program, Scan, type_list<Rest...>>> {};

template <class Program>
using scans_of = fprnn::only<typename Program::nodes, is_selective_scan>;

template <class Program, class Scan>
using chain_behind = typename first_behind<Program, Scan, typename Program::nodes>::type;

template <class Program, class E, class... S>
consteval bool is_behind_a_scan(type_list<S...>) {
    return (std::same_as<chain_behind<Program, S>, E> || ...);
}
template <class Program, class Scan, class Step = typename operands_of_scan<Scan>::step>
using chain_before =
    std::conditional_t<may_precede<Program, Scan, Step> && !is_behind_a_scan<Program, Step>(scans_of<Program>{}), Step,
                       void>;

template <class Program, class E, class Scans = scans_of<Program>>
struct scan_of_chain {
    using type = void;
};
template <class Program, class E, class S, class... Rest>
struct scan_of_chain<Program, E, type_list<S, Rest...>>
    : std::conditional_t<std::same_as<chain_behind<Program, S>, E> || std::same_as<chain_before<Program, S>, E>,
                         std::type_identity<S>, scan_of_chain<Program, E, type_list<Rest...>>> {};

/// The slot in whose turn a pass that goes back through chains with their scans goes back through E.
template <class Program, class E, class Scan = typename scan_of_chain<Program, E>::type>
inline constexpr std::size_t turn_of = Program::template slot<Scan>;
template <class Program, class E>
inline constexpr std::size_t turn_of<Program, E, void> = Program::template slot<E>;

/// Whether E may send to A in Scan's turn. Of those who send in the turns between, who stores has to be the first; and A itself, where it goes
/// back in the same sweep over the nodes, must not have had its own.
template <class Program, class Scan, class E, class A, class... C>
consteval bool may_send_in_turn_of(type_list<C...>) {
    constexpr std::size_t e = Program::template slot<E>, scan = Program::template slot<Scan>;
    constexpr std::size_t first = std::min(e, scan), last = std::max(e, scan);
    const auto between = [](std::size_t turn) { return first < turn && turn < last; };
    const bool is_iterated = A::depends == dependence::shifted || A::depends == dependence::current;
    return !(is_iterated && between(Program::template slot<A>)) &&
           ((!(between(Program::template slot<C>) || between(turn_of<Program, C>)) ||
             !contains<typename needs<C>::type, A> || (!stores<Program, E, A> && !stores<Program, C, A>)) &&
            ...);
}
template <class Program, class Scan, class E, class... A>
consteval bool may_go_back_in_turn_of(type_list<A...>) {
    return (may_send_in_turn_of<Program, Scan, E, A>(typename Program::nodes{}) && ...);
}

/// What works in tiles evaluates no chains in scans.
template <class F, class E>
using on_a_device = std::conditional_t<has_tiles<typename F::backend>, void, E>;

}  // namespace detail

/// The chain of a scan's values that a device evaluates with it, or void: the first of them.
template <class F, class Scan>
using chain_behind = detail::on_a_device<F, detail::chain_behind<typename F::program, Scan>>;

/// The chain of its Δ, which nobody else reads or evaluates, or void.
template <class F, class Scan>
using chain_before = detail::on_a_device<F, detail::chain_before<typename F::program, Scan>>;

/// The scan with which a device evaluates the elementwise node E, or void.
template <class F, class E>
using scan_of_chain = detail::on_a_device<F, typename detail::scan_of_chain<typename F::program, E>::type>;

/// Whether a pass that reaches Reach goes back through E, a chain of Scan, with it. The innermost loop, of one token, does so node by node.
template <class F, class Scan, class E, dependence Reach>
consteval bool goes_back_in_scan() {
    if constexpr (std::is_void_v<E> || std::is_void_v<Scan> || Reach == dependence::current)
        return false;
    else
        return detail::may_go_back_in_turn_of<typename F::program, Scan, E>(chain_arguments<E>{});
}

namespace detail {

// Functors are taken apart for nvcc, as in the rule of elementwise nodes.
template <class Scan, class E, class F, class... A, template <class...> class Functor, class... Arguments>
auto chain_in_scan(const F& f, index row, type_list<A...>, Functor<Arguments...>) {
    using T = typename F::scalar;
    return kernel::chain_of_scan<Functor<Arguments...>, T, operand_of<Scan, A>()...>{{{f.template values<A>(row)...}},
                                                                                     f.template values<E>(row)};
}

}  // namespace detail

/// E, which is chain_before or chain_behind of Scan, from `row` on. The value of the chain behind has other readers; Δ has them on the way
/// back alone, so that it is not stored on the way there.
template <class Scan, class E, class F>
auto chain_in_scan(const F& f, index row) {
    if constexpr (std::is_void_v<E>) {
        return kernel::no_chain<typename F::scalar>();
    } else {
        auto chain = detail::chain_in_scan<Scan, E>(f, row, chain_arguments<E>{}, chain_functor<E>{});
        chain.is_read = std::same_as<E, chain_behind<F, Scan>> || f.phase != pass::forward;
        return chain;
    }
}

namespace detail {

template <class Scan, class E, dependence Reach, class F, class Call, class... A, template <class...> class Functor,
          class... Arguments>
void chain_back_in_scan(const F& f, index row, const Call& call, type_list<A...>, Functor<Arguments...>) {
    using T = typename F::scalar;
    using storing = std::integer_sequence<bool, stores<typename F::program, E, A>...>;
    const auto send = [&](auto... to) {
        call(kernel::chain_of_scan_back<Functor<Arguments...>, T, storing, operand_of<Scan, A>()...>{
            {{f.template values<A>(row)...}}, f.template bars<E>(row), {to.into...}});
        (to.finish(), ...);
    };
    send(f.template bars_within<A, Reach>(row, f.tile)...);
}

}  // namespace detail

/// Calls call(chain) with the adjoint of E, a chain of Scan, from `row` on, where that is gone back through with the scan.
template <class Scan, class E, dependence Reach, class F, class Call>
void with_chain_back(const F& f, index row, const Call& call) {
    if constexpr (goes_back_in_scan<F, Scan, E, Reach>())
        detail::chain_back_in_scan<Scan, E, Reach>(f, row, call, chain_arguments<E>{}, chain_functor<E>{});
    else
        call(kernel::no_chain<typename F::scalar>());
}

}  // namespace fprnn
