#pragma once

#include <fprnn/graph/cotangents.hpp>
#include <fprnn/graph/describe.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

/// From the type of an expression to its graph, when the program is compiled.
namespace fprnn::graph {

namespace detail {

/// Its address tells a type from others while a program is compiled.
template <class E>
inline constexpr char identity = 0;

/// A graph of which the size is not known yet. With more nodes or edges than fit it counts no further.
template <std::size_t Room>
struct builder {
    std::array<node, Room> nodes{};
    std::array<const char*, Room> types{};
    std::array<std::size_t, Room> within{};  ///< of an iterated node: the number of its fixed point
    std::array<slot, 4 * Room> edges{};
    std::array<stage, Room / 8> stages{};
    std::size_t size = 0, edge_count = 0, stage_count = 0, fixed_points = 0;
    slot input = nowhere;
    bool full = false;

    /// E in the fixed point of this number, which is counted as they are entered. Iterated nodes of one type
    /// are one node within one fixed point alone.
    template <class E>
    constexpr slot add(std::size_t in) {
        if constexpr (std::is_same_v<E, zero_node>) {
            return nowhere;
        } else {
            slot same_type = nowhere;
            for (slot s = 0; s < size; ++s) {
                if (types[s] != &identity<E>) continue;
                if (within[s] == nowhere || within[s] == in) return s;
                if (same_type == nowhere) same_type = s;
            }
            return add_new<E>(typename needs<E>::type{}, in, same_type);
        }
    }

private:
    template <class E, class... Operands>
    constexpr slot add_new(type_list<Operands...>, std::size_t in, slot same_type) {
        node n = description<E>::make();
        if (n.what == kind::fixed_point) in = fixed_points++;
        // A brace is evaluated from left to right: the first operand's nodes come first.
        const std::array<slot, sizeof...(Operands) + 1> operands{add<Operands>(in)..., nowhere};
        if (full || size == Room || edge_count + sizeof...(Operands) > edges.size() || stage_count == stages.size()) {
            full = true;
            return 0;
        }
        n.depends = E::depends;
        n.same_type = same_type;
        if (n.what != kind::mixer) n.width = form<typename E::width>::make();
        n.first = edge_count;
        n.operands = sizeof...(Operands);
        bool shared = n.operands > 0 && n.what == kind::mixer;  // a mixer of parameters alone
        for (std::size_t i = 0; i < n.operands; ++i) {
            edges[edge_count++] = operands[i];
            if (operands[i] == nowhere) continue;
            shared = shared && nodes[operands[i]].shared;
            n.stage = std::max(n.stage, nodes[operands[i]].stage);
        }
        n.shared = n.shared || shared;
        if (n.what == kind::input) input = size;
        if (n.what == kind::fixed_point) n.stage = close(in, size) + 1;
        types[size] = &identity<E>;
        within[size] = n.depends < dependence::shifted ? nowhere : in;
        nodes[size] = n;
        return size++;
    }
    /// Fixed points that it reads have been closed before.
    constexpr std::size_t close(std::size_t number, slot fixed_point) {
        stage& its = stages[stage_count];
        its.fixed_point = fixed_point;
        for (slot s = 0; s < size; ++s) {
            if (within[s] != number) continue;
            nodes[s].stage = stage_count;
            if (nodes[s].what == kind::previous) its.previous = s;
            if (nodes[s].what == kind::shift) its.previous_before = s;
        }
        return stage_count++;
    }
};
template <class Root, std::size_t Room>
consteval builder<Room> built() {
    builder<Room> b;
    b.template add<Root>(nowhere);
    return b;
}
/// In as much room as the graph needs.
template <class Root, std::size_t Room = 64>
consteval auto lowered_in() {
    constexpr builder<Room> b = built<Root, Room>();
    if constexpr (b.full) {
        return lowered_in<Root, 4 * Room>();
    } else {
        lowered<b.size, b.edge_count, b.stage_count> result{.input = b.input};
        for (std::size_t i = 0; i < b.size; ++i) result.nodes[i] = b.nodes[i];
        for (std::size_t i = 0; i < b.edge_count; ++i) result.edges[i] = b.edges[i];
        if constexpr (b.stage_count > 0) std::copy_n(b.stages.begin(), b.stage_count, result.stages.begin());
        const auto overwriter = overwriters<b.size>(result);
        for (std::size_t i = 0; i < b.size; ++i) result.nodes[i].overwritten_by = overwriter[i];
        return result;
    }
}

}  // namespace detail

/// The graph of an expression: the nodes that are evaluated, operands first, each once; iterated nodes once
/// for each fixed point that they are iterated in.
template <class Root>
consteval auto lower() {
    return detail::lowered_in<Root>();
}
template <class Root>
inline constexpr auto graph_of = lower<Root>();
/// The same, whatever its size.
template <class Root>
inline constexpr view view_of = graph_of<Root>;

}  // namespace fprnn::graph
