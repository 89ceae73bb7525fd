#pragma once

#include <fprnn/expression/nodes.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// An expression as values: its nodes in an order in which they can be evaluated. lower<Root>() makes it of a
/// type.
namespace fprnn::graph {

/// The place of a node in its graph.
using slot = std::size_t;
inline constexpr slot nowhere = static_cast<slot>(-1);

enum class kind {
    input,
    previous,
    parameter,
    shift,
    linear,
    linear_of_parts,
    elementwise,
    scan,
    selective_scan,
    recurrence,  ///< of another kind
    attention,
    norm,
    l2_normalise,
    repeat,     ///< each number as often as a part has channels
    sum_parts,  ///< the sum of each part
    mixer,      ///< a mixer's numbers, prepared
    mix,        ///< Q v + (I − Q) w, of the mixer, v and w; one of these two may be left out
    fixed_point,
};

/// A width: its number for given sizes, and where it is a linear form in them, Σ_i times[i] size_i + plus,
/// that form.
struct width_form {
    index (*of)(const dims&) = nullptr;
    bool linear = false;
    index plus = 0;
    std::array<index, named_sizes.size()> times{};
    std::string (*other)() = nullptr;  ///< the text of another form

    constexpr bool has_text() const { return linear || other; }
    /// Such as "4 d_inner + 1" or "heads d_head"; empty where there is no such form.
    std::string text() const {
        std::string s;
        if (!linear) return other ? other() : s;
        const auto add = [&](index factor, const char* size) {
            if (factor == 0) return;
            if (!s.empty()) s += " + ";
            if (*size == 0 || factor != 1) s += std::to_string(factor);
            if (*size != 0) s += (factor != 1 ? " " : "") + std::string(size);
        };
        for (std::size_t i = 0; i < times.size(); ++i) add(times[i], named_sizes[i].name);
        add(plus, "");
        return s.empty() ? "0" : s;
    }
};

/// The sizes that a node works with.
struct node_sizes {
    const dims& size;
    index width;
    index columns;  ///< the sum of its operands' widths
};

/// What an expression's type says of one of its nodes.
struct node {
    kind what = kind::input;
    dependence depends = dependence::input;
    width_form width{};
    const char* name = "";  ///< of its parameters; of a mixer, of its kind
    std::size_t first = 0;  ///< of its operands, among the edges of the graph
    std::size_t operands = 0;
    initialiser weight{}, bias{};
    bool has_bias = false;
    bool weight_normed = false;  ///< a map whose rows are those of v, times g over their lengths
    bool affine = false;         ///< in the operands that the innermost loop changes: p + g ⊙ x, channel by channel
    bool shared = false;         ///< one row serves all tokens
    int rank = 0;                ///< of a compact mixer, R
    width_form part{};           ///< of a norm of parts: their width; without `of` where it is one of all channels
    width_form parts{};          ///< of a map of parts: their number
    bool parts_share = false;    ///< its weight
    bool scales_state = false;   ///< it hands on the state before, number by number times a factor, plus something
    /// The fixed point that it is iterated in; of another node how many of them are solved before it is
    /// evaluated.
    std::size_t stage = 0;
    slot same_type = nowhere;  ///< the first node of this type, where that is iterated in another fixed point
    slot overwritten_by =
        nowhere;  ///< the node whose adjoint overwrites this one's cotangents instead of adding to them
    /// An elementwise function or a norm of operands that are called so.
    std::string (*formula)(std::span<const std::string>) = nullptr;
    /// Its parameters, appended to a list; null where it has none.
    void (*declare)(const node&, const node_sizes&, std::vector<parameter_spec>&) = nullptr;
    /// Numbers of a sequence that a later call needs to go on; null where there are none.
    index (*carry)(const node_sizes&) = nullptr;
    /// argument_error where the node cannot work with these sizes; null where it works with all.
    void (*check)(const node_sizes&, std::span<const index> operands) = nullptr;
    /// argument_error where sequence b cannot go on by so many tokens from a carry whose first number is
    /// given; null where all can.
    void (*check_carry)(const node_sizes&, index b, double first, index tokens) = nullptr;
};

/// The nodes of one fixed point. `nowhere` where there is no such node.
struct stage {
    slot fixed_point = nowhere;
    slot previous = nowhere;         ///< y^{ℓ−1}
    slot previous_before = nowhere;  ///< y_{t−1}^{ℓ−1}
};

/// A graph, whatever its size.
struct view {
    std::span<const node> nodes;
    std::span<const slot> edges;
    std::span<const stage> stages;  ///< of its fixed points, in the order in which they are solved
    slot input = nowhere;

