#pragma once

#include <fprnn/expression/nodes.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// An expression as values: its nodes in an order in which they can be evaluated. lower<Root>() makes it of a type.
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
    elementwise,
    scan,
    selective_scan,
    norm,
    l2_normalise,
    mixer,  ///< a mixer's numbers, prepared
    mix,    ///< Q v + (I − Q) w, of the mixer, v and w; one of these two may be left out
    fixed_point,
};

/// A width: its number for given sizes, and where it is a linear form in them, Σ_i times[i] size_i + plus, that form.
struct width_form {
    static constexpr std::array<const char*, 4> sizes{"d_in", "d_inner", "d_state", "d_out"};

    index (*of)(const dims&) = nullptr;
    bool linear = false;
    index plus = 0;
    std::array<index, 4> times{};

    /// Such as "4 d_inner + 1"; empty where it is no linear form.
    std::string text() const {
        std::string s;
        if (!linear) return s;
        const auto add = [&](index factor, const char* size) {
            if (factor == 0) return;
            if (!s.empty()) s += " + ";
            if (*size == 0 || factor != 1) s += std::to_string(factor);
            if (*size != 0) s += (factor != 1 ? " " : "") + std::string(size);
        };
        for (std::size_t i = 0; i < times.size(); ++i) add(times[i], sizes[i]);
        add(plus, "");
        return s.empty() ? "0" : s;
    }
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
    bool affine = false;  ///< in the operands that the innermost loop changes: p + g ⊙ x, channel by channel
    bool shared = false;  ///< one row serves all tokens
    int rank = 0;         ///< of a compact mixer, R
    /// An elementwise function or a norm of operands that are called so.
    std::string (*formula)(std::span<const std::string>) = nullptr;
};

/// A graph, whatever its size.
struct view {
    std::span<const node> nodes;
    std::span<const slot> edges;
    slot fixed_point = nowhere;  ///< `nowhere` where nothing is iterated

    constexpr std::size_t size() const { return nodes.size(); }
    constexpr const node& operator[](slot s) const { return nodes[s]; }
    /// Slots of a node's operands; `nowhere` is the operand that a mix goes without.
    constexpr std::span<const slot> operands(slot s) const { return edges.subspan(nodes[s].first, nodes[s].operands); }
    /// Whether a node is evaluated more than once a token.
    constexpr bool is_iterated(slot s) const {
        return nodes[s].depends == dependence::shifted || nodes[s].depends == dependence::current;
    }
};

/// N nodes with E operands in all.
template <std::size_t N, std::size_t E>
struct lowered {
    std::array<node, N> nodes{};
    std::array<slot, E> edges{};
    slot fixed_point = nowhere;

    constexpr operator view() const { return {nodes, edges, fixed_point}; }
};

}  // namespace fprnn::graph
