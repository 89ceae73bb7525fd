#pragma once

#include <fprnn/operations/frame.hpp>
#include <fprnn/operations/recurrence_bodies.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace fprnn::operations {

/// A recurrence M of rows of tokens. What M does not say is here: carries, states that are kept every 16
/// tokens or more and recomputed in the backward pass, trial states of an iteration, open tokens.
/// Self: a struct that inherits from it and does more where it recurs.
template <class M, class T, class Backend, class Self = void>
struct recur : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    static constexpr bool opens = opening_recurrence<M>, has_parameters = recurrence_with_parameters<M>,
                          hoists = hoisting_recurrence<M> && has_tiles<Backend>;

    struct memory {
        T* p = nullptr;            ///< the parameters as M prepares them
        T* p_bar = nullptr;        ///< their cotangents
        T* starts = nullptr;       ///< [blocks, tile, state], before each block: kept
        T* state = nullptr;        ///< [tile, state]; backward: the cotangent that comes from later tokens
        T* trial = nullptr;        ///< [tile, state], the same inside an iteration
        T* sum = nullptr;          ///< [tile, state], cotangents summed over unrolled iterations
        T* inside = nullptr;       ///< [chunks of a block − 1, tile, state], before its later chunks: backward
        T* hoisted = nullptr;      ///< [chunk, tile, M::hoisted], of the chunk at hand
        T* open = nullptr;         ///< [2, tile, D], p and g of an open token; for the adjoint k and g
        strided<T> scratch;        ///< [workers]
        index hoisted_chunk = -1;  ///< the row at which the chunk of `hoisted` begins
        index block = -1;          ///< which block `inside` holds
        bool awaited = false;      ///< the input of the token before has not been added to `state`
    };

    static constexpr bool keeps_values = true, is_by_row = false;

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const {
        auto& m = f.template make<memory>(s);
        const auto of = sizes(f, s);
        const index all = f.tile * M::state(of), p = recurring::parameters<M>(of);
        m.starts = kept.take((f.tokens + block_tokens(f, s) - 1) / block_tokens(f, s) * all);
        m.p = scratch.take(p);
        m.state = scratch.take(all);
        m.trial = scratch.take(all);
        if (can_open(f, s)) m.open = scratch.take(2 * f.tile * f.width(s));
        if constexpr (hoists)
            if (can_hoist(f, s)) m.hoisted = scratch.take(f.chunk * f.tile * M::hoisted(of));
        if (f.phase == pass::forward) return;
        m.p_bar = scratch.take(p);
        m.inside = scratch.take((block_tokens(f, s) / chunk(f, s) - 1) * all);
        m.scratch = f.take_per_worker(scratch, recurring::scratch<M>(of, chunk(f, s)), f.tile);
        if (f.unrolled) m.sum = scratch.take(all);
    }
    void begin(frame& f, slot s, const T* carried) const {
        const memory& m = own(f, s);
        const auto of = sizes(f, s);
        const index all = f.tile * M::state(of);
        if constexpr (has_parameters) f.one_row(body::prepare_recurrence<M, T>{of, f.parameters_of(s), m.p});
        if (carried)
            f.on.copy(all, carried, m.state);
        else
            f.on.fill(all, m.state, 0);
        if (f.phase != pass::backward)
            f.on.copy(all, carried, m.starts);
        else if (has_parameters)
            f.on.fill(recurring::parameters<M>(of), m.p_bar, 0);
    }
    void end(frame& f, slot s, T* carried) const { f.on.copy(f.tile * state_size(f, s), own(f, s).state, carried); }

    void open(frame& f, slot s, index row, index n) const {
        if constexpr (opens) {
            if (!can_open(f, s) || n != f.tile || f.phase != pass::forward) return;
            memory& m = own(f, s);
            const index D = f.width(s);
            body::open_recurrence<M, T> open{
                rows(f, s, row, n), {m.state, state_size(f, s)}, {m.open, D}, {m.open + f.tile * D, D}, {}};
            if (m.awaited) open.before = inputs(f, s, row - f.tile);
            if (f.lengths)
                open_to_ends(f, s, row, open);
            else
                f.each_row(f.tile, open);
            m.awaited = false;
        }
    }
    void value(frame& f, slot s, index row, index n) const {
        if (f.phase == pass::replay) return;
        const memory& m = own(f, s);
        const index D = f.width(s), one = state_size(f, s), first = row % f.tile;
        if (is_opened(f, s)) {
            const T *p = m.open + first * D, *g = p + f.tile * D;
            if constexpr (opens)
                f.one_row(body::open_value<T>{n * D, p, g, f.value_at(input(f, s), row), f.value_at(s, row)});
            return;
        }
        hoist_steps(f, s, row, n);
        // An iteration begins from the state that the chunk before reached, and may begin again.
        const bool iterated = f.graph.is_iterated(s);
        const T* from = iterated && f.phase != pass::forward ? before(f, s, row - first) : m.state;
        T* to = iterated ? m.trial : m.state;
        self().run(f, s, row, sequences(f, s, n),
                   body::recur<M, T>{
                       rows(f, s, row, n), {from + first * one, one}, {to + first * one, one}, f.values(s, row)});
        f.clear_behind(row, n, D, f.value_at(s, row));
    }
    void close(frame& f, slot s, index row, index n) const {
        memory& m = own(f, s);
        const index one = state_size(f, s), all = f.tile * one, next = (row + n) / f.tile;
        const bool begins_block = next % block_tokens(f, s) == 0, opened = can_open(f, s) && n == f.tile;
        // Opening the next token adds this one's input on the way, unless the state before is read.
        m.awaited = opened && f.chunk == 1 && next < f.tokens && !begins_block;
        if (m.awaited) return;
        if (!opened) std::swap(m.state, m.trial);
        if constexpr (opens)
            if (opened)
                each_with_tokens(f, row, f.tile, body::close_recurrence<M, T>{rows(f, s, row, n), {m.state, one}});
        if (next < f.tokens && begins_block) f.on.copy(all, m.state, m.starts + next / block_tokens(f, s) * all);
    }

    void open_back(frame& f, slot s, index row, index n) const {
        if constexpr (opens) {
            if (!can_open(f, s) || n != f.tile) return;
            const memory& m = own(f, s);
            const index D = f.width(s);
            if (f.lengths) f.on.fill(2 * f.tile * D, m.open, 0);
            each_with_tokens(
                f, row, f.tile,
                body::open_recurrence_back<M, T>{
                    rows(f, s, row, n), {m.state, state_size(f, s)}, {m.open, D}, {m.open + f.tile * D, D}});
        }
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        if (f.graph[s].depends < reach) return;
        const memory& m = own(f, s);
        const index D = f.width(s), one = state_size(f, s), first = row % f.tile, count = sequences(f, s, n);
        const bool solving = reach != dependence::input && f.graph.is_iterated(s);
        // Iterations of the adjoint begin from the same cotangent, and the last one alone hands it on.
        T* const running = (solving ? m.trial : m.state) + first * one;
        const auto begin_again = [&] {
            if (solving) f.on.copy(count * one, m.state + first * one, running);
        };
        if constexpr (opens) {
            if (solving && depends_beside_input(f, s) < reach) {
                const slot u = input(f, s);
                if (can_open(f, s) && f.span == 1) {
                    const T *k = m.open + first * D, *g = k + f.tile * D;
                    f.one_row(body::open_value_back<T>{n * D, k, g, f.bar_at(s, row), f.bar_at(u, row)});
                    return;
                }
                begin_again();
                self().run_back_input(
                    f, s, row, count,
                    body::recur_back_input<M, T>{rows(f, s, row, n), f.bars(s, row), {running, one}, f.bars(u, row)},
                    reach);
                return;
            }
        }
        begin_again();
        auto p_bar =
            f.sums(count, recurring::parameters<M>(sizes(f, s)), solving || !has_parameters ? nullptr : m.p_bar);
        body::recur_back<M, T> all{rows(f, s, row, n), {before(f, s, row - first) + first * one, one},
                                   f.bars(s, row),     {running, one},
                                   p_bar.into,         {},
                                   m.scratch};
        for (std::size_t k = 0; k < M::inputs; ++k) {
            const slot x = f.graph.operand(s, k);
            all.x_bar[k] = {f.bar_within(x, row, reach), f.stride(x)};
        }
        self().run_back(f, s, row, count, all, reach);
        p_bar.finish();
    }
    void end_back(frame& f, slot s) const {
        const memory& m = own(f, s);
        if constexpr (has_parameters)
            f.one_row(body::prepare_recurrence_back<M, T>{sizes(f, s), m.p, m.p_bar, f.gradient_of(s)});
    }

    void before_unrolled_chunk(frame& f, slot s) const { f.on.fill(f.tile * state_size(f, s), own(f, s).sum, 0); }
    void after_unrolled_step(frame& f, slot s, index, index) const {
        move_to_sum(f, f.tile * state_size(f, s), own(f, s).state, own(f, s).sum);
    }
    void after_unrolled_chunk(frame& f, slot s, index, index) const {
        f.on.copy(f.tile * state_size(f, s), own(f, s).sum, own(f, s).state);
    }

    /// Whether values are those of opened tokens.
    static bool is_opened(const frame& f, slot s) { return can_open(f, s) && f.phase == pass::forward && f.span == 1; }

    void run(frame& f, slot s, index row, index n, const body::recur<M, T>& all) const {
        bool runs = false;
        if constexpr (has_tiles<Backend> && recurrence_of_channels<M>) runs = run_channels(f, s, row, n, all);
        if constexpr (has_tiles<Backend>)
            if (!runs && f.threads > 1 && n * all.rows.tokens > 1) runs = run_sequences(f, row, n, all);
        if (!runs) each_with_tokens(f, row, n, all);
        if (!f.lengths || all.from.data == all.to.data) return;
        const index one = state_size(f, s);
        for (index q = 0; q < n; ++q)  // a state without tokens is what it was
            if (f.tokens_within(row % f.tile + q, row / f.tile, all.rows.tokens) == 0)
                f.on.copy(one, all.from[q], all.to[q]);
    }
    void run_back_input(frame& f, slot, index row, index n, const body::recur_back_input<M, T>& all, dependence) const {
        each_with_tokens(f, row, n, all);
    }
    void run_back(frame& f, slot, index row, index n, const body::recur_back<M, T>& all, dependence) const {
        each_with_tokens(f, row, n, all);
    }

