#pragma once

#include <fprnn/fixed_point/reduce.hpp>
#include <fprnn/fixed_point/schedule.hpp>
#include <fprnn/fixed_point/watch.hpp>
#include <fprnn/program/rules.hpp>

#include <array>
#include <concepts>

/// The fixed-point engine: one tile, chunk after chunk. It knows no operation and no mixer, only rules.
namespace fprnn::engine {

/// Whether E is y_{t−1}, or a product of it and of what depends on x alone.
template <class E>
inline constexpr bool is_early = std::same_as<E, shift_node<previous_node>>;
template <auto Name, class S, class W, class B, class Init>
inline constexpr bool is_early<linear_node<Name, S, W, B, Init>> = []<class... P>(type_list<P...>) {
    return S::depends == dependence::shifted && ((P::depends == dependence::input || is_early<P>)&&...);
}(typename linear_node<Name, S, W, B, Init>::operands{});

/// Calls g.operator()<E>() for nodes in an order in which they can be evaluated, or backwards. A device has the products side by
/// side, so that what is between two of them is much.
template <bool Backwards, class F, class Nodes, class G>
void for_each_in_order(const F&, Nodes nodes, G&& g) {
    const auto visit = [&](auto&& call) {
        if constexpr (Backwards)
            for_each_node_reversed(nodes, call);
        else
            for_each_node(nodes, call);
    };
    if constexpr (has_tiles<typename F::backend>) {
        visit(g);
    } else {
        visit([&]<class E>() {
            if constexpr (is_early<E> != Backwards) g.template operator()<E>();
        });
        visit([&]<class E>() {
            if constexpr (is_early<E> == Backwards) g.template operator()<E>();
        });
    }
}

/// Evaluates the nodes that depend on the previous iterate in the way `Depends`, for one chunk.
template <dependence Depends, class F>
void evaluate(F& f, index row, index n) {
    for_each_in_order<false>(f, nodes_that_depend<typename F::program, Depends>{},
                             [&]<class E>() { rule<E>::value(f, row, n); });
}

template <class F>
void open(F& f, index row, index n) {
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::open(f, row, n); });
}

/// y^ℓ = f(x, y^{ℓ−1}) for one chunk, from the rows of `prev` to the rows of f. What depends on y_{t−1} alone does not
/// change while a one-token chunk is iterated.
template <class F>
void step(F& f, index row, index n, bool first) {
    if (first || n > f.tile) {
        evaluate<dependence::shifted>(f, row, n);
        open(f, row, n);
    }
    evaluate<dependence::current>(f, row, n);
    f.work.evaluations += n;
}

/// Whether the innermost loop of a one-token chunk works on every row by itself; a linear map of prev needs them all.
template <class... E>
consteval bool rows_are_independent(type_list<E...>) {
    return ((E::depends != dependence::current || rule<E>::row_local) && ...);
}

/// Whether a one-token chunk is its own fixed point once it has been evaluated, because nothing in it sees y_t^{ℓ−1}.
template <class... E>
consteval bool tokens_are_explicit(type_list<E...>) {
    return ((E::depends != dependence::current || std::same_as<E, previous_node>)&&...);
}

/// Takes the step of a chunk's n rows from `from` to `to` and goes there (body::advance). A device has a team for each token.
template <class F>
void advance(F& f, index sequences, index n, const typename F::scalar* to, typename F::scalar* from, bool arrives,
             const watches<typename F::scalar>& of) {
    using T = typename F::scalar;
    const index D = f.size.d_inner, tokens = n / f.tile;
    if constexpr (!has_tiles<typename F::backend>) {
        if (tokens > 1) {
            const token_steps<T> steps(f.steps, f.tile, tokens);
            f.each_row(n, body::measure_steps<T>{D, to, from, of, steps});
            f.each_row(sequences, body::take_steps<T>{arrives, of, steps});
            f.each_row(n, body::go_to_steps<T>{D, to, from, steps});
            return;
        }
    }
    f.each_row(sequences, body::advance<T>{D, tokens, f.tile * D, to, from, arrives, of});
}

/// Calls what happens in chunks. Those of one token have a row for each sequence, and what happens there touches no other sequence's.
template <class F, class Calls>
void in_chunks(F& f, const Calls& calls) {
    if (f.chunk != 1 || f.unrolled) return calls();
    const auto& [d_in, d_inner, d_state, d_out] = f.size;
    const std::array sizes{f.tokens, f.tile, d_in, d_inner, d_state, d_out};
    f.on.pass(f.tokens, sizes, [&, memory = f.memory, work = f.work] {
        f.memory = memory, f.work = work;  // what rules remember on the host, where all is called again
        f.on.by_rows(f.tile, calls);
    });
}

/// Solves the chunk of n rows from `row`. When it is done, `prev` holds the point y at which f was last evaluated, the
/// rows of all nodes belong to that point, and f's rows are the value f(y). `counts` [tile] receives the iterations;
/// `scratch` is what a reduced token needs.
template <class F>
void solve_chunk(F& f, const chunked& schedule, index sequences, index row, index n,
                 const watches<typename F::scalar>& of, typename F::scalar* counts, typename F::scalar* scratch) {
    using T = typename F::scalar;
    using nodes = typename F::program::nodes;
    const index D = f.size.d_inner, tokens = n / f.tile;
    T* y = f.template value_at<previous_node>(row);
    const T* fy = f.template value_at<typename F::program::fixed_point>(row);
    f.on.fill(n * D, y, 0);
    f.span = tokens;
    f.each_row(sequences, body::begin_watches<T>{schedule.tolerance, schedule.ell_max, of});

    const auto take_step = [&] { advance(f, sequences, n, fy, y, false, of); };
    if (tokens == 1 && rows_are_independent(nodes{})) {
        evaluate<dependence::shifted>(f, row, n);
        open(f, row, n);
        if constexpr (is_reducible<typename F::program>) {
            reduced_tokens<F> reduced(f, row, sequences, scratch);
            reduced.open();
            reduced.iterate(schedule.tolerance, schedule.ell_max - 1, of);
        }
        evaluate<dependence::current>(f, row, n);
        f.work.evaluations += n;
        if constexpr (tokens_are_explicit(nodes{})) f.on.copy(n * D, fy, y);
        take_step();
        if constexpr (has_tiles<typename F::backend>) {
            for (index s = 0; s < sequences; ++s) {
                const watches<T> its{of.one + s, of.running + s, of.tallies + s};
                while (of.one[s].running()) {
                    evaluate<dependence::current>(f, row + s, 1);
                    ++f.work.evaluations;
                    f.each_row(1, body::advance<T>{D, 1, D, fy + s * D, y + s * D, false, its});
                }
            }
        } else if constexpr (!tokens_are_explicit(nodes{})) {
            f.on.repeat_by_rows(sequences, of.running, [&] {
                evaluate<dependence::current>(f, row, n);
                f.work.evaluations += n;
                take_step();
            });
        }
    } else {
        step(f, row, n, true);
        take_step();
        f.on.repeat(sequences, of.running, [&] {
            step(f, row, n, false);
            take_step();
        });
    }
    for_each_node(nodes{}, [&]<class E>() { rule<E>::close(f, row, n); });
    f.each_row(sequences, body::report<T>{tokens, of, counts});
}

}  // namespace fprnn::engine
