#pragma once

#include <fprnn/program/frame.hpp>

#include <concepts>
#include <type_traits>

/// S + D ⊙ u of a selective scan S of u and a vector D that all tokens share. A device forms it where it scans: it has u and y at hand there.
namespace fprnn {

namespace detail {

struct no_skip {
    using scan = void;
    using by = void;
};
template <class Scan, class D>
struct skip_by {
    using scan = Scan;
    using by = D;
};
template <int I, int J>
using sum_with_product = chain::add<chain::argument<0>, chain::multiply<chain::argument<I>, chain::argument<J>>>;

template <class Functor, class Arguments>
struct skip_of_chain : no_skip {};
template <auto Name, class Delta, class B, class C, class U, class D>
    requires(rule<D>::broadcast)
struct skip_of_chain<sum_with_product<1, 2>, type_list<selective_scan_node<Name, Delta, B, C, U>, D, U>>
    : skip_by<selective_scan_node<Name, Delta, B, C, U>, D> {};
template <auto Name, class Delta, class B, class C, class U, class D>
    requires(rule<D>::broadcast)
struct skip_of_chain<sum_with_product<1, 2>, type_list<selective_scan_node<Name, Delta, B, C, U>, U, D>>
    : skip_by<selective_scan_node<Name, Delta, B, C, U>, D> {};

}  // namespace detail

/// `scan` is S, void where E is no such sum, and `by` is D.
template <class E>
struct skip : detail::no_skip {};
template <template <class...> class G, class... E>
struct skip<elementwise_node<G, E...>>
    : detail::skip_of_chain<chain_functor<elementwise_node<G, E...>>, chain_arguments<elementwise_node<G, E...>>> {};

namespace detail {
template <class Scan, class Nodes>
struct first_sum {
    using type = void;
};
template <class Scan, class E, class... Rest>
struct first_sum<Scan, type_list<E, Rest...>>
    : std::conditional_t<std::same_as<typename skip<E>::scan, Scan>, std::type_identity<E>,
                         first_sum<Scan, type_list<Rest...>>> {};
}  // namespace detail

/// The sum that a device forms together with `Scan`, or void.
template <class F, class Scan>
using sum_of_scan = typename std::conditional_t<has_tiles<typename F::backend>, detail::first_sum<Scan, type_list<>>,
                                                detail::first_sum<Scan, typename F::program::nodes>>::type;

/// Whether E is that sum of a scan.
template <class F, class E>
inline constexpr bool is_formed_by_scan = []<class Scan>(std::type_identity<Scan>) {
    if constexpr (std::is_void_v<Scan>)
        return false;
    else
        return std::same_as<sum_of_scan<F, Scan>, E>;
}(std::type_identity<typename skip<E>::scan>{});

}  // namespace fprnn
