#pragma once

#include <fprnn/operations/frame.hpp>
#include <fprnn/operations/selective_scan_bodies.hpp>

#include <algorithm>
#include <utility>

namespace fprnn::operations {

/// y = cᵀH, H_t = A^Δ_t ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ, of the operands Δ, b, c, u. A one-token chunk of the innermost loop is opened:
/// y = p + g ⊙ u, whatever N is.
template <class T, class Backend>
struct selective_scan : operation<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    struct memory {
        T* A = nullptr;        ///< [N,D], exp(ω)
        T* A_bar = nullptr;    ///< [N,D]
        T* starts = nullptr;   ///< [blocks, tile, N, D], states before each block: kept
        T* state = nullptr;    ///< [tile, N, D]; backward: the cotangent that comes from later tokens
        T* trial = nullptr;    ///< [tile, N, D], the same inside an iteration
        T* sum = nullptr;      ///< [tile, N, D], cotangents summed over unrolled iterations
        T* inside = nullptr;   ///< [chunks of a block − 1, tile, N, D], states before its later chunks: backward
        T* open = nullptr;     ///< [2, tile, D], p and g of an open token; for the adjoint k and g
        strided<T> scratch;    ///< [workers]
        index block = -1;      ///< which block `inside` holds
        bool awaited = false;  ///< the input of the token before has not arrived in `state`
    };

    constexpr bool keeps_values() const override { return true; }

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const override {
        auto& m = f.template make<memory>(s);
        const index D = f.width(s), one = state_size(f, s), all = f.tile * one;
        m.starts = kept.take((f.tokens + block_tokens(f, s) - 1) / block_tokens(f, s) * all);
        m.A = scratch.take(one);
        m.state = scratch.take(all);
        m.trial = scratch.take(all);
        m.open = scratch.take(2 * f.tile * D);
        if (f.phase == pass::forward) return;
        m.A_bar = scratch.take(one);
        m.inside = scratch.take((block_tokens(f, s) / chunk(f, s) - 1) * all);
        m.scratch =
            f.take_per_worker(scratch, kernel::selective_scan_back_scratch(chunk(f, s), f.size.d_state, D), f.tile);
        if (f.unrolled) m.sum = scratch.take(all);
    }
    void begin(frame& f, slot s, const T* carried) const override {
        const memory& m = own(f, s);
        const index one = state_size(f, s), all = f.tile * one;
        f.one_row(body::exponentials<T>{one, f.parameters_of(s), m.A});
        if (carried) {
            f.on.copy(all, carried, m.state);
            f.on.copy(all, carried, m.starts);
        } else {
            f.on.fill(all, m.state, 0);
            f.on.fill(one, m.A_bar, 0);
        }
    }
    void end(frame& f, slot s, T* carried) const override {
        f.on.copy(f.tile * state_size(f, s), own(f, s).state, carried);
    }