private:
    /// Computes what the steps of a chunk hoist, at its first evaluation: a recurrence that sees y_{t−1}
    /// alone is evaluated before `open`.
    static void hoist_steps(frame& f, slot s, index row, index n) {
        if constexpr (hoists) {
            memory& m = own(f, s);
            if (!is_hoisted(f, s) || m.hoisted_chunk == row) return;
            m.hoisted_chunk = row;
            f.each_token(n, body::hoist_recurrence<M, T>{rows(f, s, row, n), {m.hoisted, M::hoisted(sizes(f, s))}});
        }
    }
    /// all.row of n sequences from `row` on, each with its own tokens: of one that has none, not at all.
    template <class Body>
    static void each_with_tokens(frame& f, index row, index n, const Body& all) {
        if constexpr (has_tiles<Backend>) {
            if (f.lengths) {
                Body own = all;
                for (index q = 0; q < n; ++q) {
                    own.rows.tokens = f.tokens_within(row % f.tile + q, row / f.tile, all.rows.tokens);
                    if (own.rows.tokens > 0) own.template row<typename Backend::template team<T>>(q, 0);
                }
                return;
            }
        }
        f.each_row(n, all);
    }
    /// A sequence that ended one token ago takes what it awaits; one that has ended opens nothing.
    static void open_to_ends(frame& f, slot s, index row, const body::open_recurrence<M, T>& all) {
        const index D = f.width(s), n = f.tile;
        each_with_tokens(f, row, n, all);
        if constexpr (has_tiles<Backend>) {
            if (all.before[0].data) {
                const body::close_recurrence<M, T> close{rows(f, s, row - n, n), all.S};
                for (index q = 0; q < n; ++q)
                    if (f.lengths[q] == row / n) close.template row<typename Backend::template team<T>>(q, 0);
            }
        }
        f.clear_behind(row, n, D, all.p.data);
        f.clear_behind(row, n, D, all.g.data);
    }
    const auto& self() const {
        if constexpr (std::is_void_v<Self>)
            return *this;
        else
            return static_cast<const Self&>(*this);
    }
    /// Sequences side by side.
    static bool run_sequences(frame& f, index row, index n, const body::recur<M, T>& all) {
        f.by_sequences(all.rows.tokens * M::state(all.rows.of), n, [&](index q) {
            body::recur<M, T> own = all;
            own.rows.tokens = tokens_of_sequence(f, row, q, all.rows.tokens);
            if (own.rows.tokens > 0) own.template row<typename Backend::template team<T>>(q, 0);
        });
        return true;
    }
    /// Channels side by side where there are fewer sequences than threads, and steps with what is hoisted.
    /// Says whether there is reason to.
    static bool run_channels(frame& f, slot s, index row, index n,
                             const body::recur<M, T>& all) requires(recurrence_of_channels<M>) {
        strided<const T> hoisted{};
        if constexpr (hoists)
            if (is_hoisted(f, s)) hoisted = {own(f, s).hoisted, M::hoisted(all.rows.of)};
        const bool shares = f.threads > 1 && n < f.threads && all.rows.tokens > 1;
        if (!hoisted.data && !shares) return false;
        const index D = M::value(all.rows.of), numbers = all.rows.tokens * M::state(all.rows.of);
        const auto run = [&](index q, index first, index count) {
            body::recur_channels<M, T> some{all, first, count, hoisted};
            some.all.rows.tokens = tokens_of_sequence(f, row, q, all.rows.tokens);
            if (some.all.rows.tokens > 0) some.template row<typename Backend::template team<T>>(q, 0);
        };
        if (shares)
            for (index q = 0; q < n; ++q)
                f.by_channels(numbers / D, D, [&](index first, index count) { run(q, first, count); });
        else
            f.by_sequences(numbers, n, [&](index q) { run(q, 0, D); });
        return true;
    }
    static index tokens_of_sequence(const frame& f, index row, index q, index tokens) {
        return f.tokens_within(row % f.tile + q, row / f.tile, tokens);
    }
    static memory& own(frame& f, slot s) { return f.template own<memory>(s); }
    static typename M::sizes sizes(const frame& f, slot s) {
        std::array<index, M::inputs> widths;
        for (std::size_t k = 0; k < M::inputs; ++k) widths[k] = f.width(f.graph.operand(s, k));
        return M::of(widths);
    }
    static index state_size(const frame& f, slot s) { return M::state(sizes(f, s)); }
    static slot input(const frame& f, slot s) {
        if constexpr (opens)
            return f.graph.operand(s, M::open_input);
        else
            return graph::nowhere;
    }
    /// What the inputs but the open one depend on.
    static dependence depends_beside_input(const frame& f, slot s) {
        dependence d = dependence::input;
        for (const slot x : f.graph.operands(s))
            if (x != input(f, s)) d = join(d, f.graph[x].depends);
        return d;
    }
    /// Only what the innermost loop evaluates is worth it, and only where it is affine there.
    static bool can_open(const frame& f, slot s) {
        return opens && f.graph[s].depends == dependence::current && depends_beside_input(f, s) < dependence::current;
    }
    /// Whether what an iteration does not change is computed once for a chunk: where it is in a cache when it
    /// is read again.
    static bool can_hoist(const frame& f, slot s) {
        if constexpr (hoists) {
            constexpr index most = index(1) << 20;  // numbers
            if (!f.graph.is_iterated(s) || f.chunk < 2 || f.chunk * f.tile * M::hoisted(sizes(f, s)) > most)
                return false;
            for (std::size_t k = 0; k < M::inputs; ++k)
                if ((M::hoisted_inputs >> k & 1) != 0 && f.graph.is_iterated(f.graph.operand(s, k))) return false;
            return true;
        }
        return false;
    }
    static bool is_hoisted(const frame& f, slot s) { return f.phase == pass::forward && f.span > 1 && can_hoist(f, s); }
    /// Tokens solved together; all of them outside the iteration.
    static index chunk(const frame& f, slot s) {
        return std::max<index>(1, f.graph.is_iterated(s) ? std::min(f.chunk, f.tokens) : f.tokens);
    }
    /// Tokens between two states that are kept: whole chunks, 16 tokens or more.
    static index block_tokens(const frame& f, slot s) {
        return chunk(f, s) * std::max<index>(1, recurring::tokens_of_a_block / chunk(f, s));
    }
    /// Of n rows: of one token they may be some of the tile's.
    static index tokens_of(const frame& f, slot s, index n) { return f.graph.is_iterated(s) ? f.span : n / f.tile; }
    static index sequences(const frame& f, slot s, index n) { return n / tokens_of(f, s, n); }

    static small_array<strided<const T>, M::inputs> inputs(const frame& f, slot s, index row) {
        small_array<strided<const T>, M::inputs> x;
        for (std::size_t k = 0; k < M::inputs; ++k) x[k] = f.values(f.graph.operand(s, k), row);
        return x;
    }
    static body::recurrence_rows<M, T> rows(frame& f, slot s, index row, index n) {
        return {sizes(f, s), tokens_of(f, s, n), f.tile, own(f, s).p, inputs(f, s, row)};
    }
    /// The states before the chunk that begins at `row`, recomputed block by block from those that were kept.
    static const T* before(frame& f, slot s, index row) {
        memory& m = own(f, s);
        const index one = state_size(f, s), all = f.tile * one, tokens = block_tokens(f, s), length = chunk(f, s);
        const index t = row / f.tile, block = t / tokens, first = block * tokens;
        const auto at = [&](index i) { return i == 0 ? m.starts + block * all : m.inside + (i - 1) * all; };
        if (m.block != block) {
            m.block = block;
            const index last = std::min(f.tokens, first + tokens);
            for (index i = 1; first + i * length < last; ++i) {
                const index from = (first + (i - 1) * length) * f.tile;
                recur().run(
                    f, s, from, f.tile,
                    body::recur<M, T>{
                        {sizes(f, s), length, f.tile, m.p, inputs(f, s, from)}, {at(i - 1), one}, {at(i), one}, {}});
            }
        }
        return at((t - first) / length);
    }
};

}  // namespace fprnn::operations
