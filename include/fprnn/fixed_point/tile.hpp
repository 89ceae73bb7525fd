#pragma once

#include <fprnn/core/arena.hpp>
#include <fprnn/fixed_point/solve_adjoint.hpp>

#include <algorithm>
#include <concepts>

/// One tile of sequences through a whole program, there and back.
namespace fprnn::engine {

template <class Program>
inline constexpr bool has_fixed_point = !std::same_as<typename Program::fixed_point, void>;

/// Memory of a tile that belongs to the engine and not to a node.
template <class T>
struct workspace {
    T* carry = nullptr;    ///< [tile, width] of each node that carries, one after the other
    T* counts = nullptr;   ///< [chunks, tile], iterations
    T* token = nullptr;    ///< scratch of a reduced token
    T* w = nullptr;        ///< [C, tile, D]
    T* adjoint = nullptr;  ///< scratch of the adjoint's solver
    engine::watches<T> watches;
};

/// Numbers that a sequence's carry holds.
template <class Program>
index carry_width(const dims& size) {
    index n = 0;
    for_each_node(typename Program::nodes{}, [&]<class E>() { n += rule<E>::carry(size); });
    return n;
}

template <class F>
F make_frame(typename F::backend& on, index sequences, const dims& size, index tokens, pass phase,
             const chunked& schedule, const adjoint& method) {
    F f(on, sequences);
    f.size = size;
    f.tokens = tokens;
    f.chunk = std::min(schedule.length, std::max<index>(tokens, 1));
    f.phase = phase;
    f.unrolled = phase != pass::forward && detail::evaluations_back(method) > 1;
    for_each_node(typename F::program::nodes{},
                  [&]<class E>() { f.width[F::template slot<E>] = rule<E>::width(size); });
    return f;
}

/// Gives every node its rows. Nodes outside `kept` are computed again on the way back.
template <class F>
workspace<typename F::scalar> lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>& kept) {
    using T = typename F::scalar;
    using program = typename F::program;
    workspace<T> e;
    for_each_node(typename program::nodes{}, [&]<class E>() {
        if constexpr (!rule<E>::broadcast && !detail::is_fixed_point<E>)
            f.value[F::template slot<E>] = (rule<E>::kept ? kept : scratch).take(f.rows() * f.template width_of<E>());
        rule<E>::lay_out(f, scratch, kept);
    });
    index packing = 0;
    for_each_node(typename program::nodes{}, [&]<class E>() { packing = std::max(packing, rule<E>::packing_size(f)); });
    f.packing = {scratch.take(packing), {packing}};
    e.carry = scratch.take(f.tile * carry_width<program>(f.size));
    if constexpr (has_fixed_point<program>) {
        e.counts = kept.take((f.tokens + f.chunk - 1) / f.chunk * f.tile);
        e.watches = {scratch.template take_room<watch<T>>(f.tile), scratch.take(f.tile),
                     scratch.template take_room<tally>(f.tile)};
        if constexpr (!has_tiles<typename F::backend>)
            if (f.chunk > 1) f.steps = scratch.take(token_steps<T>::size(f.tile, f.chunk));
    }
    if (f.phase == pass::forward) {
        if constexpr (has_fixed_point<program>) e.token = scratch.take(token_scratch(f));
    } else {
        for_each_node(typename program::nodes{}, [&]<class E>() {
            if constexpr (!rule<E>::broadcast)
                f.bar[F::template slot<E>] = scratch.take(f.template bar_rows_of<E>() * f.template width_of<E>());
        });
        if constexpr (has_fixed_point<program>) {
            e.w = scratch.take(f.chunk * f.tile * f.size.d_inner);
            e.adjoint = scratch.take(adjoint_scratch(f));
        }
    }
    return e;
}

struct tile_sizes {
    index scratch, kept;
};
/// Numbers that lay_out takes from its two arenas.
template <class F>
tile_sizes measure_tile(typename F::backend& on, index sequences, const dims& size, index tokens, pass phase,
                        const chunked& schedule, const adjoint& method) {
    F f = make_frame<F>(on, sequences, size, tokens, phase, schedule, method);
    arena<typename F::scalar> scratch, kept;
    lay_out(f, scratch, kept);
    return {scratch.used(), kept.used()};
}