    void open(frame& f, slot s, index row, index n) const override {
        if (!can_open(f, s) || n != f.tile || f.phase != pass::forward) return;
        memory& m = own(f, s);
        const auto [delta, b, c, u] = operands(f, s);
        const index D = f.width(s), before = row - f.tile;
        body::selective_scan_open<T> open{f.size.d_state,
                                          D,
                                          m.A,
                                          f.values(delta, row),
                                          f.values(b, row),
                                          f.values(c, row),
                                          {m.state, state_size(f, s)},
                                          {m.open, D},
                                          {m.open + f.tile * D, D},
                                          {},
                                          {},
                                          {}};
        if (m.awaited) {
            open.delta_before = f.values(delta, before);
            open.b_before = f.values(b, before);
            open.u_before = f.values(u, before);
        }
        f.each_row(f.tile, open);
        m.awaited = false;
    }
    void value(frame& f, slot s, index row, index n) const override {
        if (f.phase == pass::replay) return;
        const memory& m = own(f, s);
        const auto [delta, b, c, u] = operands(f, s);
        const index D = f.width(s), one = state_size(f, s);
        if (is_opened(f, s)) {
            const T *p = m.open + row % f.tile * D, *g = p + f.tile * D;
            f.one_row(body::open_value<T>{n * D, p, g, f.value_at(u, row), f.value_at(s, row)});
            return;
        }
        const bool iterated = f.graph.is_iterated(s);
        T* state = iterated ? m.trial : m.state;
        if (iterated) f.on.copy(f.tile * one, f.phase == pass::forward ? m.state : before(f, s, row), state);
        run(f, s, row,
            body::selective_scan<T>{shape(f, s, n),
                                    m.A,
                                    f.values(delta, row),
                                    f.values(b, row),
                                    f.values(c, row),
                                    f.values(u, row),
                                    {state, one},
                                    f.values(s, row)});
    }
    void close(frame& f, slot s, index row, index n) const override {
        if (!f.graph.is_iterated(s)) return;
        memory& m = own(f, s);
        const auto [delta, b, c, u] = operands(f, s);
        const index one = state_size(f, s), all = f.tile * one, next = (row + n) / f.tile;
        const bool begins_block = next % block_tokens(f, s) == 0, opened = can_open(f, s) && n == f.tile;
        // Opening the next token adds it on the way, unless the state before is read.
        m.awaited = opened && f.chunk == 1 && next < f.tokens && !begins_block;
        if (m.awaited) return;
        if (opened)
            f.each_row(f.tile, body::selective_scan_close<T>{f.size.d_state,
                                                             f.width(s),
                                                             f.values(delta, row),
                                                             f.values(b, row),
                                                             f.values(u, row),
                                                             {m.state, one}});
        else
            std::swap(m.state, m.trial);
        if (next < f.tokens && begins_block) f.on.copy(all, m.state, m.starts + next / block_tokens(f, s) * all);
    }

