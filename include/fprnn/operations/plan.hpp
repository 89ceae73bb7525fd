#pragma once

#include <fprnn/graph/node.hpp>
#include <fprnn/graph/reduce.hpp>
#include <fprnn/operations/operation.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace fprnn {

namespace engine {
template <class T, class Backend>
struct token_reduction;
}

/// An expression as the engine executes it on a backend, with numbers T: made by plan_of, when a program is compiled.
template <class T, class Backend>
struct plan {
    graph::view nodes;
    std::span<const operation<T, Backend>* const> operations;  ///< of the nodes
    /// Nodes that depend in one way, in the order of evaluation; and those that depend on the iterate in either.
    std::array<std::span<const graph::slot>, 4> order;
    std::span<const graph::slot> iterated;
    /// How one-token chunks are solved in R numbers, null where they are not, and between which nodes.
    const engine::token_reduction<T, Backend>* reduction = nullptr;
    graph::reduction reduced{};
    /// Whether the innermost loop of a one-token chunk works on every row by itself; a linear map of prev needs them all.
    bool rows_are_independent = true;
    /// Whether a one-token chunk is its own fixed point once it has been evaluated, because nothing in it sees y_t^{ℓ−1}.
    bool tokens_are_explicit = true;

    constexpr std::span<const graph::slot> that_depend(dependence d) const {
        return order[static_cast<std::size_t>(d)];
    }
    constexpr bool has_fixed_point() const { return nodes.fixed_point != graph::nowhere; }
};

}  // namespace fprnn
