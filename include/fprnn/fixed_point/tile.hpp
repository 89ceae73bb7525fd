#pragma once

#include <fprnn/core/arena.hpp>
#include <fprnn/fixed_point/gather.hpp>
#include <fprnn/fixed_point/lengths.hpp>
#include <fprnn/fixed_point/solve_adjoint.hpp>

#include <algorithm>
#include <type_traits>

/// One tile of sequences through a whole program, there and back.
namespace fprnn::engine {

/// Memory of a tile that belongs to the engine and not to a node.
template <class T>
struct workspace {
    T* carry = nullptr;    ///< [tile, width] of each node that carries, one after the other
    T* counts = nullptr;   ///< [fixed points, chunks, tile], iterations
    T* token = nullptr;    ///< scratch of a reduced token
    T* w = nullptr;        ///< [C, tile, D], D of the widest iterate
    T* adjoint = nullptr;  ///< scratch of the adjoint's solver
    own_rules<T> own;
    engine::watches<T> watches;
};

/// What a pass over a batch is of: the same for all of its tiles.
template <class T, class Backend>
struct pass_of {
    const plan<T, Backend>& what;
    Backend& on;
    index tile;
    const dims& size;
    const tile_lengths& lengths;
    pass phase;
    const solving& how;
    int threads = 1;  ///< for each tile