/// Between the sequences [B,T,D] of a batch, of which the tile's first one begins at `batch`, and the tile's rows.
template <class T>
struct tile_rows {
    index tokens, tile, channels;
    T* batch;

    /// Row t·tile + s.
    FPRNN_BOTH T* operator[](index row) const { return batch + (row % tile * tokens + row / tile) * channels; }
};

}  // namespace fprnn::engine

namespace fprnn::body {

/// From [B,T,D], stored as X, to the tile's time-major rows; places without a sequence are zero.
template <class T, class X = T>
struct gather {
    engine::tile_rows<const X> from;
    index sequences;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        T* y = to + r * from.channels;
        const X* x = r % from.tile < sequences ? from[r] : nullptr;
        Team::each(from.channels, [&](auto lane) {
            using V = decltype(lane.load(y));
            lane.store(y, x ? lane.load(x) : V(T(0)));
        });
    }
};

/// And back, to be stored or to be added.
template <class T, class X = T>
struct scatter {
    const T* from;
    index sequences;
    bool adds;
    engine::tile_rows<X> to;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        if (r % to.tile >= sequences) return;
        const T* x = from + r * to.channels;
        X* y = to[r];
        Team::each(to.channels, [&](auto lane) {
            if (adds)
                lane.add(y, lane.load(x));
            else
                lane.store(y, lane.load(x));
        });
    }
};

}  // namespace fprnn::body

