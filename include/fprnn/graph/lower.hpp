#pragma once

#include <fprnn/graph/cotangents.hpp>
#include <fprnn/graph/describe.hpp>

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
    std::array<slot, 4 * Room> edges{};
    std::size_t size = 0, edge_count = 0;
    slot input = nowhere, fixed_point = nowhere, previous = nowhere, previous_before = nowhere;
    bool full = false;

    template <class E>
    constexpr slot add() {
        if constexpr (std::is_same_v<E, zero_node>) {
            return nowhere;
        } else {
            for (slot s = 0; s < size; ++s)
                if (types[s] == &identity<E>) return s;
            return add_new<E>(typename needs<E>::type{});
        }
    }

private:
    template <class E, class... Operands>
    constexpr slot add_new(type_list<Operands...>) {
        // A brace is evaluated from left to right: the first operand's nodes come first.
        const std::array<slot, sizeof...(Operands) + 1> operands{add<Operands>()..., nowhere};
        if (full || size == Room || edge_count + sizeof...(Operands) > edges.size()) {
            full = true;
            return 0;
        }
        node n = description<E>::make();
        n.depends = E::depends;
        if (n.what != kind::mixer) n.width = form<typename E::width>::make();
        n.first = edge_count;
        n.operands = sizeof...(Operands);
        bool shared = n.operands > 0 && n.what == kind::mixer;  // a mixer of parameters alone
        for (std::size_t i = 0; i < n.operands; ++i) {
            edges[edge_count++] = operands[i];
            shared = shared && nodes[operands[i]].shared;
        }
        n.shared = n.shared || shared;
        if (n.what == kind::input) input = size;
        if (n.what == kind::fixed_point) fixed_point = size;
        if (n.what == kind::previous) previous = size;
        if (n.what == kind::shift && operands[0] == previous) previous_before = size;
        types[size] = &identity<E>;
        nodes[size] = n;
        return size++;
    }
};
template <class Root, std::size_t Room>
consteval builder<Room> built() {
    builder<Room> b;
    b.template add<Root>();
    return b;
}
/// In as much room as the graph needs.
template <class Root, std::size_t Room = 64>
consteval auto lowered_in() {
    constexpr builder<Room> b = built<Root, Room>();
    if constexpr (b.full) {
        return lowered_in<Root, 4 * Room>();
    } else {
        lowered<b.size, b.edge_count> result{.input = b.input,
                                             .fixed_point = b.fixed_point,
                                             .previous = b.previous,
                                             .previous_before = b.previous_before};
        for (std::size_t i = 0; i < b.size; ++i) result.nodes[i] = b.nodes[i];
        for (std::size_t i = 0; i < b.edge_count; ++i) result.edges[i] = b.edges[i];
        const auto overwriter = overwriters<b.size>(result);
        for (std::size_t i = 0; i < b.size; ++i) result.nodes[i].overwritten_by = overwriter[i];
        return result;
    }
}

}  // namespace detail

/// The graph of an expression: the nodes that are evaluated, operands first, each once.
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
