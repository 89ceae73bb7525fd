#pragma once

#include <fprnn/graph/node.hpp>

/// In which order adjoints write to the cotangents of a node.
namespace fprnn::graph {

/// The node whose adjoint is the first to write to the cotangents of node s, all rows at once: the backward pass takes the output's
/// nodes first, last to first, then the iteration's, chunk by chunk, and the input's last. `nowhere` where s is iterated or one of
/// its readers is.
constexpr slot first_writer(const view& g, slot s) {
    if (g.is_iterated(s)) return nowhere;
    slot first = nowhere;
    for (slot reader = g.size(); reader-- > 0;) {
        if (!g.reads(reader, s)) continue;
        if (g.is_iterated(reader)) return nowhere;
        if (first == nowhere || (g[first].depends == dependence::input && g[reader].depends == dependence::output))
            first = reader;
    }
    return first;
}

/// Whether the adjoint of `writer` can overwrite the cotangents of its operand s instead of adding to them.
constexpr bool can_overwrite(const view& g, slot writer, slot s) {
    if (g[writer].what == kind::elementwise) return true;
    if (g[writer].what != kind::linear || g.is_iterated(writer)) return false;
    int times = 0;
    for (const slot operand : g.operands(writer)) times += operand == s;
    return times == 1;
}

/// The node whose adjoint overwrites the cotangents of node s, which then need not be cleared; `nowhere` where all of them add. Those of a
/// vector that all tokens share are sums and never overwritten.
constexpr slot overwriter(const view& g, slot s) {
    if (g[s].shared) return nowhere;
    const slot first = first_writer(g, s);
    return first != nowhere && can_overwrite(g, first, s) ? first : nowhere;
}

}  // namespace fprnn::graph