namespace fprnn::engine {

/// The tile's rows of x [B,T,D], and where they stand there.
template <class F, class X, class T>
void gather(F& f, view<const X> x, index first, index sequences, T* rows) {
    const index tokens = x.shape()[1], D = x.shape()[2];
    f.each_row(tokens * f.tile,
               body::gather<T, X>{{tokens, f.tile, D, x.data() + first * tokens * D}, sequences, rows});
}
template <class F, class T, class X>
void scatter(F& f, const T* rows, bool adds, view<X> x, index first, index sequences) {
    const index tokens = x.shape()[1], D = x.shape()[2];
    f.each_row(tokens * f.tile,
               body::scatter<T, X>{rows, sequences, adds, {tokens, f.tile, D, x.data() + first * tokens * D}});
}

/// What became of the tile's sequences, whose first one is number `first` of `all`.
template <class F>
void read_tallies(F& f, const tally* tallies, index first, index sequences, convergence& all) {
    const auto of = f.on.seen(sequences, tallies);
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

/// Calls g(carry rows) of every node that carries: [tile, width], and where its numbers stand in a sequence's carry.
template <class F, class G>
void for_each_carry(F& f, const workspace<typename F::scalar>& e, G&& g) {
    index at = 0;
    for_each_node(typename F::program::nodes{}, [&]<class E>() {
        const index width = rule<E>::carry(f.size);
        g.template operator()<E>(e.carry + at * f.tile, at, width);
        at += width;
    });
}

/// y* of the tile's sequences from `first` on, value [B,T,width]; carry [B, carry_width] enters as the carry in and leaves as
/// the carry out.
template <class F, class T, class X>
void forward(F& f, const workspace<T>& e, const chunked& schedule, view<const X> x, view<X> value, view<T> carry,
             convergence& all, index first, index sequences) {
    using nodes = typename F::program::nodes;
    using root = typename F::program::root;
    const index carried = carry.shape()[1];
    for_each_carry(f, e, [&]<class E>(T* rows, index at, index width) {
        if (width > 0) {
            f.each_row(sequences, body::copy<T>{width, {carry.data() + first * carried + at, carried}, {rows, width}});
            f.on.fill((f.tile - sequences) * width, rows + sequences * width, 0);
        }
        rule<E>::begin(f, rows);
    });
    gather(f, x, first, sequences, f.template value_at<input_node>(0));
    evaluate<dependence::input>(f, 0, f.rows());
    if constexpr (has_fixed_point<typename F::program>) {
        for_each_node(nodes{}, [&]<class E>() { rule<E>::hoist(f); });
        f.each_row(sequences, body::begin_tallies{e.watches.tallies});
        in_chunks(f, [&] {
            for (index t = 0; t < f.tokens; t += f.chunk)
                solve_chunk(f, schedule, sequences, t * f.tile, std::min(f.chunk, f.tokens - t) * f.tile, e.watches,
                            e.counts + t / f.chunk * f.tile, e.token);
        });
        evaluate<dependence::output>(f, 0, f.rows());
        read_tallies(f, e.watches.tallies, first, sequences, all);
    }
    for_each_carry(f, e, [&]<class E>(T* rows, index at, index width) {
        if (width == 0) return;
        rule<E>::end(f, rows);
        f.each_row(sequences, body::copy<T>{width, {rows, width}, {carry.data() + first * carried + at, carried}});
    });
    scatter(f, f.template value_at<root>(0), false, value, first, sequences);
}

/// The nodes outside of the iteration, all rows at once, last to first.
template <dependence Depends, class F>
void back_outside(F& f) {
    constexpr dependence last = Depends == dependence::input ? dependence::current : Depends;
    for_each_node_reversed(nodes_that_depend<typename F::program, Depends, last>{}, [&]<class E>() {
        if constexpr (E::depends == Depends)
            rule<E>::template back<dependence::input>(f, 0, f.rows());
        else
            rule<E>::hoist_back(f);
    });
}

/// Adds to the frame's gradient what y_bar sends back through the tile, and leaves what x receives with the input's node. Values that
/// were not kept are computed again first.
template <class F, class T, class X>
void backward(F& f, const workspace<T>& e, const adjoint& method, view<const X> x, view<const X> y_bar, index first,
              index sequences, convergence& all) {
    using nodes = typename F::program::nodes;
    using root = typename F::program::root;
    constexpr bool solved = has_fixed_point<typename F::program>;
    for_each_node(nodes{}, [&]<class E>() { rule<E>::begin(f, nullptr); });
    gather(f, x, first, sequences, f.template value_at<input_node>(0));
    f.phase = pass::replay;
    evaluate<dependence::input>(f, 0, f.rows());
    if constexpr (solved) {
        if (f.unrolled) for_each_node(nodes{}, [&]<class E>() { rule<E>::hoist(f); });
        in_chunks(f, [&] {
            for (index t = 0; t < f.tokens; t += f.chunk) {
                const index row = t * f.tile, n = std::min(f.chunk, f.tokens - t) * f.tile;
                evaluate<dependence::shifted>(f, row, n);
                evaluate<dependence::current>(f, row, n);
            }
        });
        evaluate<dependence::output>(f, 0, f.rows());
    }
    f.phase = pass::backward;
    f.work = {};

    for_each_node(nodes{}, [&]<class E>() {
        // Those of the iteration are cleared chunk by chunk; others are stored by whoever comes first.
        constexpr bool iterated = E::depends == dependence::shifted || E::depends == dependence::current;
        if constexpr (!rule<E>::broadcast && !is_stored<typename F::program, E> && !std::same_as<E, root>)
            if (!iterated || f.unrolled) f.on.fill(f.rows() * f.template width_of<E>(), f.template bar_at<E>(0), 0);
    });
    gather(f, y_bar, first, sequences, f.template bar_at<root>(0));
    if constexpr (solved) {
        back_outside<dependence::output>(f);
        f.each_row(sequences, body::begin_tallies{e.watches.tallies});
        in_chunks(f, [&] { solve_adjoint(f, method, sequences, e.counts, e.w, e.adjoint, e.watches); });
        read_tallies(f, e.watches.tallies, first, sequences, all);
    }
    back_outside<dependence::input>(f);
    for_each_node(nodes{}, [&]<class E>() { rule<E>::end_back(f); });
}

}  // namespace fprnn::engine
