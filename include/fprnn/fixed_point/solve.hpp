#pragma once

#include <fprnn/fixed_point/method.hpp>
#include <fprnn/fixed_point/reduce.hpp>
#include <fprnn/fixed_point/watch.hpp>
#include <fprnn/operations/frame.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

/// The fixed-point engine: one tile, chunk after chunk. It knows no expression, no operation and no mixer.
namespace fprnn::engine {

/// Evaluates some of the nodes of the stage, for n rows.
template <class T, class Backend>
void evaluate(frame<T, Backend>& f, std::span<const graph::slot> slots, index row, index n) {
    if (!f.shares(n)) {
        for (const graph::slot s : slots) f.plan.operations[s]->value(f, s, row, n);
        return;
    }
    const auto is_by_row = [&](graph::slot s) { return f.plan.operations[s]->is_by_row && !f.graph[s].shared; };
    for (auto first = slots.begin(); first != slots.end();) {
        auto last = std::next(first);
        if (is_by_row(*first)) last = std::find_if_not(last, slots.end(), is_by_row);
        const auto some = [&](frame<T, Backend>& part, index r, index count) {
            for (auto s = first; s != last; ++s) f.plan.operations[*s]->value(part, *s, r, count);
        };
        if (is_by_row(*first))
            f.by_blocks(row, n, some);
        else
            some(f, row, n);
        first = last;
    }
}

template <class T, class Backend>
void open(frame<T, Backend>& f, index row, index n) {
    for (const graph::slot s : f.stage().iterated) f.plan.operations[s]->open(f, s, row, n);
}

/// y^ℓ = f(x, y^{ℓ−1}) for one chunk, from the rows of `prev` to the rows of f. What depends on y_{t−1} alone
/// does not change while a one-token chunk is iterated.
template <class T, class Backend>
void step(frame<T, Backend>& f, index row, index n, bool first) {
    if (first || n > f.tile) {
        evaluate(f, f.stage().shifted, row, n);
        open(f, row, n);
    }
    evaluate(f, f.stage().current, row, n);
    f.work.evaluations += n;
}

/// A chunk that begins behind a sequence's end has converged, without an iteration.
template <class T, class Backend>
void finish_what_has_ended(frame<T, Backend>& f, index sequences, const watches<T>& of) {
    if constexpr (has_tiles<Backend>) {
        if (!f.lengths) return;
        for (index q = 0; q < sequences; ++q) {
            if (f.tokens_of_chunk(q) > 0) continue;
            of.one[q].finish(status::converged);
            of.running[q] = T(0);
        }
    }
}
template <class T, class Backend>
void begin_watches(frame<T, Backend>& f, index sequences, const iteration_rule& rule, const watches<T>& of) {
    if (rule.start == 1 && rule.decay == 1)
        f.each_row(sequences, body::begin_watches<T>{rule.tolerance, rule.ell_max, of});
    else
        f.each_row(sequences, body::begin_damped_watches<T>{rule, of});
    finish_what_has_ended(f, sequences, of);
}
/// Adds what has become of the chunk to the tallies (body::report).
template <class T, class Backend>
void report(frame<T, Backend>& f, index sequences, const watches<T>& of, T* counts) {
    if constexpr (has_tiles<Backend>) {
        if (f.lengths) {
            for (index q = 0; q < sequences; ++q)
                body::report<T>{f.tokens_of_chunk(q), of, counts}.template row<typename Backend::template team<T>>(q,
                                                                                                                   0);
            return;
        }
    }
    f.each_row(sequences, body::report<T>{f.span, of, counts});
}

/// Whether tokens are measured one by one: without tiles each of them has a team, and threads that share a
/// tile share them.
template <class T, class Backend>
bool measures_tokens(const frame<T, Backend>& f) {
    return !has_tiles<Backend> || f.threads > 1;
}
/// Takes the step of a chunk's n rows from `from` to `to` and goes there (body::advance).
template <class T, class Backend>
void advance(frame<T, Backend>& f, index sequences, index n, const T* to, T* from, bool arrives, const watches<T>& of) {
    const index D = f.iterate_width(), tokens = n / f.tile;
    if (tokens > 1 && measures_tokens(f)) {
        const token_steps<T> steps(f.steps, f.tile, tokens, sequences);
        f.each_token(n, body::measure_steps<T>{D, to, from, of, steps});
        f.each_row(sequences, body::take_steps<T>{arrives, of, steps});
        f.each_token(n, body::go_to_steps<T>{D, to, from, steps});
        return;
    }
    body::advance<T> all{D, tokens, f.tile * D, to, from, arrives, of};
    if constexpr (has_tiles<Backend>) {
        if (f.lengths) {
            for (index q = 0; q < sequences; ++q) {
                all.tokens = f.tokens_of_chunk(q);
                all.template row<typename Backend::template team<T>>(q, 0);
            }
            return;
        }
    }
    f.each_row(sequences, all);
}

/// What steps and ends of one's own need: each sequence's f(y), y and the solver's memory, one behind the
/// other.
template <class T>
struct own_rules {
    T* memory = nullptr;  ///< [tile, per_sequence]
    index per_sequence = 0;

