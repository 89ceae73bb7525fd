#pragma once

#include <fprnn/cuda/device.hpp>
#include <fprnn/cuda/joint_product.hpp>
#include <fprnn/cuda/scan_chains.hpp>
#include <fprnn/cuda/scan_operations.hpp>
#include <fprnn/operations/table.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

/// How a device's expressions are planned: chains in scans, one product for all maps of y_{t−1}, and products
/// side by side.
namespace fprnn::cuda::detail {

/// The chain of node E, number S, in a scan.
template <class E, const graph::view& G, slot Scan, slot S>
struct chain_of {
    static constexpr bool goes_back = goes_back_with(G, Scan, S);

    // Functors are taken apart for nvcc, as in fprnn/operations/table.hpp.
    template <template <class...> class F, class... A, std::size_t... k>
    static constexpr auto in_scan(std::type_identity<F<A...>>, std::index_sequence<k...>) {
        return chain_in_scan<F<A...>, goes_back,
                             std::integer_sequence<bool, (G[G.operand(S, k)].overwritten_by == S)...>,
                             operand_of(G, Scan, G.operand(S, k))...>{S};
    }
    template <template <class...> class F, class... A, class T, class Backend, bool... Overwrites>
    static constexpr auto with_scan(const operations::elementwise<F<A...>, T, Backend, Overwrites...>&) {
        return chain_with_scan<F<A...>, T, Backend, Overwrites...>(Scan, goes_back);
    }
};
template <class Root, slot Scan, slot S>
constexpr auto chain_in_scan_of() {
    if constexpr (S == nowhere) {
        return no_chain_in_scan();
    } else {
        using E = node_at<types_by_slot<Root>, S>;
        return chain_of<E, graph::view_of<Root>, Scan, S>::in_scan(
            std::type_identity<chain_functor<E>>(), std::make_index_sequence<graph::view_of<Root>[S].operands>());
    }
}

struct device_planning {
    template <class Root, class E, slot S, class T, class Backend>
    static constexpr auto operation() {
        constexpr const graph::view& g = graph::view_of<Root>;
        constexpr auto alone = plain_planning::operation<Root, E, S, T, Backend>();
        if constexpr (is_selective_scan(g, S)) {
            constexpr slot before = chain_before(g, S), behind = chain_behind(g, S);
            if constexpr (before == nowhere && behind == nowhere)
                return alone;
            else
                return in_chains<T, Backend>(chain_in_scan_of<Root, S, before>(), chain_in_scan_of<Root, S, behind>());
        } else if constexpr (g[S].what == graph::kind::elementwise) {
            constexpr slot scan = scan_of_chain(g, S);
            if constexpr (scan == nowhere)
                return alone;
            else
                return chain_of<E, graph::view_of<Root>, scan, S>::with_scan(alone);
        } else if constexpr (is_joint(g, S)) {
            return joint_product<T, Backend>();
        } else {
            return alone;
        }
    }
    static constexpr bool comes_first(const graph::view& g, slot s) { return is_early(g, s); }
    template <class Solving, class Lengths>
    static void check(const Solving& by, const Lengths& n) {
        require(!by.is_for_the_host(), "layer", [] {
            return std::string(
                "solvers, stops and adjoints of one's own, Anderson's among them, and shares of a batch are the CPU's; "
                "expected picard or damped, residual and iterations on a device");
        });
        require(n.empty(), "layer", [] {
            return std::string("sequences of unequal lengths are the CPU's; expected no lengths on a device");
        });
    }

private:
    template <class T, class Backend, class Before, class Behind>
    static constexpr auto in_chains(Before before, Behind behind) {
        return scan_with_chains<T, Backend, Before, Behind>(before, behind);
    }
};

}  // namespace fprnn::cuda::detail
