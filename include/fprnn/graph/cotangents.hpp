#pragma once

#include <fprnn/graph/node.hpp>

#include <array>
#include <cstddef>

/// In which order adjoints write to the cotangents of a node.
namespace fprnn::graph {

/// Whether the adjoint of `writer` can overwrite the cotangents of its operand s instead of adding to them.
constexpr bool can_overwrite(const view& g, slot writer, slot s) {
    if (g[writer].what == kind::elementwise) return true;
    if (g[writer].what != kind::linear || g.is_iterated(writer)) return false;
    int times = 0;
    for (const slot operand : g.operands(writer)) times += operand == s;
    return times == 1;
}

/// For each of N nodes the node whose adjoint overwrites its cotangents, which then need not be cleared;
/// `nowhere` where all adjoints add. It is the first that writes to all rows at once: the backward pass takes
/// the nodes behind the last fixed point first, last to first, then that fixed point's, chunk by chunk, then
/// the nodes before it, and so on. Cotangents of a vector that all tokens share are sums, and those of or
/// from an iteration are added chunk by chunk. One sweep over the edges, because compilers bound the steps of
/// a constant expression.
template <std::size_t N>
constexpr std::array<slot, N> overwriters(const view& g) {
    std::array<slot, N> first{};
    std::array<bool, N> only_added{};
    first.fill(nowhere);
    for (slot reader = N; reader-- > 0;)
        for (const slot s : g.operands(reader)) {
            if (s == nowhere) continue;
            only_added[s] = only_added[s] || g.is_iterated(reader);
            if (first[s] == nowhere || g[first[s]].stage < g[reader].stage) first[s] = reader;
        }
    for (slot s = 0; s < N; ++s)
        if (first[s] != nowhere && (only_added[s] || g.is_iterated(s) || g[s].shared || !can_overwrite(g, first[s], s)))
            first[s] = nowhere;
    return first;
}

}  // namespace fprnn::graph