    /// Of tile number i.
    frame_of_tile<T, Backend> make_frame(index i) const {
        const index tokens = lengths.tokens(i);
        return frame_of_tile<T, Backend>(
            what, on, tile, size, tokens, std::min(how.schedule.length, std::max<index>(tokens, 1)), phase,
            phase != pass::forward && detail::evaluations_back(how.adjoint) > 1, threads, lengths.of(i));
    }
};

/// Calls g() for the fixed points, first to last, each of which is the frame's stage then.
template <class T, class Backend, class G>
void for_each_fixed_point(frame<T, Backend>& f, const G& g) {
    for (f.stage_number = 0; f.stage().has_fixed_point(); ++f.stage_number) g();
}

template <class T, class Backend>
index counts_of_a_fixed_point(const frame<T, Backend>& f) {
    return (f.tokens + f.chunk - 1) / f.chunk * f.tile;
}

/// Gives every node its rows. The values of nodes that do not keep them are computed again in a backward
/// pass.
template <class T, class Backend>
workspace<T> lay_out(frame<T, Backend>& f, const solving& how, arena<T>& scratch, arena<T>& kept) {
    const graph::view& g = f.graph;
    const bool iterates = f.plan.has_fixed_point();
    workspace<T> e;
    for (graph::slot s = 0; s < g.size(); ++s) {
        const auto& operation = *f.plan.operations[s];
        if (!g[s].shared && g[s].what != graph::kind::fixed_point)
            f.nodes[s].value = (operation.keeps_values ? kept : scratch).take(f.rows() * f.width(s));
        operation.lay_out(f, s, scratch, kept);
    }
    index packing = 0;
    for (graph::slot s = 0; s < g.size(); ++s) packing = std::max(packing, f.plan.operations[s]->packing_size(f, s));
    constexpr index line = 64 / static_cast<index>(sizeof(T));
    packing = (packing + line - 1) / line * line;  // of each thread
    f.packing = {scratch.take(packing * f.threads), {packing * f.threads}};
    e.carry = scratch.take(f.tile * graph::carry_width(g, f.size));
    index widest = 0, token = 0, adjoint = 0;
    for_each_fixed_point(f, [&] {
        widest = std::max(widest, f.iterate_width());
        token = std::max(token, token_scratch(f));
        adjoint = std::max(adjoint, adjoint_scratch(f));
    });
    if (iterates) {
        e.counts = kept.take(static_cast<index>(f.plan.fixed_points()) * counts_of_a_fixed_point(f));
        e.watches = {scratch.template take_room<watch<T>>(f.tile), scratch.take(f.tile),
                     scratch.template take_room<tally>(f.tile)};
        if (f.chunk > 1 && measures_tokens(f)) f.steps = scratch.take(token_steps<T>::size(f.tile, f.chunk));
    }
    if (f.phase == pass::forward) {
        if (!iterates) return e;
        e.token = scratch.take(token);
        if (how.has_own_rules()) {
            e.own.per_sequence = own_rules<T>::numbers_of_a_sequence(how.solver, f.chunk * widest);
            e.own.memory = scratch.take(f.tile * e.own.per_sequence);
        }
        return e;
    }
    for (graph::slot s = 0; s < g.size(); ++s)
        if (!g[s].shared) f.nodes[s].bar = scratch.take(f.bar_rows_of(s) * f.width(s));
    if (iterates) {
        e.w = scratch.take(f.chunk * f.tile * widest);
        e.adjoint = scratch.take(adjoint);
    }
    return e;
}

struct tile_sizes {
    index scratch, kept;
};
/// Numbers that lay_out takes at most from its two arenas.
template <class T, class Backend>
tile_sizes measure_tiles(const pass_of<T, Backend>& pass) {
    tile_sizes most{0, 0};
    for (index i = 0; i < pass.lengths.layouts(); ++i) {
        auto f = pass.make_frame(i);
        arena<T> scratch, kept;
        lay_out(f, pass.how, scratch, kept);
        most = {std::max(most.scratch, scratch.used()), std::max(most.kept, kept.used())};
    }
    return most;
}

/// What became of the tile's sequences in fixed point k; the first of them is number `first` of `whole`.
template <class T, class Backend>
void read_tallies(frame<T, Backend>& f, const tally* tallies, std::size_t k, index first, index sequences,
                  convergence& whole) {
    const auto of = f.on.seen(sequences, tallies);
    convergence& all = whole.fixed_points.empty() ? whole : whole.fixed_points[k];
    for (index s = 0; s < sequences; ++s) {
        const tally& one = of[s];
        const auto b = static_cast<std::size_t>(first + s);
        all.status[b] = one.status;
        all.iterations[b] = one.iterations;
        all.total_iterations[b] = one.total_iterations;
        all.residual[b] = one.residual;
        all.tokens_converged[b] = one.tokens_converged;
    }
}

/// Calls g(operation, slot, carry rows [tile, width], where its numbers stand in a sequence's carry, width)
/// of every node.
template <class T, class Backend, class G>
void for_each_carry(const frame<T, Backend>& f, const workspace<T>& e, const G& g) {
    index at = 0;
    for (graph::slot s = 0; s < f.graph.size(); ++s) {
        const index width = graph::carry_width(f.graph, s, f.size);
        g(*f.plan.operations[s], s, e.carry + at * f.tile, at, width);
        at += width;
    }
}
/// Calls g(row, n) for the chunks, first to last.
template <class T, class Backend, class G>
void for_each_chunk(const frame<T, Backend>& f, const G& g) {
    for (index t = 0; t < f.tokens; t += f.chunk) g(t * f.tile, std::min(f.chunk, f.tokens - t) * f.tile);
}
template <class T, class Backend>
T* counts_of_stage(const frame<T, Backend>& f, const workspace<T>& e) {
    return e.counts + static_cast<index>(f.stage_number) * counts_of_a_fixed_point(f);
}
template <class T, class Backend>
void hoist(frame<T, Backend>& f) {
    for (const graph::slot s : f.stage().iterated) f.plan.operations[s]->hoist(f, s);
}

/// Carries in, and x.
template <class T, class Backend, class X>
void begin_forward(frame<T, Backend>& f, const workspace<T>& e, view<const X> x, view<T> carry, index first,
                   index sequences) {
    const index carried = carry.shape()[1];
    for_each_carry(f, e, [&](const auto& operation, graph::slot s, T* rows, index at, index width) {
        if (width > 0) {
            f.each_row(sequences, body::copy<T>{width, {carry.data() + first * carried + at, carried}, {rows, width}});
            f.on.fill((f.tile - sequences) * width, rows + sequences * width, 0);
        }
        operation.begin(f, s, rows);
    });
    gather(f, x, first, sequences, without_token::repeats, f.value_at(f.graph.input, 0));
}
/// What is evaluated between fixed points k − 1 and k, and what became of the sequences in the former.
template <class T, class Backend>
void enter_stage(frame<T, Backend>& f, const workspace<T>& e, std::size_t k, convergence& all, index first,
                 index sequences) {
    f.stage_number = k;
    evaluate(f, f.stage().outside, 0, f.rows());
    if (k > 0) read_tallies(f, e.watches.tallies, k - 1, first, sequences, all);
    if (!f.stage().has_fixed_point()) return;
    hoist(f);
    f.each_row(sequences, body::begin_tallies{e.watches.tallies});
}
/// Carries out, and the value.
template <class T, class Backend, class X>
void end_forward(frame<T, Backend>& f, const workspace<T>& e, view<X> value, view<T> carry, convergence& all,
                 index first, index sequences) {
    const index carried = carry.shape()[1];
    all.join_fixed_points(first, sequences);
    for_each_carry(f, e, [&](const auto& operation, graph::slot s, T* rows, index at, index width) {
        if (width == 0) return;
        operation.end(f, s, rows);
        f.each_row(sequences, body::copy<T>{width, {rows, width}, {carry.data() + first * carried + at, carried}});
    });
    scatter(f, f.value_at(f.graph.root(), 0), false, value, first, sequences);
}
/// y* of the tile's sequences from `first` on, value [B,T,width]; carry [B, carry_width] enters as the carry
/// in and leaves as the carry out.
template <class T, class Backend, class X>
void forward(frame<T, Backend>& f, const workspace<T>& e, const solving& how, view<const X> x, view<X> value,
             view<T> carry, convergence& all, index first, index sequences) {
    begin_forward(f, e, x, carry, first, sequences);
    for (std::size_t k = 0; k < f.plan.stages.size(); ++k) {
        enter_stage(f, e, k, all, first, sequences);
        if (!f.stage().has_fixed_point()) break;
        T* const counts = counts_of_stage(f, e);
        in_chunks(f, [&] {
            for_each_chunk(f, [&](index row, index n) {
                solve_chunk(f, how, sequences, row, n, e.watches, counts + row / f.chunk, e.token, e.own);
            });
        });
    }
    end_forward(f, e, value, carry, all, first, sequences);
}

/// The nodes of the stage that are outside of its iteration, all rows at once, last to first. With them are
/// the hoisted parts of those that are inside.
template <class T, class Backend>
void back_outside(frame<T, Backend>& f) {
    for (graph::slot s = f.graph.size(); s-- > 0;) {
        if (f.graph[s].stage != f.stage_number) continue;
        const auto& operation = *f.plan.operations[s];
        if (f.graph.is_iterated(s))
            operation.hoist_back(f, s);
        else
            operation.back(f, s, 0, f.rows(), dependence::input);
    }
}

/// Cotangents of carries [B, carry_width]: of the carry out, which is read, and of the carry in, which is
/// added to. Null: not wanted.
template <class T>
struct carry_bars {
    view<const T> out{};
    view<T> in{};
};

/// Adds to the frame's gradient what y_bar sends back through the tile, and leaves what x receives with the
/// input's node. Values that were not kept are computed again first.
template <class T, class Backend, class X>
void backward(frame<T, Backend>& f, const workspace<T>& e, const adjoint& method, view<const X> x, view<const X> y_bar,
              const carry_bars<T>& carries, index first, index sequences, convergence& all) {
    const graph::view& g = f.graph;
    const auto of_sequences = [&](auto carry, index at) {
        const index carried = carry.shape()[1];
        return strided<std::remove_pointer_t<decltype(carry.data())>>{carry.data() + first * carried + at, carried};
    };
    for_each_carry(f, e, [&](const auto& operation, graph::slot s, T* rows, index at, index width) {
        if (width == 0 || !carries.out.data()) return operation.begin(f, s, nullptr);
        f.each_row(sequences, body::copy<T>{width, of_sequences(carries.out, at), {rows, width}});
        f.on.fill((f.tile - sequences) * width, rows + sequences * width, 0);
        operation.begin(f, s, rows);
    });
    gather(f, x, first, sequences, without_token::repeats, f.value_at(g.input, 0));
    f.phase = pass::replay;
    for_each_fixed_point(f, [&] {
        evaluate(f, f.stage().outside, 0, f.rows());
        if (f.unrolled) hoist(f);
        in_chunks(f, [&] {
            for_each_chunk(f, [&](index row, index n) {
                evaluate(f, f.stage().shifted, row, n);
                evaluate(f, f.stage().current, row, n);
                f.clear_behind(row, n, f.iterate_width(), f.value_at(f.stage().fixed_point, row));
            });
        });
    });
    evaluate(f, f.stage().outside, 0, f.rows());
    f.phase = pass::backward;
    f.work = {};

    // Those of iterations are cleared chunk by chunk; others are overwritten where one adjoint can.
    for (graph::slot s = 0; s < g.size(); ++s)
        if (!g[s].shared && g[s].overwritten_by == graph::nowhere && s != g.root() && (!g.is_iterated(s) || f.unrolled))
            f.on.fill(f.rows() * f.width(s), f.bar_at(s, 0), 0);
    gather(f, y_bar, first, sequences, without_token::zero, f.bar_at(g.root(), 0));
    back_outside(f);
    while (f.stage_number-- > 0) {
        for_each_iterated(f, [&](const auto& operation, graph::slot s) { operation.begin_adjoint(f, s); });
        f.each_row(sequences, body::begin_tallies{e.watches.tallies});
        const T* const counts = counts_of_stage(f, e);
        in_chunks(f, [&] { solve_adjoint(f, method, sequences, counts, e.w, e.adjoint, e.watches); });
        read_tallies(f, e.watches.tallies, f.stage_number, first, sequences, all);
        back_outside(f);
    }
    f.stage_number = 0;
    all.join_fixed_points(first, sequences);
    for (graph::slot s = 0; s < g.size(); ++s) f.plan.operations[s]->end_back(f, s);
    if (!carries.in.data()) return;
    for_each_carry(f, e, [&](const auto& operation, graph::slot s, T* rows, index at, index width) {
        if (width == 0) return;
        operation.end(f, s, rows);
        f.each_row(sequences, body::add_rows<T>{width, {rows, width}, {of_sequences(carries.in, at)}});
    });
}

}  // namespace fprnn::engine