    void open_back(frame& f, slot s, index row, index n) const override {
        if (!can_open(f, s) || n != f.tile) return;
        const memory& m = own(f, s);
        const auto [delta, b, c, u] = operands(f, s);
        const index D = f.width(s);
        f.each_row(f.tile, body::selective_scan_open_back<T>{f.size.d_state,
                                                             D,
                                                             f.values(delta, row),
                                                             f.values(b, row),
                                                             f.values(c, row),
                                                             {m.state, state_size(f, s)},
                                                             {m.open, D},
                                                             {m.open + f.tile * D, D}});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const override {
        const memory& m = own(f, s);
        const auto [delta, b, c, u] = operands(f, s);
        const index D = f.width(s), one = state_size(f, s);
        const bool solving = reach != dependence::input && f.graph.is_iterated(s);
        if (solving && of_parameters(f, s) < reach) {
            if (f.graph[u].depends < reach) return;
            if (f.span == 1) {
                const T *k = m.open + row % f.tile * D, *g = k + f.tile * D;
                f.one_row(body::open_value_back<T>{n * D, k, g, f.bar_at(s, row), f.bar_at(u, row)});
                return;
            }
            f.on.copy(f.tile * one, m.state, m.trial);
            run_back_input(f, s, row,
                           body::selective_scan_back_input<T>{shape(f, s, n),
                                                              m.A,
                                                              f.values(delta, row),
                                                              f.values(b, row),
                                                              f.values(c, row),
                                                              f.bars(s, row),
                                                              {m.trial, one},
                                                              f.bars(u, row)},
                           reach);
            return;
        }
        T* running = m.state;
        if (solving) {
            f.on.copy(f.tile * one, m.state, m.trial);
            running = m.trial;
        }
        const auto bars = [&](slot o) { return strided<T>{f.bar_within(o, row, reach), f.stride(o)}; };
        auto A_bar = f.sums(f.tile, one, solving ? nullptr : m.A_bar);
        run_back(f, s, row,
                 body::selective_scan_back<T>{shape(f, s, n),
                                              m.A,
                                              f.values(delta, row),
                                              f.values(b, row),
                                              f.values(c, row),
                                              f.values(u, row),
                                              {before(f, s, row), one},
                                              f.bars(s, row),
                                              {running, one},
                                              A_bar.into,
                                              bars(delta),
                                              bars(b),
                                              bars(c),
                                              bars(u),
                                              m.scratch},
                 reach);
        A_bar.finish();
    }
    /// ω̄ += A ⊙ Ā
    void end_back(frame& f, slot s) const override {
        const memory& m = own(f, s);
        f.one_row(body::add_product<T>{state_size(f, s), m.A, m.A_bar, f.gradient_of(s)});
    }

    void before_unrolled_chunk(frame& f, slot s) const override {
        f.on.fill(f.tile * state_size(f, s), own(f, s).sum, 0);
    }
    void after_unrolled_step(frame& f, slot s, index, index) const override {
        move_to_sum(f, f.tile * state_size(f, s), own(f, s).state, own(f, s).sum);
    }
    void after_unrolled_chunk(frame& f, slot s, index, index) const override {
        f.on.copy(f.tile * state_size(f, s), own(f, s).sum, own(f, s).state);
    }

    /// Whether values are those of opened tokens.
    static bool is_opened(const frame& f, slot s) { return can_open(f, s) && f.phase == pass::forward && f.span == 1; }

protected:
    // A device does more where it scans.
    virtual void run(frame& f, slot, index, const body::selective_scan<T>& scan) const { f.each_row(f.tile, scan); }
    virtual void run_back_input(frame& f, slot, index, const body::selective_scan_back_input<T>& scan,
                                dependence) const {
        f.each_row(f.tile, scan);
    }
    virtual void run_back(frame& f, slot, index, const body::selective_scan_back<T>& scan, dependence) const {
        f.each_row(f.tile, scan);
    }

private:
    static memory& own(frame& f, slot s) { return f.template own<memory>(s); }
    static std::array<slot, 4> operands(const frame& f, slot s) {
        return {f.graph.operand(s, 0), f.graph.operand(s, 1), f.graph.operand(s, 2), f.graph.operand(s, 3)};
    }
    static index state_size(const frame& f, slot s) { return f.size.d_state * f.width(s); }
    /// Only what the innermost loop evaluates is worth it.
    static bool can_open(const frame& f, slot s) { return f.graph[s].depends == dependence::current; }
    /// What Δ, b and c depend on.
    static dependence of_parameters(const frame& f, slot s) {
        const auto [delta, b, c, u] = operands(f, s);
        return join(f.graph[delta].depends, join(f.graph[b].depends, f.graph[c].depends));
    }
    /// Tokens solved together; all of them outside the iteration.
    static index chunk(const frame& f, slot s) {
        return std::max<index>(1, f.graph.is_iterated(s) ? std::min(f.chunk, f.tokens) : f.tokens);
    }
    /// Tokens between two states that are kept: whole chunks, 16 tokens or more.
    static index block_tokens(const frame& f, slot s) {
        return chunk(f, s) * std::max<index>(1, kernel::selective_scan_block / chunk(f, s));
    }
    static kernel::selective_scan_shape shape(const frame& f, slot s, index n) {
        return {n / f.tile, f.size.d_state, f.width(s), f.tile * f.width(s), f.tile * f.size.d_state};
    }
    /// H before the chunk that begins at `row`, recomputed block by block from the states that were kept.
    static const T* before(frame& f, slot s, index row) {
        memory& m = own(f, s);
        const auto [delta, b, c, u] = operands(f, s);
        const index one = state_size(f, s), all = f.tile * one, tokens = block_tokens(f, s), length = chunk(f, s);
        const index t = row / f.tile, block = t / tokens, first = block * tokens;
        const auto at = [&](index i) { return i == 0 ? m.starts + block * all : m.inside + (i - 1) * all; };
        if (m.block != block) {
            m.block = block;
            const index last = std::min(f.tokens, first + tokens);
            for (index i = 1; first + i * length < last; ++i) {
                const index from = (first + (i - 1) * length) * f.tile;
                f.each_row(f.tile, body::selective_scan_advance<T>{shape(f, s, length * f.tile),
                                                                   m.A,
                                                                   f.values(delta, from),
                                                                   f.values(b, from),
                                                                   f.values(u, from),
                                                                   {at(i - 1), one},
                                                                   {at(i), one}});
            }
        }
        return at((t - first) / length);
    }
};

}  // namespace fprnn::operations
