#pragma once

#include <fprnn/fixed_point/reduce.hpp>
#include <fprnn/operations/table.hpp>

/// From an expression to what the engine executes.
namespace fprnn {

namespace detail {

template <class Root, class T, class Backend, bool Adjoint>
consteval plan<T, Backend> make_plan() {
    using enum dependence;
    constexpr const graph::view& g = graph::view_of<Root>;
    plan<T, Backend> p{.nodes = g,
                       .operations = operations_of<Root, T, Backend, Adjoint>,
                       .order = {slots_of<Root, Backend, input>, slots_of<Root, Backend, shifted>,
                                 slots_of<Root, Backend, current>, slots_of<Root, Backend, output>},
                       .iterated = slots_of<Root, Backend, shifted, current>,
                       .reduction = engine::reduction_of<Root, T, Backend, Adjoint>(),
                       .reduced = graph::reduce(g)};
    for (const graph::node& n : g.nodes) {
        if (n.depends != current) continue;
        p.rows_are_independent = p.rows_are_independent && n.what != graph::kind::linear;
        p.tokens_are_explicit = p.tokens_are_explicit && n.what == graph::kind::previous;
    }
    return p;
}

}  // namespace detail

/// A plan without adjoints is one for forward passes.
template <class Root, class T, class Backend, bool Adjoint = true>
inline constexpr plan<T, Backend> plan_of = detail::make_plan<Root, T, Backend, Adjoint>();

}  // namespace fprnn