    constexpr std::size_t size() const { return nodes.size(); }
    constexpr const node& operator[](slot s) const { return nodes[s]; }
    /// Slots of a node's operands; `nowhere` is the operand that a mix goes without.
    constexpr std::span<const slot> operands(slot s) const { return edges.subspan(nodes[s].first, nodes[s].operands); }
    constexpr slot operand(slot s, std::size_t i) const { return edges[nodes[s].first + i]; }
    /// Whether a node is evaluated more than once a token.
    constexpr bool is_iterated(slot s) const {
        return nodes[s].depends == dependence::shifted || nodes[s].depends == dependence::current;
    }
    /// What the graph computes: all others are there for it.
    constexpr slot root() const { return nodes.size() - 1; }
    /// Those of the fixed point that node s is iterated in.
    constexpr const stage& stage_of(slot s) const { return stages[nodes[s].stage]; }
    /// f of y* = f(x, y*).
    constexpr slot solved(std::size_t k = 0) const { return operand(stages[k].fixed_point, 0); }
    /// Where the type of a node is among all types, each of which stands there once.
    constexpr std::size_t place_of_type(slot s) const {
        const slot first = nodes[s].same_type == nowhere ? s : nodes[s].same_type;
        std::size_t place = first;
        for (slot before = 0; before < first; ++before) place -= nodes[before].same_type != nowhere;
        return place;
    }
    constexpr bool contains(kind what) const {
        for (const node& n : nodes)
            if (n.what == what) return true;
        return false;
    }
    constexpr bool reads(slot s, slot operand) const {
        for (const slot o : operands(s))
            if (o == operand) return true;
        return false;
    }
};

inline node_sizes sizes_of(const view& g, slot s, const dims& size) {
    index columns = 0;
    for (const slot o : g.operands(s))
        if (o != nowhere) columns += g[o].width.of(size);
    return {size, g[s].width.of(size), columns};
}
/// Calls f(slot, parameters of the node); nodes of one type have one set of them, which is that of the first.
template <class F>
void for_each_declaration(const view& g, const dims& size, F&& f) {
    for (slot s = 0; s < g.size(); ++s) {
        std::vector<parameter_spec> specs;
        if (g[s].declare && g[s].same_type == nowhere) g[s].declare(g[s], sizes_of(g, s, size), specs);
        f(s, specs);
    }
}
/// The parameters of all nodes, in order. Errors: sizes that a node refuses.
inline std::vector<parameter_spec> declare(const view& g, const dims& size) {
    std::vector<parameter_spec> all;
    for (slot s = 0; s < g.size(); ++s) {
        if (!g[s].check) continue;
        std::vector<index> operands;
        for (const slot o : g.operands(s)) operands.push_back(g[o].width.of(size));
        g[s].check(sizes_of(g, s, size), operands);
    }
    for_each_declaration(g, size, [&](slot, std::vector<parameter_spec>& specs) {
        for (parameter_spec& p : specs) all.push_back(std::move(p));
    });
    return all;
}
/// Numbers that a sequence's carry holds: of a node, and of all of them, one after the other.
inline index carry_width(const view& g, slot s, const dims& size) {
    return g[s].carry ? g[s].carry(sizes_of(g, s, size)) : 0;
}
inline index carry_width(const view& g, const dims& size) {
    index all = 0;
    for (slot s = 0; s < g.size(); ++s) all += carry_width(g, s, size);
    return all;
}

/// N nodes with E operands in all, and K fixed points.
template <std::size_t N, std::size_t E, std::size_t K>
struct lowered {
    std::array<node, N> nodes{};
    std::array<slot, E> edges{};
    std::array<stage, K> stages{};
    slot input = nowhere;

    constexpr operator view() const { return {nodes, edges, stages, input}; }
};

}  // namespace fprnn::graph
