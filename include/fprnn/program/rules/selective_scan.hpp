#pragma once

#include <fprnn/program/frame.hpp>
#include <fprnn/program/rules/scan_chains.hpp>
#include <fprnn/program/selective_scan_bodies.hpp>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn {

template <auto Name, class Delta, class B, class C, class U>
struct rule<selective_scan_node<Name, Delta, B, C, U>> : plain_rule {
    using node = selective_scan_node<Name, Delta, B, C, U>;
    static constexpr bool kept = true;
    static constexpr bool iterated = node::depends == dependence::shifted || node::depends == dependence::current;
    /// Whether one-token chunks are opened: only what the innermost loop evaluates is worth it.
    static constexpr bool opened = node::depends == dependence::current;
    static constexpr bool affine = joined<Delta, B, C> < dependence::current;
    template <class T>
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
    static index width(const dims& d) { return node::width::of(d); }
    static index carry(const dims& d) { return d.d_state * width(d); }
    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({std::string(Name.c_str()) + ".omega", {d.d_state, width(d)}, start::log_row::value, false});
    }

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>& kept_arena) {
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size), all = f.tile * one;
        m.starts = kept_arena.take((f.tokens + block_tokens(f) - 1) / block_tokens(f) * all);
        m.A = scratch.take(one);
        m.state = scratch.take(all);
        m.trial = scratch.take(all);
        m.open = scratch.take(2 * f.tile * D);
        if (f.phase == pass::forward) return;
        m.A_bar = scratch.take(one);
        m.inside = scratch.take((block_tokens(f) / chunk(f) - 1) * all);
        m.scratch =
            f.take_per_worker(scratch, kernel::selective_scan_back_scratch(chunk(f), f.size.d_state, D), f.tile);
        m.block = -1;
        if (f.unrolled) m.sum = scratch.take(all);
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carried) {
        auto& m = f.template memory_of<node>();
        const index all = f.tile * carry(f.size);
        f.one_row(body::exponentials<typename F::scalar>{carry(f.size), f.template parameters_of<node>(), m.A});
        if (carried) {
            f.on.copy(all, carried, m.state);
            f.on.copy(all, carried, m.starts);
        } else {
            f.on.fill(all, m.state, 0);
            f.on.fill(carry(f.size), m.A_bar, 0);
        }
    }
    template <class F>
    static void end(F& f, typename F::scalar* carried) {
        f.on.copy(f.tile * carry(f.size), f.template memory_of<node>().state, carried);
    }

    /// Whether values are those of opened tokens.
    template <class F>
    static bool is_opened(const F& f) {
        return opened && f.phase == pass::forward && f.span == 1;
    }
    /// A chunk of one token is opened once: what its input adds is then two vectors, whatever N is.
    template <class F>
    static void open(F& f, index row, index n) {
        if (!opened || n != f.tile || f.phase != pass::forward) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), before = row - f.tile;
        body::selective_scan_open<T> open{f.size.d_state,
                                          D,
                                          m.A,
                                          f.template values<Delta>(row),
                                          f.template values<B>(row),
                                          f.template values<C>(row),
                                          {m.state, carry(f.size)},
                                          {m.open, D},
                                          {m.open + f.tile * D, D},
                                          {},
                                          {},
                                          {}};
        if (m.awaited) {
            open.delta_before = f.template values<Delta>(before);
            open.b_before = f.template values<B>(before);
            open.u_before = f.template values<U>(before);
        }
        f.each_row(f.tile, open);
        m.awaited = false;
    }
    template <class F>
    static void value(F& f, index row, index n) {
        if (f.phase == pass::replay) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size);
        if (is_opened(f)) {
            const T *p = m.open + row % f.tile * D, *g = p + f.tile * D;
            f.one_row(body::open_value<T>{n * D, p, g, f.template value_at<U>(row), f.template value_at<node>(row)});
            return;
        }
        T* state = iterated ? m.trial : m.state;
        if (iterated) f.on.copy(f.tile * one, f.phase == pass::forward ? m.state : before(f, row), state);
        auto step = chain_in_scan<node, chain_before<F, node>>(f, row);
        auto behind = chain_in_scan<node, chain_behind<F, node>>(f, row);
        using scan = body::selective_scan<T, decltype(step), decltype(behind)>;
        f.each_row(f.tile, scan{shape(f, n),
                                m.A,
                                f.template values<Delta>(row),
                                f.template values<B>(row),
                                f.template values<C>(row),
                                f.template values<U>(row),
                                {state, one},
                                f.template values<node>(row),
                                step,
                                behind});
    }
    template <class F>
    static void close(F& f, index row, index n) {
        if (!iterated) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index one = carry(f.size), all = f.tile * one, next = (row + n) / f.tile;
        const bool begins_block = next % block_tokens(f) == 0;
        // Opening the next token adds it on the way, unless somebody reads the state before.
        m.awaited = opened && n == f.tile && f.chunk == 1 && next < f.tokens && !begins_block;
        if (m.awaited) return;
        if (opened && n == f.tile)
            f.each_row(f.tile, body::selective_scan_close<T>{f.size.d_state,
                                                             width(f.size),
                                                             f.template values<Delta>(row),
                                                             f.template values<B>(row),
                                                             f.template values<U>(row),
                                                             {m.state, one}});
        else
            std::swap(m.state, m.trial);
        if (next < f.tokens && begins_block) f.on.copy(all, m.state, m.starts + next / block_tokens(f) * all);
    }

    template <class F>
    static void open_back(F& f, index row, index n) {
        if (!opened || n != f.tile) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size);
        f.each_row(f.tile, body::selective_scan_open_back<T>{f.size.d_state,
                                                             D,
                                                             f.template values<Delta>(row),
                                                             f.template values<B>(row),
                                                             f.template values<C>(row),
                                                             {m.state, carry(f.size)},
                                                             {m.open, D},
                                                             {m.open + f.tile * D, D}});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size);
        constexpr bool solving = Reach != dependence::input && iterated;
        if constexpr (solving && joined<Delta, B, C> < Reach) {
            if constexpr (U::depends < Reach) {
                return;
            } else if (f.span == 1) {
                const T *k = m.open + row % f.tile * D, *g = k + f.tile * D;
                f.one_row(
                    body::open_value_back<T>{n * D, k, g, f.template bar_at<node>(row), f.template bar_at<U>(row)});
            } else {
                f.on.copy(f.tile * one, m.state, m.trial);
                with_chain_back<node, chain_behind<F, node>, Reach>(f, row, [&](const auto& behind) {
                    using scan = body::selective_scan_back_input<T, std::remove_cvref_t<decltype(behind)>>;
                    f.each_row(f.tile, scan{shape(f, n),
                                            m.A,
                                            f.template values<Delta>(row),
                                            f.template values<B>(row),
                                            f.template values<C>(row),
                                            f.template bars<node>(row),
                                            {m.trial, one},
                                            f.template bars<U>(row),
                                            behind});
                });
            }
        } else {
            T* running = m.state;
            if (solving) {
                f.on.copy(f.tile * one, m.state, m.trial);
                running = m.trial;
            }
            auto A_bar = f.sums(f.tile, one, solving ? nullptr : m.A_bar);
            const auto scan_back = [&](const auto& step, const auto& behind) {
                using scan = body::selective_scan_back<T, std::remove_cvref_t<decltype(step)>,
                                                       std::remove_cvref_t<decltype(behind)>>;
                f.each_row(f.tile, scan{shape(f, n),
                                        m.A,
                                        f.template values<Delta>(row),
                                        f.template values<B>(row),
                                        f.template values<C>(row),
                                        f.template values<U>(row),
                                        {before(f, row), one},
                                        f.template bars<node>(row),
                                        {running, one},
                                        A_bar.into,
                                        {f.template bar_within<Delta, Reach>(row), f.template stride_of<Delta>()},
                                        {f.template bar_within<B, Reach>(row), f.template stride_of<B>()},
                                        {f.template bar_within<C, Reach>(row), f.template stride_of<C>()},
                                        {f.template bar_within<U, Reach>(row), f.template stride_of<U>()},
                                        m.scratch,
                                        step,
                                        behind});
            };
            with_chain_back<node, chain_behind<F, node>, Reach>(f, row, [&](const auto& behind) {
                with_chain_back<node, chain_before<F, node>, Reach>(f, row,
                                                                    [&](const auto& step) { scan_back(step, behind); });
            });
            A_bar.finish();
        }
    }
    /// ω̄ += A ⊙ Ā
    template <class F>
    static void end_back(F& f) {
        auto& m = f.template memory_of<node>();
        f.one_row(body::add_product<typename F::scalar>{carry(f.size), m.A, m.A_bar, f.template gradient_of<node>()});
    }
    template <class F>
    static void before_unrolled_chunk(F& f) {
        auto& m = f.template memory_of<node>();
        f.on.fill(f.tile * carry(f.size), m.sum, 0);
    }
    template <class F>
    static void after_unrolled_step(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        move_to_sum(f, f.tile * carry(f.size), m.state, m.sum);
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        f.on.copy(f.tile * carry(f.size), m.sum, m.state);
    }

