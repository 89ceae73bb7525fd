#pragma once

#include <fprnn/core/arena.hpp>
#include <fprnn/fixed_point/solve_adjoint.hpp>

#include <algorithm>
#include <concepts>
#include <variant>

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
};

/// Numbers that a sequence's carry holds.
template <class Program>
index carry_width(const dims& size) {
    index n = 0;
    for_each_node(typename Program::nodes{}, [&]<class E>() { n += rule<E>::carry(size); });
    return n;
}

template <class F>
F make_frame(const dims& size, index tokens, pass phase, const chunked& schedule, const adjoint& method) {
    F f;
    f.size = size;
    f.tokens = tokens;
    f.chunk = std::min(schedule.length, std::max<index>(tokens, 1));
    f.phase = phase;
    f.unrolled = phase != pass::forward && std::holds_alternative<unrolled>(method);
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
    e.carry = scratch.take(F::tile * carry_width<program>(f.size));
    if constexpr (has_fixed_point<program>) e.counts = kept.take((f.tokens + f.chunk - 1) / f.chunk * F::tile);
    if (f.phase == pass::forward) {
        if constexpr (has_fixed_point<program>) e.token = scratch.take(token_scratch<F>(f.size.d_inner));
    } else {
        for_each_node(typename program::nodes{}, [&]<class E>() {
            if constexpr (!rule<E>::broadcast)
                f.bar[F::template slot<E>] = scratch.take(f.template bar_rows_of<E>() * f.template width_of<E>());
        });
        if constexpr (has_fixed_point<program>) {
            e.w = scratch.take(f.chunk * F::tile * f.size.d_inner);
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
tile_sizes measure_tile(const dims& size, index tokens, pass phase, const chunked& schedule, const adjoint& method) {
    F f = make_frame<F>(size, tokens, phase, schedule, method);
    arena<typename F::scalar> scratch, kept;
    lay_out(f, scratch, kept);
    return {scratch.used(), kept.used()};
}

/// From [B,T,D] to the tile's time-major rows; places without a sequence are zero.
template <class T>
void gather(view<const T> from, index first, index sequences, index tile, T* rows) {
    const index tokens = from.shape()[1], D = from.shape()[2];
    for (index t = 0; t < tokens; ++t)
        for (index s = 0; s < tile; ++s, rows += D) {
            if (s < sequences)
                std::copy_n(from.data() + ((first + s) * tokens + t) * D, D, rows);
            else
                std::fill_n(rows, D, T(0));
        }
}

/// Calls g(carry rows) of every node that carries: [tile, width], and where its numbers stand in a sequence's carry.
template <class F, class G>
void for_each_carry(F& f, const workspace<typename F::scalar>& e, G&& g) {
    index at = 0;
    for_each_node(typename F::program::nodes{}, [&]<class E>() {
        const index width = rule<E>::carry(f.size);
        g.template operator()<E>(e.carry + at * F::tile, at, width);
        at += width;
    });
}

/// y* of the tile's sequences from `first` on; result.carry [B, carry_width] enters as the carry in and leaves as the carry
/// out.
template <class F, class T>
void forward(F& f, const workspace<T>& e, const chunked& schedule, view<const T> x, solution<T>& result, index first,
             index sequences) {
    using nodes = typename F::program::nodes;
    using root = typename F::program::root;
    for_each_carry(f, e, [&]<class E>(T* rows, index at, index width) {
        for (index s = 0; s < F::tile; ++s)
            for (index j = 0; j < width; ++j)
                rows[s * width + j] = s < sequences ? result.carry(first + s, at + j) : T(0);
        rule<E>::begin(f, rows);
    });
    gather(x, first, sequences, F::tile, f.template value_at<input_node>(0));
    evaluate<dependence::input>(f, 0, f.rows());
    if constexpr (has_fixed_point<typename F::program>) {
        for_each_node(nodes{}, [&]<class E>() { rule<E>::hoist(f); });
        for (index t = 0; t < f.tokens; t += f.chunk)
            solve_chunk(f, schedule, sequences, first, t * F::tile, std::min(f.chunk, f.tokens - t) * F::tile,
                        e.counts + t / f.chunk * F::tile, e.token, result);
        evaluate<dependence::output>(f, 0, f.rows());
    }
    for_each_carry(f, e, [&]<class E>(T* rows, index at, index width) {
        if (width == 0) return;
        rule<E>::end(f, rows);
        for (index s = 0; s < sequences; ++s) std::copy_n(rows + s * width, width, &result.carry(first + s, at));
    });
    const index D = f.template width_of<root>();
    const T* rows = f.template value_at<root>(0);
    for (index t = 0; t < f.tokens; ++t)
        for (index s = 0; s < sequences; ++s)
            std::copy_n(rows + (t * F::tile + s) * D, D, &result.value(first + s, t, 0));
}

/// The nodes outside of the iteration, all rows at once, last to first.
template <dependence Depends, class F>
void back_outside(F& f) {
    for_each_node_reversed(typename F::program::nodes{}, [&]<class E>() {
        if constexpr (E::depends == Depends)
            rule<E>::template back<dependence::input>(f, 0, f.rows());
        else if constexpr (Depends == dependence::input && E::depends != dependence::output)
            rule<E>::hoist_back(f);
    });
}

/// Adds to x_bar and to the frame's gradient what y_bar sends back through the tile. Values that were not kept are computed
/// again first.
template <class F, class T>
void backward(F& f, const workspace<T>& e, const adjoint& method, view<const T> x, view<const T> y_bar, view<T> x_bar,
              index first, index sequences, convergence& all) {
    using nodes = typename F::program::nodes;
    using root = typename F::program::root;
    constexpr bool solved = has_fixed_point<typename F::program>;
    for_each_node(nodes{}, [&]<class E>() { rule<E>::begin(f, nullptr); });
    gather(x, first, sequences, F::tile, f.template value_at<input_node>(0));
    f.phase = pass::replay;
    evaluate<dependence::input>(f, 0, f.rows());
    if constexpr (solved) {
        if (f.unrolled) for_each_node(nodes{}, [&]<class E>() { rule<E>::hoist(f); });
        for (index t = 0; t < f.tokens; t += f.chunk) {
            const index row = t * F::tile, n = std::min(f.chunk, f.tokens - t) * F::tile;
            evaluate<dependence::shifted>(f, row, n);
            evaluate<dependence::current>(f, row, n);
        }
        evaluate<dependence::output>(f, 0, f.rows());
    }
    f.phase = pass::backward;
    f.work = {};

    for_each_node(nodes{}, [&]<class E>() {
        // Those of the iteration are cleared chunk by chunk; others are stored by whoever comes first.
        constexpr bool iterated = E::depends == dependence::shifted || E::depends == dependence::current;
        if constexpr (!rule<E>::broadcast && !F::template stored<E> && !std::same_as<E, root>)
            if (!iterated || f.unrolled)
                std::fill_n(f.template bar_at<E>(0), f.rows() * f.template width_of<E>(), T(0));
    });
    gather(y_bar, first, sequences, F::tile, f.template bar_at<root>(0));
    if constexpr (solved) {
        back_outside<dependence::output>(f);
        solve_adjoint(f, method, sequences, first, e.counts, e.w, e.adjoint, all);
    }
    back_outside<dependence::input>(f);
    for_each_node(nodes{}, [&]<class E>() { rule<E>::end_back(f); });

    const index D = f.size.d_in;
    const T* rows = f.template bar_at<input_node>(0);
    for (index t = 0; t < f.tokens; ++t)
        for (index s = 0; s < sequences; ++s)
            F::team::each(D, [&](auto lane) {
                lane.add(x_bar.data() + ((first + s) * f.tokens + t) * D, lane.load(rows + (t * F::tile + s) * D));
            });
}

}  // namespace fprnn::engine
