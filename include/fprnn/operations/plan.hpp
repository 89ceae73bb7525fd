#pragma once

#include <fprnn/graph/node.hpp>
#include <fprnn/graph/reduce.hpp>
#include <fprnn/operations/operation.hpp>

#include <cstddef>
#include <span>

namespace fprnn {

namespace engine {
template <class T, class Backend>
struct token_reduction;
}

/// A fixed point as the engine solves it, and what is evaluated before it and after the one before. Behind
/// the last of them is a stage without a fixed point.
template <class T, class Backend>
struct stage : graph::stage {
    /// Nodes in the order of evaluation: those before the iteration, for all tokens; those that depend on the
    /// iterate in one way, and in either.
    std::span<const graph::slot> outside, shifted, current, iterated;
    /// How one-token chunks are solved in R numbers, null where they are not, and between which nodes.
    const engine::token_reduction<T, Backend>* reduction = nullptr;
    graph::reduction reduced{};
    /// Whether the innermost loop of a one-token chunk works on every row by itself; a linear map of prev
    /// needs them all.
    bool rows_are_independent = true;
    /// Whether a one-token chunk is its own fixed point once it has been evaluated, because nothing in it
    /// sees y_t^{ℓ−1}.
    bool tokens_are_explicit = true;

    constexpr bool has_fixed_point() const { return this->fixed_point != graph::nowhere; }
};

/// An expression as the engine executes it on a backend, with numbers T: made by plan_of, when a program is
/// compiled.
template <class T, class Backend>
struct plan {
    graph::view nodes;
    std::span<const operation<T, Backend>* const> operations;  ///< of the nodes
    std::span<const stage<T, Backend>> stages;                 ///< one more than fixed points

    constexpr std::size_t fixed_points() const { return stages.size() - 1; }
    constexpr bool has_fixed_point() const { return fixed_points() > 0; }
};

}  // namespace fprnn
