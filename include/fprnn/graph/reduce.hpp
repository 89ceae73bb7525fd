#pragma once

#include <fprnn/graph/node.hpp>

#include <array>
#include <cstddef>

/// Whether a token is solved in R numbers instead of D: see fprnn/fixed_point/token_norm.hpp.
namespace fprnn::graph {

/// What stands in the way of it, at node `where` of a reduction.
enum class obstacle {
    none,
    no_iteration,    ///< nothing is iterated
    no_compact_mix,  ///< no compact mixer Q is in Q v + (I − Q) prev where neither Q nor v changes with prev
    prev_beside,     ///< a node sees prev beside the mix
    not_affine,      ///< a node between the mix and the end is not p + g ⊙ x, and no norm at the very end
};

/// y = norm(p + g ⊙ (Q v + (I − Q) prev)), the norm and each of p and g if there are any.
struct reduction {
    obstacle why_not = obstacle::none;
    slot where = nowhere;
    slot mix = nowhere;     ///< the first compact one
    slot norm = nowhere;    ///< at the end of the iteration
    int rank = 0;           ///< R
    std::size_t stage = 0;  ///< the fixed point

    constexpr explicit operator bool() const { return why_not == obstacle::none; }
};

/// Q v + (I − Q) y^{ℓ−1} of a compact mixer, nothing of which changes while a token is iterated but y.
constexpr bool is_compact_mix(const view& g, slot s) {
    if (g[s].what != kind::mix) return false;
    const auto [Q, v, w] = std::array{g.operands(s)[0], g.operands(s)[1], g.operands(s)[2]};
    return w != nowhere && g[w].what == kind::previous && g[Q].rank > 0 && g[Q].depends < dependence::current &&
           (v == nowhere || g[v].depends < dependence::current);
}

/// Whether a node of the innermost loop is evaluated after the mix and before the norm.
constexpr bool is_between(const view& g, const reduction& r, slot s) {
    return g[s].depends == dependence::current && g[s].stage == r.stage && g[s].what != kind::previous && s != r.mix &&
           s != r.norm;
}

/// How one-token chunks of fixed point k of a graph are solved in R numbers: between one compact mix and the
/// end of the iteration stand only nodes that are affine in what changes with prev, and a norm at the very
/// end.
constexpr reduction reduce(const view& g, std::size_t k = 0) {
    reduction r{.stage = k};
    if (k >= g.stages.size()) {
        r.why_not = obstacle::no_iteration;
        return r;
    }
    const slot solved = g.solved(k);
    if (g[solved].what == kind::norm && !g[solved].part.of) r.norm = solved;
    for (slot s = 0; s < g.size() && r.mix == nowhere; ++s)
        if (g[s].stage == k && is_compact_mix(g, s)) r.mix = s;
    if (r.mix == nowhere) {
        r.why_not = obstacle::no_compact_mix;
        return r;
    }
    r.rank = g[g.operands(r.mix)[0]].rank;
    for (slot s = 0; s < g.size(); ++s) {
        if (!is_between(g, r, s)) continue;
        bool beside = false;
        for (const slot operand : g.operands(s))
            beside = beside || (operand != nowhere && g[operand].what == kind::previous);
        if (g[s].affine && !beside) continue;
        r.why_not = beside ? obstacle::prev_beside : obstacle::not_affine;
        r.where = s;
        return r;
    }
    return r;
}

/// Whether one-token chunks of every fixed point are solved in R numbers.
constexpr bool is_reduced(const view& g) {
    bool all = !g.stages.empty();
    for (std::size_t k = 0; k < g.stages.size(); ++k) all = all && reduce(g, k);
    return all;
}

}  // namespace fprnn::graph
