#pragma once

#include <fprnn/graph/reduce.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fprnn::graph {

namespace detail {

/// What other nodes call a node: the name of its parameters, or its number.
inline std::string label(const view& g, slot s) {
    const node& n = g[s];
    switch (n.what) {
        case kind::input: return "in";
        case kind::previous: return "prev";
        case kind::shift: return "shift(" + label(g, g.operands(s)[0]) + ")";
        case kind::mixer: return "#" + std::to_string(s);
        default: return *n.name != 0 ? n.name : "#" + std::to_string(s);
    }
}
inline std::string listed(const std::vector<std::string>& parts) {
    std::string s;
    for (const std::string& part : parts) s += (s.empty() ? "" : ", ") + part;
    return s;
}
/// The equation of a node.
inline std::string equation(const view& g, slot s) {
    const node& n = g[s];
    std::vector<std::string> a;
    for (const slot operand : g.operands(s)) a.push_back(operand == nowhere ? "" : label(g, operand));
    const std::string named = *n.name != 0 ? std::string(n.name) + " = " : "";
    switch (n.what) {
        case kind::input:
        case kind::previous:
        case kind::shift: return label(g, s);
        case kind::parameter: return named + "a vector";
        case kind::linear:
            return named + (n.weight_normed ? "weight-normed W (" : "W (") + listed(a) + ")" +
                   (n.has_bias ? " + bias" : "");
        case kind::linear_of_parts:
            return named + "W (" + a[0] + ") of each of " + n.parts.text() + (n.has_bias ? " + bias" : "");
        case kind::elementwise: return n.formula(a);
        case kind::scan: return "scan(" + listed(a) + ")";
        case kind::selective_scan: return named + "selective_scan(" + listed(a) + ")";
        case kind::recurrence:
        case kind::norm: return named + n.formula(a);
        case kind::attention:
        case kind::repeat:
        case kind::sum_parts:
        case kind::l2_normalise: return n.formula(a);
        case kind::mixer:
            return n.name + (n.rank > 0 ? ", R = " + std::to_string(n.rank) : std::string()) + ", of (" + listed(a) +
                   ")";
        case kind::mix: {
            const std::string Q = a[0], v = a[1].empty() ? "" : Q + " * " + a[1],
                              w = a[2].empty() ? "" : "(I - " + Q + ") * " + a[2];
            return v + (v.empty() || w.empty() ? "" : " + ") + w;
        }
        case kind::fixed_point: return "fixed point of " + a[0];
    }
    return "";
}
/// Operands of a map in the iteration that are multiplied for all tokens at once.
inline std::string hoisted(const view& g, slot s) {
    if (g[s].what != kind::linear || !g.is_iterated(s)) return "";
    std::vector<std::string> parts;
    for (const slot operand : g.operands(s))
        if (!g.is_iterated(operand)) parts.push_back(label(g, operand));
    return parts.empty() ? "" : "[" + listed(parts) + ": for all tokens at once]";
}
/// Of fixed point k.
inline std::string outcome(const view& g, std::size_t k) {
    const reduction r = reduce(g, k);
    bool is_explicit = true;  // of what the token before says, nothing that its own iterate says
    for (slot s = 0; s < g.size(); ++s)
        is_explicit =
            is_explicit && (g[s].stage != k || g[s].depends != dependence::current || g[s].what == kind::previous);
    if (is_explicit && r.why_not != obstacle::no_iteration)
        return "One-token chunks take one evaluation: f sees shift(prev), not prev.";
    const auto equation_at = [&](slot s) { return "#" + std::to_string(s) + ", " + equation(g, s); };
    switch (r.why_not) {
        case obstacle::none:
            return "Tokens of one-token chunks are solved in " + std::to_string(r.rank) + " number" +
                   (r.rank == 1 ? "" : "s") + ", by picard and a stop of residual and iterations.";
        case obstacle::no_iteration: return "Nothing is iterated.";
        case obstacle::no_compact_mix:
            return "Tokens are iterated in all channels: there is no Q * v + (I - Q) * prev whose Q is compact and "
                   "whose "
                   "Q and v do not contain prev.";
        case obstacle::prev_beside:
            return "Tokens are iterated in all channels: prev is seen beside the mix by " + equation_at(r.where) + ".";
        case obstacle::not_affine:
            return "Tokens are iterated in all channels: between the mix and the end stands " + equation_at(r.where) +
                   ", which is no scan, no sum and no product with what prev does not change.";
    }
    return "";
}

}  // namespace detail

/// A graph as text: its nodes in the order of evaluation, by how often they are evaluated, with their widths;
/// what is multiplied for all tokens at once; and whether a token is solved in R numbers, or why not. Of
/// several fixed points each has its part.
inline std::string explain(const view& g) {
    constexpr std::size_t column = 64;
    std::string text;
    const auto part = [&](std::size_t k, dependence from, dependence to, const std::string& title) {
        bool first = true;
        for (slot s = 0; s < g.size(); ++s) {
            if (g[s].stage != k || g[s].depends < from || to < g[s].depends) continue;
            if (first) text += title + "\n";
            first = false;
            const std::string number = std::to_string(s);
            std::string line = std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + "#" + number + "  " +
                               detail::equation(g, s);
            const std::string width = g[s].width.text();
            const std::string at_once = detail::hoisted(g, s);
            if (!width.empty() || !at_once.empty())
                line += std::string(line.size() < column ? column - line.size() : 2, ' ');
            text += line + width + (width.empty() || at_once.empty() ? "" : "  ") + at_once + "\n";
        }
    };
    const std::size_t fixed_points = g.stages.size();
    const bool several = fixed_points > 1;
    const auto outside = [&](std::size_t k, const std::string& title) {
        part(k, dependence::input, dependence::output, title);
    };
    outside(0, "once, for all tokens:");
    for (std::size_t k = 0; k < fixed_points; ++k) {
        const std::string number = "#" + std::to_string(g.stages[k].fixed_point);
        if (several) text += "fixed point " + number + "\n";
        part(k, dependence::shifted, dependence::shifted,
             "sees the token before: once per token with C = 1, else once per iteration:");
        part(k, dependence::current, dependence::current, "iterated:");
        if (several) text += detail::outcome(g, k) + "\n";
        outside(k + 1, several ? "once, at fixed point " + number + ":" : "once, at the fixed point:");
    }
    return several ? text : text + detail::outcome(g, 0) + "\n";
}

}  // namespace fprnn::graph
