#pragma once

#include <fprnn/fixed_point/adjoint.hpp>
#include <fprnn/fixed_point/gmres.hpp>
#include <fprnn/fixed_point/solve.hpp>

#include <algorithm>
#include <limits>
#include <variant>

/// The way back through the chunks of one tile: w = (I − J_hᵀ)⁻¹ δ or terms of it, or through iterations one
/// by one.
namespace fprnn::engine {

/// Calls g(operation, slot) for the iteration's own nodes.
template <class T, class Backend, class G>
void for_each_iterated(const frame<T, Backend>& f, const G& g) {
    for (const graph::slot s : f.stage().iterated) g(*f.plan.operations[s], s);
}

/// Sends the cotangent w of f's rows back through the iteration's nodes as far as `reach`.
template <class T, class Backend>
void back_through(frame<T, Backend>& f, index row, index n, const T* w, dependence reach) {
    const auto& its = f.stage();
    const auto nodes = reach == dependence::current ? its.current : its.iterated;
    for (const graph::slot s : nodes) f.on.fill(n * f.width(s), f.bar_at(s, row), 0);
    f.one_row(body::add<T>{n * f.iterate_width(), w, f.bar_at(f.graph.operand(its.fixed_point, 0), row)});
    for (std::size_t i = nodes.size(); i-- > 0;) f.plan.operations[nodes[i]]->back(f, nodes[i], row, n, reach);
}

/// One iteration's map w ↦ J_hᵀ w of a chunk; the result is in the bars of `prev`.
template <class T, class Backend>
void apply_transposed_jacobian(frame<T, Backend>& f, index row, index n, const T* w) {
    back_through(f, row, n, w, n == f.tile ? dependence::current : dependence::shifted);
}

/// w ← δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ for a chunk, for the sequences whose watches run.
template <class T, class Backend>
void step_adjoint(frame<T, Backend>& f, index sequences, index row, index n, const T* delta, T* w, T* next,
                  const watches<T>& of) {
    apply_transposed_jacobian(f, row, n, w);
    f.one_row(body::sum<T>{n * f.iterate_width(), delta, f.bar_at(f.stage().previous, row), next});
    advance(f, sequences, n, next, w, true, of);
}

/// Solves w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ by GMRES for n rows of one token, the first `sequences` of
/// which have watches.
template <class T, class Backend>
void gmres_adjoint(frame<T, Backend>& f, const implicit& options, index sequences, index row, index n, const T* delta,
                   T* w, T* scratch, const watches<T>& of) {
    const index D = f.iterate_width();
    T *const asked = scratch, *const own = asked + n * D;
    f.each_row(sequences, body::begin_gmres<T>{D, asked, own});
    f.on.repeat_by_rows(sequences, of.running, [&] {
        back_through(f, row, n, asked, dependence::current);
        f.each_row(sequences, body::go_on_gmres<T>{D, asked, own, f.bar_at(f.stage().previous, row), delta, w,
                                                   options.tolerance, options.ell_max, of});
    });
}

/// Numbers of scratch that solve_adjoint_chunk needs beside w.
template <class T, class Backend>
index adjoint_scratch(const frame<T, Backend>& f) {
    const index D = f.iterate_width(), row = D + kernel::gmres_size<T>(D);
    if constexpr (has_tiles<Backend>)
        return std::max({f.chunk * f.tile * D, row, token_scratch(f)});
    else
        return std::max(f.chunk * f.tile * D, token_scratch(f) + f.tile * row);
}

template <class T, class Backend>
void solve_adjoint_chunk(frame<T, Backend>& f, const implicit& options, index sequences, index row, index n,
                         const T* delta, T* w, T* scratch, const watches<T>& of) {
    const index D = f.iterate_width();
    f.each_row(sequences, body::begin_watches<T>{options.tolerance, options.ell_max, of});
    finish_what_has_ended(f, sequences, of);
    if (n > f.tile || !f.stage().rows_are_independent) {
        const auto iterate = [&] { step_adjoint(f, sequences, row, n, delta, w, scratch, of); };
        iterate();
        f.on.repeat(sequences, of.running, iterate);
    } else {
        if (f.stage().reduction)
            f.stage().reduction->solve_adjoint(f, row, sequences, scratch, options.tolerance, delta, w, of);
        if constexpr (has_tiles<Backend>) {
            for (index s = 0; s < sequences; ++s)
                if (of.one[s].running())
                    gmres_adjoint(f, options, 1, row + s, 1, delta + s * D, w + s * D, scratch,
                                  {of.one + s, of.running + s, of.tallies + s});
        } else {
            // A row may be here while others are being reduced.
            gmres_adjoint(f, options, sequences, row, n, delta, w, scratch + token_scratch(f), of);
        }
    }
    report(f, sequences, of, static_cast<T*>(nullptr));
}

/// What a chunk hands to the chunk before it, or to the call before: the cotangent of y_{t−1} at its first
/// token.
template <class T, class Backend>
void pass_to_chunk_before(frame<T, Backend>& f, index row) {
    const graph::slot before = f.stage().previous_before;
    if (before != graph::nowhere) f.plan.operations[before]->pass_to_chunk_before(f, before, row);
}

/// w = the first k terms of (I − J_hᵀ)⁻¹ δ and the first k − 1 of (I − J_hᵀ)⁻¹ (∂carry_out/∂y)ᵀ c̄, by
/// Horner's rule. The chunk before receives the cotangent of its y from k − 1 terms, because y_{t−1} is one
/// application away.
template <class T, class Backend>
void neumann_chunk(frame<T, Backend>& f, int k, index row, index n, const T* delta, T* w) {
    for (int terms = 1; terms < k; ++terms) {
        const bool is_last = terms + 1 == k;
        if (is_last)
            back_through(f, row, n, w, dependence::shifted);
        else
            apply_transposed_jacobian(f, row, n, w);
        if (is_last) pass_to_chunk_before(f, row);
        f.one_row(body::sum<T>{n * f.iterate_width(), delta, f.bar_at(f.stage().previous, row), w});
    }
}

/// A chunk for an adjoint of one's own; `next` holds as many numbers as w.
template <class T, class Backend>
class chunk_of_own_adjoint final : public adjoint_chunk {
public:
    chunk_of_own_adjoint(frame<T, Backend>& f, index sequences, index row, index n, const T* delta, T* w, T* next)
        : f_(f), sequences_(sequences), row_(row), n_(n), delta_(delta), w_(w), next_(next) {}

