#pragma once

#include <fprnn/operations/linear.hpp>

/// A device multiplies y_{t−1} of a token by all of its maps at a time: every call costs there, and most of
/// these maps have few columns. Weights are stacked by rows, results stand beside each other.
namespace fprnn::cuda::detail {

/// y_{t−1}, or nowhere. A device solves one fixed point (layer::run).
constexpr graph::slot y_before(const graph::view& g) {
    return g.stages.empty() ? graph::nowhere : g.stages.front().previous_before;
}
/// Whether node s maps y_{t−1}, beside what depends on x alone.
constexpr bool maps_y_before(const graph::view& g, graph::slot s) {
    if (g[s].what != graph::kind::linear) return false;
    int times = 0;
    for (const graph::slot o : g.operands(s)) {
        if (o == y_before(g))
            ++times;
        else if (g[o].depends != dependence::input)
            return false;
    }
    return times == 1;
}
/// Whether several nodes do and s is one of them.
constexpr bool is_joint(const graph::view& g, graph::slot s) {
    int maps = 0;
    for (graph::slot other = 0; other < g.size(); ++other) maps += maps_y_before(g, other);
    return maps > 1 && maps_y_before(g, s);
}
/// Whether node s is y_{t−1}, or a product of it and of what depends on x alone.
constexpr bool is_early(const graph::view& g, graph::slot s) {
    if (s == y_before(g)) return true;
    if (g[s].what != graph::kind::linear || g[s].depends != dependence::shifted) return false;
    for (const graph::slot o : g.operands(s))
        if (g[o].depends != dependence::input && !is_early(g, o)) return false;
    return true;
}

/// One of several maps of y_{t−1}. For tokens one by one, whose rows are few, the first of them multiplies
/// for all; it has the memory.
template <class T, class Backend>
struct joint_product : operations::linear<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    using alone = operations::linear<T, Backend>;

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const {
        alone::lay_out(f, s, scratch, kept);
        if (!is_used(f) || s != first(f)) return;
        auto& m = f.template own<typename alone::memory>(s);
        m.joint_weights = scratch.take(columns(f, f.graph.size()) * f.width(y_before(f.graph)));
        m.joint_rows = scratch.take(f.tile * columns(f, f.graph.size()));
    }
    void begin(frame& f, slot s, const T* carry) const {
        alone::begin(f, s, carry);
        if (!is_used(f)) return;
        const index D = f.width(y_before(f.graph));
        this->for_each_part(f, s, [&](const auto& p) {
            if (p.is_hoisted) return;
            const auto w = this->weights(f, s, p);
            f.each_row(w.rows, body::copy<T>{D, {w.data, w.stride}, {memory(f).joint_weights + columns(f, s) * D, D}});
        });
    }
    void value(frame& f, slot s, index row, index n) const {
        if (!is_used(f)) return alone::value(f, s, row, n);
        if (f.phase == pass::replay) return;
        const auto all = rows(f, n);
        if (s == first(f)) {
            f.on.multiply(all, f.value_rows(y_before(f.graph), row, n), weights_of_all(f), true, f.packing);
            ++f.work.matrix_products;
        }
        const index width = f.width(s);
        const strided<const T> mine{all.data + columns(f, s), all.stride};
        if (this->has_hoisted(f, s))
            f.each_row(n, body::add_rows<T>{width, mine, {f.values(s, row)}});
        else
            f.each_row(n, body::copy<T>{width, mine, f.values(s, row)});
    }
    /// The last that is differentiated, which is the first, multiplies for all.
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        if (!is_used(f)) return alone::back(f, s, row, n, reach);
        const slot y = y_before(f.graph);
        if (f.graph[y].depends < reach) return;
        const auto all = rows(f, n);
        f.each_row(n, body::copy<T>{f.width(s), f.bars(s, row), {all.data + columns(f, s), all.stride}});
        if (s == first(f))
            f.on.multiply_back(f.bar_rows(y, row, n), matrix<const T>{all.data, all.rows, all.columns, all.stride},
                               weights_of_all(f), false, f.packing);
    }

private:
    /// Unrolled, every map multiplies by itself.
    static bool is_used(const frame& f) { return f.chunk == 1 && !f.unrolled; }
    static slot first(const frame& f) {
        slot s = 0;
        while (!maps_y_before(f.graph, s)) ++s;
        return s;
    }
    /// Columns of the maps before node `end`.
    static index columns(const frame& f, slot end) {
        index all = 0;
        for (slot s = 0; s < end; ++s)
            if (maps_y_before(f.graph, s)) all += f.width(s);
        return all;
    }
    static const typename alone::memory& memory(const frame& f) {
        return f.template own<typename alone::memory>(first(f));
    }
    static matrix<T> rows(const frame& f, index n) {
        const index all = columns(f, f.graph.size());
        return {memory(f).joint_rows, n, all, all};
    }
    static matrix<const T> weights_of_all(const frame& f) {
        return {memory(f).joint_weights, columns(f, f.graph.size()), f.width(y_before(f.graph)),
                f.width(y_before(f.graph))};
    }
};

}  // namespace fprnn::cuda::detail