private:
    /// Tokens solved together; all of them outside the iteration.
    template <class F>
    static index chunk(const F& f) {
        return std::max<index>(1, iterated ? std::min(f.chunk, f.tokens) : f.tokens);
    }
    /// Tokens between two states that are kept: whole chunks, 16 tokens or more.
    template <class F>
    static index block_tokens(const F& f) {
        return chunk(f) * std::max<index>(1, kernel::selective_scan_block / chunk(f));
    }
    template <class F>
    static kernel::selective_scan_shape shape(const F& f, index n) {
        return {n / f.tile, f.size.d_state, width(f.size), f.tile * width(f.size), f.tile * f.size.d_state};
    }
    /// H before the chunk that begins at `row`, recomputed block by block from the states that were kept.
    template <class F>
    static const typename F::scalar* before(F& f, index row) {
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index one = carry(f.size), all = f.tile * one, tokens = block_tokens(f), length = chunk(f);
        const index t = row / f.tile, block = t / tokens, first = block * tokens;
        const auto at = [&](index i) { return i == 0 ? m.starts + block * all : m.inside + (i - 1) * all; };
        if (m.block != block) {
            m.block = block;
            const index last = std::min(f.tokens, first + tokens);
            for (index i = 1; first + i * length < last; ++i) {
                const index from = (first + (i - 1) * length) * f.tile;
                f.each_row(f.tile, body::selective_scan_advance<T>{shape(f, length * f.tile),
                                                                   m.A,
                                                                   f.template values<Delta>(from),
                                                                   f.template values<B>(from),
                                                                   f.template values<U>(from),
                                                                   {at(i - 1), one},
                                                                   {at(i), one}});
            }
        }
        return at((t - first) / length);
    }
};

}  // namespace fprnn
