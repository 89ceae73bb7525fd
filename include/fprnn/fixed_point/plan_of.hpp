#pragma once

#include <fprnn/fixed_point/reduce.hpp>
#include <fprnn/operations/table.hpp>

#include <array>
#include <cstddef>
#include <utility>

/// From an expression to what the engine executes.
namespace fprnn {

namespace detail {

template <class Root, class T, class Backend, bool Adjoint, std::size_t K>
consteval stage<T, Backend> make_stage() {
    using enum dependence;
    constexpr const graph::view& g = graph::view_of<Root>;
    stage<T, Backend> its;
    its.outside = slots_of<Root, Backend, K, input, output>;
    if constexpr (K < g.stages.size()) {
        static_cast<graph::stage&>(its) = g.stages[K];
        its.shifted = slots_of<Root, Backend, K, shifted>;
        its.current = slots_of<Root, Backend, K, current>;
        its.iterated = slots_of<Root, Backend, K, shifted, current>;
        its.reduction = engine::reduction_of<Root, T, Backend, Adjoint, K>();
        its.reduced = graph::reduce(g, K);
    }
    for (const graph::slot s : its.current) {
        const bool is_product = g[s].what == graph::kind::linear || g[s].what == graph::kind::linear_of_parts;
        its.rows_are_independent = its.rows_are_independent && !is_product;
        its.tokens_are_explicit = its.tokens_are_explicit && g[s].what == graph::kind::previous;
    }
    return its;
}
template <class Root, class T, class Backend, bool Adjoint, std::size_t... k>
consteval auto make_stages(std::index_sequence<k...>) {
    return std::array<stage<T, Backend>, sizeof...(k)>{make_stage<Root, T, Backend, Adjoint, k>()...};
}
template <class Root, class T, class Backend, bool Adjoint>
inline constexpr auto stages_of =
    make_stages<Root, T, Backend, Adjoint>(std::make_index_sequence<graph::view_of<Root>.stages.size() + 1>());

}  // namespace detail

/// A plan without adjoints is one for forward passes.
template <class Root, class T, class Backend, bool Adjoint = true>
inline constexpr plan<T, Backend> plan_of{.nodes = graph::view_of<Root>,
                                          .operations = operations_of<Root, T, Backend, Adjoint>,
                                          .stages = detail::stages_of<Root, T, Backend, Adjoint>};

}  // namespace fprnn
