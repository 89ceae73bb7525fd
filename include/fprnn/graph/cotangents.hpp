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
        bool reads = false;
        for (const slot operand : g.operands(reader)) reads = reads || operand == s;
        if (!reads) continue;
        if (g.is_iterated(reader)) return nowhere;
        if (first == nowhere || (g[first].depends == dependence::input && g[reader].depends == dependence::output))
            first = reader;
    }
    return first;
}

}  // namespace fprnn::graph
