#pragma once

#include <fprnn/fixed_point/adjoint.hpp>
#include <fprnn/fixed_point/gmres.hpp>
#include <fprnn/fixed_point/solve.hpp>

#include <algorithm>
#include <variant>

/// The way back through the chunks of one tile: w = (I − J_hᵀ)⁻¹ δ or terms of it, or through iterations one by one.
namespace fprnn::engine {

/// Sets the cotangents of the iteration's own nodes to zero in a chunk.
template <dependence Reach, class F>
void clear_bars(F& f, index row, index n) {
    for_each_node(nodes_that_depend<typename F::program, Reach, dependence::current>{},
                  [&]<class E>() { f.on.fill(n * f.template width_of<E>(), f.template bar_at<E>(row), 0); });
}

template <class F>
void send(F& f, index row, index n, const typename F::scalar* w) {
    using E = typename solved_expression<typename F::program::fixed_point>::type;
    f.one_row(body::add<typename F::scalar>{n * f.size.d_inner, w, f.template bar_at<E>(row)});
}

/// Sends the cotangent w of f's rows back through the iteration's nodes as far as `Reach`.
template <dependence Reach, class F>
void back_through(F& f, index row, index n, const typename F::scalar* w) {
    constexpr dependence inside = Reach == dependence::current ? dependence::current : dependence::shifted;
    clear_bars<inside>(f, row, n);
    send(f, row, n, w);
    for_each_in_order<true>(f, nodes_that_depend<typename F::program, inside, dependence::current>{},
                            [&]<class E>() { rule<E>::template back<Reach>(f, row, n); });
}

/// One iteration's map w ↦ J_hᵀ w of a chunk; the result is in the bars of `prev`.
template <class F>
void apply_transposed_jacobian(F& f, index row, index n, const typename F::scalar* w) {
    if (n == f.tile)
        back_through<dependence::current>(f, row, n, w);
    else
        back_through<dependence::shifted>(f, row, n, w);
}

/// w ← δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ for a chunk, for the sequences whose watches run.
template <class F>
void step_adjoint(F& f, index sequences, index row, index n, const typename F::scalar* delta, typename F::scalar* w,
                  typename F::scalar* next, const watches<typename F::scalar>& of) {
    using T = typename F::scalar;
    const index D = f.size.d_inner;
    apply_transposed_jacobian(f, row, n, w);
    f.one_row(body::sum<T>{n * D, delta, f.template bar_at<previous_node>(row), next});
    advance(f, sequences, n, next, w, true, of);
}

/// Solves w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ by GMRES for n rows of one token, the first `sequences` of which have watches.
template <class F>
void gmres_adjoint(F& f, const implicit& options, index sequences, index row, index n, const typename F::scalar* delta,
                   typename F::scalar* w, typename F::scalar* scratch, const watches<typename F::scalar>& of) {
    using T = typename F::scalar;
    const index D = f.size.d_inner;
    T *const asked = scratch, *const own = asked + n * D;
    f.each_row(sequences, body::begin_gmres<T>{D, asked, own});
    f.on.repeat_by_rows(sequences, of.running, [&] {
        back_through<dependence::current>(f, row, n, asked);
        f.each_row(sequences, body::go_on_gmres<T>{D, asked, own, f.template bar_at<previous_node>(row), delta, w,
                                                   options.tolerance, options.ell_max, of});
    });
}

/// Numbers of scratch that solve_adjoint_chunk needs beside w.
template <class F>
index adjoint_scratch(const F& f) {
    const index D = f.size.d_inner, row = D + kernel::gmres_size<typename F::scalar>(D);
    if constexpr (has_tiles<typename F::backend>)
        return std::max({f.chunk * f.tile * D, row, token_scratch(f)});
    else
        return std::max(f.chunk * f.tile * D, token_scratch(f) + f.tile * row);
}

template <class F>
void solve_adjoint_chunk(F& f, const implicit& options, index sequences, index row, index n,
                         const typename F::scalar* delta, typename F::scalar* w, typename F::scalar* scratch,
                         const watches<typename F::scalar>& of) {
    using T = typename F::scalar;
    const index D = f.size.d_inner;
    f.each_row(sequences, body::begin_watches<T>{options.tolerance, options.ell_max, of});
    if (n > f.tile || !rows_are_independent(typename F::program::nodes{})) {
        const auto iterate = [&] { step_adjoint(f, sequences, row, n, delta, w, scratch, of); };
        iterate();
        f.on.repeat(sequences, of.running, iterate);
    } else {
        if constexpr (is_reducible<typename F::program>) {
            reduced_tokens<F> reduced(f, row, sequences, scratch);
            reduced.open_adjoint();
            reduced.solve_adjoint(options.tolerance, delta, w, of);
        }
        if constexpr (has_tiles<typename F::backend>) {
            for (index s = 0; s < sequences; ++s)
                if (of.one[s].running())
                    gmres_adjoint(f, options, 1, row + s, 1, delta + s * D, w + s * D, scratch,
                                  {of.one + s, of.running + s, of.tallies + s});
        } else {
            // A row may be here while others are being reduced.
            gmres_adjoint(f, options, sequences, row, n, delta, w, scratch + token_scratch(f), of);
        }
    }
    f.each_row(sequences, body::report<T>{n / f.tile, of, nullptr});
}

/// What a chunk hands to the chunk before it: the cotangent of y_{t−1} at its first token.
template <class F>
void pass_to_chunk_before(F& f, index row) {
    if constexpr (contains<typename F::program::nodes, shift_node<previous_node>>) {
        using fixed_point = typename F::program::fixed_point;
        if (row == 0) return;
        f.one_row(body::add<typename F::scalar>{f.tile * f.size.d_inner,
                                                f.template bar_at<shift_node<previous_node>>(row),
                                                f.template bar_at<fixed_point>(row - f.tile)});
    }
}

/// w = the first k terms of (I − J_hᵀ)⁻¹ δ and the first k − 1 of (I − J_hᵀ)⁻¹ (∂carry_out/∂y)ᵀ c̄, by Horner's rule.
/// The chunk before receives the cotangent of its y from k − 1 terms, because y_{t−1} is one application away.
template <class F>
void neumann_chunk(F& f, int k, index row, index n, const typename F::scalar* delta, typename F::scalar* w) {
    for (int terms = 1; terms < k; ++terms) {
        const bool is_last = terms + 1 == k;
        if (is_last)
            back_through<dependence::shifted>(f, row, n, w);
        else
            apply_transposed_jacobian(f, row, n, w);
        if (is_last) pass_to_chunk_before(f, row);
        f.one_row(body::sum<typename F::scalar>{n * f.size.d_inner, delta, f.template bar_at<previous_node>(row), w});
    }
}

/// Back through the last `evaluations` of a chunk, from the value f(y^{ℓ*−1}) to y⁰ = 0 when there are as many.
/// Iterations are repeated as they were; the iterates that are differentiated at are kept. `counts` [tile] says how
/// many iterations each sequence took.
template <class F>
void unroll_chunk(F& f, index evaluations, index sequences, index row, index n, const typename F::scalar* counts,
                  const typename F::scalar* delta, typename F::scalar* w) {
    using T = typename F::scalar;
    using fixed_point = typename F::program::fixed_point;
    using memory = typename F::backend::template memory<T>;
    const index D = f.size.d_inner, count = n * D, stride = f.tile * D, tokens = n / f.tile;
    T* y = f.template value_at<previous_node>(row);
    T* fy = f.template value_at<fixed_point>(row);
    memory solved(f.on, count);
    f.on.copy(count, fy, solved.data());
    const auto took = f.on.seen(sequences, counts);
    index longest = 0;
    for (index s = 0; s < sequences; ++s) longest = std::max(longest, static_cast<index>(took[s]));
    const index depth = std::min(evaluations, longest);
    // Sequences are aligned at their last iteration: iterates[i] holds y^{ℓ*−1−i} of each, zero where there is none.
    memory iterates(f.on, depth * count);
    f.on.fill(depth * count, iterates.data(), 0);
    for (index ell = 0; ell < longest; ++ell) {
        if (ell == 0) {
            f.on.fill(count, y, 0);
        } else {
            step(f, row, n, true);
            f.on.copy(count, fy, y);
        }
        for (index s = 0; s < sequences; ++s) {
            const index i = static_cast<index>(took[s]) - 1 - ell;
            if (i < 0 || i >= depth) continue;
            for (index t = 0; t < tokens; ++t) {
                const index at = t * stride + s * D;
                f.on.copy(D, y + at, iterates.data() + i * count + at);
            }
        }
    }
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::before_unrolled_chunk(f); });
    f.on.copy(count, delta, w);
    for (index i = 0; i < depth; ++i) {
        f.on.copy(count, iterates.data() + i * count, y);
        // A sequence that took fewer iterations has no cotangent before its first.
        for (index s = 0; s < sequences; ++s)
            if (static_cast<index>(took[s]) <= i)
                for (index t = 0; t < tokens; ++t) f.on.fill(D, w + t * stride + s * D, 0);
        step(f, row, n, true);
        back_through<dependence::input>(f, row, n, w);
        if (i + 1 < evaluations) pass_to_chunk_before(f, row);
        for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::after_unrolled_step(f, row, n); });
        f.on.copy(count, f.template bar_at<previous_node>(row), w);
    }
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::after_unrolled_chunk(f, row, n); });
    f.on.copy(count, solved.data(), fy);  // y* has readers outside of the iteration
}

