#pragma once

#include <fprnn/fixed_point/reduce.hpp>
#include <fprnn/fixed_point/schedule.hpp>
#include <fprnn/fixed_point/watch.hpp>
#include <fprnn/program/rules.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>

/// The fixed-point engine: one tile, chunk after chunk. It knows no operation and no mixer, only rules.
namespace fprnn::engine {

/// Evaluates the iteration's nodes that depend on the previous iterate in the way `Depends`, for one chunk.
template <dependence Depends, class F>
void evaluate(F& f, index row, index n) {
    for_each_node(typename F::program::nodes{}, [&]<class E>() {
        if constexpr (E::depends == Depends) rule<E>::value(f, row, n);
    });
}

template <class F>
void open(F& f, index row, index n) {
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::open(f, row, n); });
}

template <index N, class W>
std::array<W, static_cast<std::size_t>(N)> filled(const W& w) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<W, static_cast<std::size_t>(N)>{((void)I, w)...};
    }
    (std::make_index_sequence<static_cast<std::size_t>(N)>{});
}

/// y^ℓ = f(x, y^{ℓ−1}) for one chunk, from the rows of `prev` to the rows of f. What depends on y_{t−1} alone does not
/// change while a one-token chunk is iterated.
template <class F>
void step(F& f, index row, index n, bool first) {
    if (first || n > F::tile) {
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

/// Solves the chunk of n rows from `row`. When it is done, `prev` holds the point y at which f was last evaluated, the
/// rows of all nodes belong to that point, and f's rows are the value f(y). `counts` [tile] receives the iterations;
/// `scratch` is what a reduced token needs.
template <class F>
void solve_chunk(F& f, const chunked& schedule, index sequences, index first_sequence, index row, index n,
                 typename F::scalar* counts, typename F::scalar* scratch, convergence& all) {
    using T = typename F::scalar;
    using team = typename F::team;
    using fixed_point = typename F::program::fixed_point;
    const index D = f.size.d_inner, stride = F::tile * D, tokens = n / F::tile;
    T* y = f.template value_at<previous_node>(row);
    const T* fy = f.template value_at<fixed_point>(row);
    std::fill_n(y, n * D, T(0));
    f.span = tokens;

    const auto advance = [&](watch<T>& w, int ell, index s) {
        w.take(ell, measure_step<team>(fy + s * D, y + s * D, D, stride, tokens));
        if (!w.running()) return;
        for (index t = 0; t < tokens; ++t) std::copy_n(fy + t * stride + s * D, D, y + t * stride + s * D);
    };
    std::array<watch<T>, static_cast<std::size_t>(F::tile)> watches =
        filled<F::tile>(watch<T>(schedule.tolerance, schedule.ell_max));
    if (tokens == 1 && rows_are_independent(typename F::program::nodes{})) {
        evaluate<dependence::shifted>(f, row, n);
        open(f, row, n);
        std::array<int, static_cast<std::size_t>(F::tile)> begun{};  // iterations in R numbers
        if constexpr (is_reducible<typename F::program>) {
            reduced_tokens<F> reduced(f, row, sequences, scratch);
            reduced.open();
            reduced.iterate(schedule.tolerance, schedule.ell_max - 1, begun.data());
        }
        evaluate<dependence::current>(f, row, n);
        f.work.evaluations += n;
        if constexpr (tokens_are_explicit(typename F::program::nodes{})) std::copy_n(fy, n * D, y);
        for (index s = 0; s < sequences; ++s) {
            watch<T>& w = watches[static_cast<std::size_t>(s)];
            int ell = begun[static_cast<std::size_t>(s)];
            for (advance(w, ++ell, s); w.running(); advance(w, ++ell, s)) {
                evaluate<dependence::current>(f, row + s, 1);
                ++f.work.evaluations;
            }
        }
    } else {
        bool running = true;
        for (int ell = 1; running; ++ell) {
            step(f, row, n, ell == 1);
            running = false;
            for (index s = 0; s < sequences; ++s) {
                watch<T>& w = watches[static_cast<std::size_t>(s)];
                if (w.running()) advance(w, ell, s);
                running = running || w.running();
            }
        }
    }
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::close(f, row, n); });
    for (index s = 0; s < F::tile; ++s) {
        const watch<T>& w = watches[static_cast<std::size_t>(s)];
        counts[s] = T(s < sequences ? w.iterations() : 0);
        if (s < sequences) w.report(all, first_sequence + s, tokens);
    }
}

}  // namespace fprnn::engine