    static index numbers_of_a_sequence(const solver& s, index n) { return 2 * n + s.memory(n); }
};

/// Measures the steps of a chunk from `from` to `to`, of the sequences whose watches run, and asks the stop.
template <class T, class Backend>
void measure(frame<T, Backend>& f, const stop& stop, index sequences, const T* to, const T* from,
             const watches<T>& of) {
    using team = typename Backend::template team<T>;
    const index D = f.iterate_width();
    for (index q = 0; q < sequences; ++q) {
        watch<T>& w = of.one[q];
        if (!w.running()) continue;
        const auto step = measure_step<team>(to + q * D, from + q * D, D, f.tile * D, f.tokens_of_chunk(q));
        w.take(step);
        if (w.running() && stop.ends({w.iterations(), w.residual(), static_cast<double>(step.absolute), w.best()}))
            w.finish(status::converged);
        of.running[q] = w.running() ? T(1) : T(0);
    }
}
/// y ← the next iterate of the sequences whose watches run.
template <class T, class Backend>
void move(frame<T, Backend>& f, const solver& solver, const own_rules<T>& own, index sequences, const T* to, T* from,
          const watches<T>& of) {
    using team = typename Backend::template team<T>;
    const index D = f.iterate_width(), stride = f.tile * D;
    for (index q = 0; q < sequences; ++q) {
        const watch<T>& w = of.one[q];
        if (!w.running()) continue;
        const index tokens = f.tokens_of_chunk(q);
        const T* reached = to + q * D;
        T* y = from + q * D;
        if (!solver.has_own_rule()) {
            const T delta = static_cast<T>(w.delta_of_step());
            for (index t = 0; t < tokens; ++t) go_to<team>(D, delta, reached + t * stride, y + t * stride);
            continue;
        }
        T *const f_of = own.memory + q * own.per_sequence, *const y_of = f_of + tokens * D;
        for (index t = 0; t < tokens; ++t) {
            f.on.copy(D, reached + t * stride, f_of + t * D);
            f.on.copy(D, y + t * stride, y_of + t * D);
        }
        solver.next(solver_step<T>{tokens * D, w.iterations(), f_of, y_of, y_of + tokens * D});
        for (index t = 0; t < tokens; ++t) f.on.copy(D, y_of + t * D, y + t * stride);
    }
}

/// Calls what happens in chunks. Those of one token have a row for each sequence, and what happens there
/// touches no other sequence's.
template <class T, class Backend, class Calls>
void in_chunks(frame<T, Backend>& f, const Calls& calls) {
    if constexpr (!has_tiles<Backend>) {
        if (f.chunk == 1 && !f.unrolled) {
            std::array<index, 3 + named_sizes.size()> key{
                f.tokens, f.tile, static_cast<index>(reinterpret_cast<std::uintptr_t>(&f.plan))};
            for (std::size_t i = 0; i < named_sizes.size(); ++i) key[3 + i] = f.size.*named_sizes[i].size;
            // What operations remember on the host, where all is called again.
            const std::vector<node_rows<T>> nodes(f.nodes.begin(), f.nodes.end());
            return f.on.pass(f.tokens, key, [&, work = f.work] {
                std::copy(nodes.begin(), nodes.end(), f.nodes.begin());
                f.work = work;
                f.on.by_rows(f.tile, calls);
            });
        }
    }
    calls();
}

/// Solves the chunk of n rows from `row`. When it is done, `prev` holds the point y at which f was last
/// evaluated, the rows of all nodes belong to that point, and f's rows are the value f(y). `counts` [tile]
/// receives the iterations; `scratch` is what a reduced token needs.
template <class T, class Backend>
void solve_chunk(frame<T, Backend>& f, const solving& how, index sequences, index row, index n, const watches<T>& of,
                 T* counts, T* scratch, const own_rules<T>& own) {
    const auto& its = f.stage();
    const index D = f.iterate_width(), tokens = n / f.tile;
    T* y = f.value_at(its.previous, row);
    const T* fy = f.value_at(its.fixed_point, row);
    f.on.fill(n * D, y, 0);
    f.begin_chunk(row, n);
    const bool has_own_rules = has_tiles<Backend> && how.has_own_rules(),
               is_one_row_each = tokens == 1 && its.rows_are_independent && !has_own_rules;
    iteration_rule rule = how.rule();
    // What y_t does not enter is exact after one evaluation, whatever ends an iteration.
    if (is_one_row_each && its.tokens_are_explicit)
        rule.tolerance = std::max(rule.tolerance, std::numeric_limits<double>::min());
    begin_watches(f, sequences, rule, of);
    if (has_own_rules) f.on.fill(sequences * own.per_sequence, own.memory, 0);

    const auto take_step = [&] {
        if constexpr (has_tiles<Backend>) {
            if (has_own_rules) {
                measure(f, how.stop, sequences, fy, y, of);
                return move(f, how.solver, own, sequences, fy, y, of);
            }
        }
        // Where tokens are measured one by one, those behind the ends have steps of zero.
        if (measures_tokens(f)) f.clear_behind(row, n, D, f.value_at(its.fixed_point, row));
        advance(f, sequences, n, fy, y, false, of);
    };
    if (is_one_row_each) {
        evaluate(f, f.stage().shifted, row, n);
        open(f, row, n);
        if (its.reduction && how.solver.is_picard())
            its.reduction->iterate(f, row, sequences, scratch, rule.tolerance, rule.ell_max - 1, of);
        evaluate(f, f.stage().current, row, n);
        f.work.evaluations += n;
        if (its.tokens_are_explicit) f.on.copy(n * D, fy, y);
        take_step();
        if constexpr (has_tiles<Backend>) {
            for (index q = 0; q < sequences; ++q) {
                const watches<T> of_one{of.one + q, of.running + q, of.tallies + q};
                while (of.one[q].running()) {
                    evaluate(f, its.current, row + q, 1);
                    ++f.work.evaluations;
                    f.each_row(1, body::advance<T>{D, 1, D, fy + q * D, y + q * D, false, of_one});
                }
            }
        } else if (!its.tokens_are_explicit) {
            f.on.repeat_by_rows(sequences, of.running, [&] {
                evaluate(f, f.stage().current, row, n);
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
    for (const graph::slot s : its.iterated) f.plan.operations[s]->close(f, s, row, n);
    f.clear_behind(row, n, D, f.value_at(f.stage().fixed_point, row));
    report(f, sequences, of, counts);
}

}  // namespace fprnn::engine