/// The adjoint of all chunks, last to first. The cotangent of y* enters in the bars of the fixed point.
template <class F>
void solve_adjoint(F& f, const adjoint& method, index sequences, const typename F::scalar* counts,
                   typename F::scalar* w, typename F::scalar* scratch, const watches<typename F::scalar>& of) {
    using fixed_point = typename F::program::fixed_point;
    const index chunks = (f.tokens + f.chunk - 1) / f.chunk, evaluations = detail::evaluations_back(method);
    for (index k = chunks - 1; k >= 0; --k) {
        const index row = k * f.chunk * f.tile, n = std::min(f.chunk, f.tokens - k * f.chunk) * f.tile;
        const auto* delta = f.template bar_at<fixed_point>(row);
        f.span = n / f.tile;
        f.bar_row = f.unrolled ? 0 : row;
        if (f.unrolled) {
            unroll_chunk(f, evaluations, sequences, row, n, counts + k * f.tile, delta, w);
            continue;
        }
        for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::open_back(f, row, n); });
        f.on.copy(n * f.size.d_inner, delta, w);
        const auto* exact = std::get_if<implicit>(&method);
        if (exact) solve_adjoint_chunk(f, *exact, sequences, row, n, delta, w, scratch, of);
        if (const auto* series = std::get_if<neumann>(&method)) neumann_chunk(f, series->k, row, n, delta, w);
        back_through<dependence::input>(f, row, n, w);
        if (exact) pass_to_chunk_before(f, row);
    }
}

}  // namespace fprnn::engine
