#pragma once

#include <fprnn/ops/l2_normalise.hpp>

#include <cstddef>
#include <utility>

/// What mixers do with rows of D channels. Rows may be held (fprnn/backend/backend.hpp).
namespace fprnn::mixing {

/// d = v − w, of which null ones are zero; `rest` is w, which may be held.
template <class Team, class T, class Rest, class Row>
FPRNN_BOTH void difference(index D, const T* v, const T* w, const Rest& rest, Row& d) {
    if (v && w)
        Team::each(D, [&](auto lane) { lane.store(d, lane.load(v) - lane.load(rest)); });
    else if (v)
        Team::each(D, [&](auto lane) { lane.store(d, lane.load(v)); });
    else if (w)
        Team::each(D, [&](auto lane) { lane.store(d, -lane.load(rest)); });
    else
        Team::each(D, [&](auto lane) { lane.store(d, decltype(lane.load(v))(T(0))); });
}

/// uᵀx
template <class Team, class T, class A, class B>
FPRNN_BOTH T along(index D, const A& u, const B& x) {
    return Team::template sum<1>(D, [&](auto lane) { return small_array{lane.load(u) * lane.load(x)}; })[0];
}

/// to = from − α ū a with a = ūᵀ from, which it returns. `from` and `to` may be one row.
template <class Team, class T, class From, class To>
FPRNN_BOTH T reflect(index D, const T* unit, T alpha, const From& from, To& to) {
    const auto u = held<Team>(D, unit);
    const T a = along<Team, T>(D, u, from), by = -alpha * a;
    Team::each(D, [&](auto lane) { lane.store(to, lane.load(from) + decltype(lane.load(unit))(by) * lane.load(u)); });
    return a;
}

/// out = d + w, of which w may be null.
template <class Team, class T>
FPRNN_BOTH void add_rest(index D, const T* d, const T* w, T* out) {
    Team::each(D, [&](auto lane) {
        auto x = lane.load(d);
        if (w) x += lane.load(w);
        lane.store(out, x);
    });
}

/// v̄ += g and w̄ += ō − g with g = Qᵀō; v̄ and w̄ may be null.
template <class Team, class T>
FPRNN_BOTH void add_bars(index D, const T* g, const T* out_bar, T* v_bar, T* w_bar) {
    Team::each(D, [&](auto lane) {
        if (v_bar) lane.add(v_bar, lane.load(g));
        if (w_bar) lane.add(w_bar, lane.load(out_bar) - lane.load(g));
    });
}

/// Waits for what other threads of the team have written.
template <class Team>
FPRNN_BOTH void wait() {
    Team::once([] {});
}

/// store(lane, x̄) of unit = x / max(‖x‖, ε) and scale = 1 / max(‖x‖, ε): with ū = bar(lane) and s̄ the
/// cotangents of both, x̄ = scale (ū − unit (unitᵀū + scale s̄)), and scale ū where ε is the larger, which
/// does not depend on x.
template <class Team, class T, class Bar, class Store>
FPRNN_BOTH void through_unit(index D, const T* unit, T scale, T scale_bar, const Bar& bar, const Store& store) {
    const auto u = held<Team>(D, unit);
    T by = 0;
    if (scale < T(1) / T(l2_normalise_function::epsilon))
        by = Team::template sum<1>(D, [&](auto lane) { return small_array{lane.load(u) * bar(lane)}; })[0] +
             scale_bar * scale;
    Team::each(D, [&](auto lane) {
        using V = decltype(lane.load(unit));
        store(lane, (bar(lane) - lane.load(u) * V(by)) * V(scale));
    });
}

/// R rows of D numbers, one after the other, each held; many would not find room in registers.
template <class Team, int R, class T>
FPRNN_BOTH auto held_rows(index D, const T* rows) {
    const auto all = [&]<std::size_t... k>(std::index_sequence<k...>) {
        if constexpr (R <= 4)
            return small_array{held<Team>(D, rows + static_cast<index>(k) * D)...};
        else
            return small_array{rows + static_cast<index>(k) * D...};
    };
    return all(std::make_index_sequence<static_cast<std::size_t>(R)>{});
}

}  // namespace fprnn::mixing
