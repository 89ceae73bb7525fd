#pragma once

#include <fprnn/cuda/scan_chain.hpp>
#include <fprnn/graph/node.hpp>

#include <algorithm>

/// Elementwise chains of a graph that a device evaluates where it scans, and differentiates there: what Δ is
/// made of before a selective scan, softplus say, and one chain of its values behind it, such as a skip and a
/// gate, SiLU(z) ⊙ (S + D ⊙ u). It has these numbers at hand there.
namespace fprnn::cuda::detail {

using graph::slot, graph::nowhere;

/// Rows that a scan reads ahead for its step, and for the chain behind it beside its own: more are not worth
/// their registers.
inline constexpr int most_rows_of_step = 1, most_rows_behind = 2;

constexpr bool is_selective_scan(const graph::view& g, slot s) { return g[s].what == graph::kind::selective_scan; }
constexpr slot delta_of(const graph::view& g, slot scan) { return g.operand(scan, 0); }
constexpr slot input_of(const graph::view& g, slot scan) { return g.operand(scan, 3); }

/// Where a device has node s when it scans.
constexpr kernel::operand operand_of(const graph::view& g, slot scan, slot s) {
    if (s == scan) return kernel::operand::scan;
    if (s == input_of(g, scan)) return kernel::operand::input;
    return g[s].shared ? kernel::operand::vector : kernel::operand::rows;
}

/// Whether node s has been evaluated when the scan is.
constexpr bool is_before(const graph::view& g, slot scan, slot s) {
    return g[s].shared || g[s].depends < g[scan].depends || (g[s].depends == g[scan].depends && s < scan);
}
/// Whether a device has what the chain is of at hand when it scans, in so many rows at most.
constexpr bool is_at_hand(const graph::view& g, slot scan, slot chain, int most) {
    int rows = 0;
    for (const slot a : g.operands(chain)) {
        if (a != scan && !is_before(g, scan, a)) return false;
        rows += operand_of(g, scan, a) == kernel::operand::rows;
    }
    return rows <= most;
}
/// How often node s is an operand.
constexpr int reads(const graph::view& g, slot s) {
    return static_cast<int>(std::count(g.edges.begin(), g.edges.end(), s));
}

/// The chain of a scan's values that is evaluated with it: the first of them; nowhere where there is none.
constexpr slot chain_behind(const graph::view& g, slot scan) {
    for (slot s = 0; s < g.size(); ++s)
        if (g[s].what == graph::kind::elementwise && g.reads(s, scan) && is_at_hand(g, scan, s, most_rows_behind))
            return s;
    return nowhere;
}
/// The chain of its Δ, which nothing else reads or evaluates, and which is evaluated as often as the scan,
/// one-token chunks excepted.
constexpr slot chain_before(const graph::view& g, slot scan) {
    const slot delta = delta_of(g, scan);
    const bool as_often = g[delta].depends == g[scan].depends ||
                          (g[delta].depends == dependence::shifted && g[scan].depends == dependence::current);
    if (g[delta].what != graph::kind::elementwise || !as_often || reads(g, delta) != 1 ||
        !is_at_hand(g, scan, delta, most_rows_of_step))
        return nowhere;
    for (slot s = 0; s < g.size(); ++s)
        if (is_selective_scan(g, s) && chain_behind(g, s) == delta) return nowhere;
    return delta;
}
/// The scan with which a chain is evaluated, or nowhere.
constexpr slot scan_of_chain(const graph::view& g, slot chain) {
    for (slot s = 0; s < g.size(); ++s)
        if (is_selective_scan(g, s) && (chain_behind(g, s) == chain || chain_before(g, s) == chain)) return s;
    return nowhere;
}

/// The node whose place in a backward sweep a node's adjoint has, when chains go back with their scans.
constexpr slot place_of(const graph::view& g, slot s) {
    const slot scan = g[s].what == graph::kind::elementwise ? scan_of_chain(g, s) : nowhere;
    return scan == nowhere ? s : scan;
}
/// Whether the adjoint of a chain can be fused into its scan's: of those that write to the cotangents of its
/// operands between these two, and of the chain, none overwrites, and no operand's own adjoint has run yet in
/// this sweep.
constexpr bool goes_back_with(const graph::view& g, slot scan, slot chain) {
    const slot first = std::min(chain, scan), last = std::max(chain, scan);
    const auto between = [&](slot s) { return first < s && s < last; };
    for (const slot a : g.operands(chain)) {
        if (g.is_iterated(a) && between(a)) return false;
        for (slot c = 0; c < g.size(); ++c) {
            if (!g.reads(c, a) || !(between(c) || between(place_of(g, c)))) continue;
            if (g[a].overwritten_by == chain || g[a].overwritten_by == c) return false;
        }
    }
    return true;
}

}  // namespace fprnn::cuda::detail