    double apply(double part) override {
        using team = typename Backend::template team<T>;
        const index D = f_.iterate_width(), tokens = n_ / f_.tile;
        apply_transposed_jacobian(f_, row_, n_, w_);
        f_.one_row(body::sum<T>{n_ * D, delta_, f_.bar_at(f_.stage().previous, row_), next_});
        double change = 0;
        for (index q = 0; q < sequences_; ++q) {
            const auto step = measure_step<team>(static_cast<const T*>(next_ + q * D),
                                                 static_cast<const T*>(w_ + q * D), D, f_.tile * D, tokens);
            change = step.finite ? std::max(change, static_cast<double>(step.relative))
                                 : std::numeric_limits<double>::infinity();
        }
        go_to<team>(n_ * D, static_cast<T>(part), static_cast<const T*>(next_), w_);
        return change;
    }

private:
    frame<T, Backend>& f_;
    index sequences_, row_, n_;
    const T* delta_;
    T *w_, *next_;
};

/// Back through the last `evaluations` of a chunk, from the value f(y^{ℓ*−1}) to y⁰ = 0 when there are as
/// many. Iterations are repeated as they were; the iterates that are differentiated at are kept. `counts`
/// [tile] says how many iterations each sequence took.
template <class T, class Backend>
void unroll_chunk(frame<T, Backend>& f, index evaluations, index sequences, index row, index n, const T* counts,
                  const T* delta, T* w) {
    using memory = typename Backend::template memory<T>;
    const index D = f.iterate_width(), count = n * D, stride = f.tile * D, tokens = n / f.tile;
    T* y = f.value_at(f.stage().previous, row);
    T* fy = f.value_at(f.stage().fixed_point, row);
    memory solved(f.on, 2 * count);
    T *const y_was = solved.data(), *const fy_was = y_was + count;
    f.on.copy(count, y, y_was);
    f.on.copy(count, fy, fy_was);
    const auto took = f.on.seen(sequences, counts);
    index longest = 1;  // once also where nobody iterated: carries go through what is behind the ends
    for (index s = 0; s < sequences; ++s) longest = std::max(longest, static_cast<index>(took[s]));
    const index depth = std::min(evaluations, longest);
    // Sequences are aligned at their last iteration: iterates[i] holds y^{ℓ*−1−i} of each, zero where there
    // is none.
    memory iterates(f.on, depth * count);
    f.on.fill(depth * count, iterates.data(), 0);
    for (index ell = 0; ell < longest; ++ell) {
        if (ell == 0) {
            f.on.fill(count, y, 0);
        } else {
            step(f, row, n, true);
            f.on.copy(count, fy, y);
            f.clear_behind(row, n, D, y);
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
    for_each_iterated(f, [&](const auto& o, graph::slot s) { o.before_unrolled_chunk(f, s); });
    f.on.copy(count, delta, w);
    for (index i = 0; i < depth; ++i) {
        f.on.copy(count, iterates.data() + i * count, y);
        // A sequence that took fewer iterations has no cotangent before its first.
        for (index s = 0; s < sequences; ++s)
            if (static_cast<index>(took[s]) <= i)
                for (index t = 0; t < tokens; ++t) f.on.fill(D, w + t * stride + s * D, 0);
        step(f, row, n, true);
        back_through(f, row, n, w, dependence::input);
        if (i + 1 < evaluations) pass_to_chunk_before(f, row);
        for_each_iterated(f, [&](const auto& o, graph::slot s) { o.after_unrolled_step(f, s, row, n); });
        f.on.copy(count, f.bar_at(f.stage().previous, row), w);
    }
    for_each_iterated(f, [&](const auto& o, graph::slot s) { o.after_unrolled_chunk(f, s, row, n); });
    // What is kept is again what the forward pass left, for another backward pass, and y* for its readers.
    f.on.copy(count, y_was, y);
    step(f, row, n, true);
    f.on.copy(count, fy_was, fy);
}

/// The adjoint of all chunks, last to first. The cotangent of y* enters in the bars of the fixed point.
template <class T, class Backend>
void solve_adjoint(frame<T, Backend>& f, const adjoint& method, index sequences, const T* counts, T* w, T* scratch,
                   const watches<T>& of) {
    const index chunks = (f.tokens + f.chunk - 1) / f.chunk, evaluations = detail::evaluations_back(method);
    for (index k = chunks - 1; k >= 0; --k) {
        const index row = k * f.chunk * f.tile, n = std::min(f.chunk, f.tokens - k * f.chunk) * f.tile;
        const auto* delta = f.bar_at(f.stage().fixed_point, row);
        f.begin_chunk(row, n);
        f.bar_row = f.unrolled ? 0 : row;
        if (f.unrolled) {
            unroll_chunk(f, evaluations, sequences, row, n, counts + k * f.tile, delta, w);
            continue;
        }
        for_each_iterated(f, [&](const auto& o, graph::slot s) { o.open_back(f, s, row, n); });
        f.on.copy(n * f.iterate_width(), delta, w);
        const auto* exact = std::get_if<implicit>(&method);
        if (exact) solve_adjoint_chunk(f, *exact, sequences, row, n, delta, w, scratch, of);
        if (const auto* series = std::get_if<neumann>(&method)) neumann_chunk(f, series->k, row, n, delta, w);
        const auto* own = std::get_if<own_adjoint>(&method);
        if constexpr (has_tiles<Backend>) {
            if (own) {
                chunk_of_own_adjoint<T, Backend> chunk(f, sequences, row, n, delta, w, scratch);
                (*own)(chunk);
            }
        }
        back_through(f, row, n, w, dependence::input);
        if (exact || own) pass_to_chunk_before(f, row);
    }
}

}  // namespace fprnn::engine
