#pragma once

#include <fprnn/ops/selective_scan_kernel.hpp>
#include <fprnn/program/frame.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fprnn {

template <fixed_string Name, class Delta, class B, class C, class U>
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
        T* ignored = nullptr;  ///< takes cotangents that the pass does not reach
        T* scratch = nullptr;
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
        const index D = width(f.size), one = carry(f.size), all = F::tile * one;
        const index span = chunk(f) * F::tile;
        m.starts = kept_arena.take((f.tokens + block_tokens(f) - 1) / block_tokens(f) * all);
        m.A = scratch.take(one);
        m.state = scratch.take(all);
        m.trial = scratch.take(all);
        m.open = scratch.take(2 * F::tile * D);
        if (f.phase == pass::forward) return;
        m.A_bar = scratch.take(one);
        m.inside = scratch.take((block_tokens(f) / chunk(f) - 1) * all);
        m.ignored = scratch.take(one + span * D + 2 * span * f.size.d_state);
        m.scratch = scratch.take(kernel::selective_scan_back_scratch(chunk(f), f.size.d_state, D));
        m.block = -1;
        if (f.unrolled) m.sum = scratch.take(all);
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carried) {
        using math::exp;
        auto& m = f.template memory_of<node>();
        const auto* omega = f.template parameters_of<node>();
        const index all = F::tile * carry(f.size);
        F::team::each(carry(f.size), [&](auto lane) { lane.store(m.A, exp(lane.load(omega))); });
        if (carried) {
            std::copy_n(carried, all, m.state);
            std::copy_n(carried, all, m.starts);
        } else {
            std::fill_n(m.state, all, typename F::scalar(0));
            std::fill_n(m.A_bar, carry(f.size), typename F::scalar(0));
        }
    }
    template <class F>
    static void end(F& f, typename F::scalar* carried) {
        std::copy_n(f.template memory_of<node>().state, F::tile * carry(f.size), carried);
    }

    /// A chunk of one token is opened once: what its input adds is then two vectors, whatever N is.
    template <class F>
    static void open(F& f, index row, index n) {
        if (!opened || n != F::tile || f.phase != pass::forward) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size);
        for (index s = 0; s < F::tile; ++s) {
            const index at = std::max<index>(row - F::tile, 0) + s;
            const kernel::open_token<T> before{f.template value_at<Delta>(at), f.template value_at<B>(at),
                                               f.template value_at<U>(at)};
            kernel::selective_scan_open<typename F::team, T>(
                f.size.d_state, D, m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                f.template value_at<C>(row + s), m.state + s * carry(f.size), m.open + s * D,
                m.open + (F::tile + s) * D, m.awaited ? &before : nullptr);
        }
        m.awaited = false;
    }
    template <class F>
    static void value(F& f, index row, index n) {
        if (f.phase == pass::replay) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size);
        if (opened && f.phase == pass::forward && f.span == 1) {
            const auto* u = f.template value_at<U>(row);
            auto* y = f.template value_at<node>(row);
            const T *p = m.open + row % F::tile * D, *g = p + F::tile * D;
            F::team::each(n * D, [&](auto lane) { lane.store(y, lane.load(p) + lane.load(g) * lane.load(u)); });
            return;
        }
        T* state = iterated ? m.trial : m.state;
        if (iterated) std::copy_n(f.phase == pass::forward ? m.state : before(f, row), F::tile * one, state);
        for (index s = 0; s < F::tile; ++s)
            kernel::selective_scan<typename F::team, T>(
                shape(f, n), m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                f.template value_at<C>(row + s), f.template value_at<U>(row + s), state + s * one,
                f.template value_at<node>(row + s));
    }
    template <class F>
    static void close(F& f, index row, index n) {
        if (!iterated) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index one = carry(f.size), all = F::tile * one, next = (row + n) / F::tile;
        const bool begins_block = next % block_tokens(f) == 0;
        // Opening the next token adds it on the way, unless somebody reads the state before.
        m.awaited = opened && n == F::tile && f.chunk == 1 && next < f.tokens && !begins_block;
        if (m.awaited) return;
        if (opened && n == F::tile)
            for (index s = 0; s < F::tile; ++s)
                kernel::selective_scan_close<typename F::team, T>(
                    f.size.d_state, width(f.size), f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                    f.template value_at<U>(row + s), m.state + s * one);
        else
            std::swap(m.state, m.trial);
        if (next < f.tokens && begins_block) std::copy_n(m.state, all, m.starts + next / block_tokens(f) * all);
    }

    template <class F>
    static void open_back(F& f, index row, index n) {
        if (!opened || n != F::tile) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size);
        for (index s = 0; s < F::tile; ++s)
            kernel::selective_scan_open_back<typename F::team, T>(
                f.size.d_state, D, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                f.template value_at<C>(row + s), m.state + s * carry(f.size), m.open + s * D,
                m.open + (F::tile + s) * D);
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
                const auto* y_bar = f.template bar_at<node>(row);
                auto* u_bar = f.template bar_at<U>(row);
                const T *k = m.open + row % F::tile * D, *g = k + F::tile * D;
                F::team::each(n * D,
                              [&](auto lane) { lane.add(u_bar, lane.load(g) * lane.load(y_bar) + lane.load(k)); });
            } else {
                std::copy_n(m.state, F::tile * one, m.trial);
                for (index s = 0; s < F::tile; ++s)
                    kernel::selective_scan_back_input<typename F::team, T>(
                        shape(f, n), m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                        f.template value_at<C>(row + s), f.template bar_at<node>(row + s), m.trial + s * one,
                        f.template bar_at<U>(row + s));
            }
        } else {
            T* running = m.state;
            T* A_bar = m.A_bar;
            T* ignored = m.ignored;
            if constexpr (solving) {
                std::copy_n(m.state, F::tile * one, m.trial);
                running = m.trial;
                A_bar = ignored;
            }
            ignored += one;
            const T* H = before(f, row);
            for (index s = 0; s < F::tile; ++s)
                kernel::selective_scan_back<typename F::team, T>(
                    shape(f, n), m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                    f.template value_at<C>(row + s), f.template value_at<U>(row + s), H + s * one,
                    f.template bar_at<node>(row + s), running + s * one, A_bar,
                    bar_or<Delta, Reach>(f, row + s, ignored), bar_or<B, Reach>(f, row + s, ignored),
                    bar_or<C, Reach>(f, row + s, ignored), bar_or<U, Reach>(f, row + s, ignored), m.scratch);
        }
    }
    /// ω̄ += A ⊙ Ā
    template <class F>
    static void end_back(F& f) {
        auto& m = f.template memory_of<node>();
        auto* omega_bar = f.template gradient_of<node>();
        F::team::each(carry(f.size), [&](auto lane) { lane.add(omega_bar, lane.load(m.A) * lane.load(m.A_bar)); });
    }
    template <class F>
    static void before_unrolled_chunk(F& f) {
        auto& m = f.template memory_of<node>();
        std::fill_n(m.sum, F::tile * carry(f.size), typename F::scalar(0));
    }
    template <class F>
    static void after_unrolled_step(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        move_to_sum<F>(F::tile * carry(f.size), m.state, m.sum);
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        std::copy_n(m.sum, F::tile * carry(f.size), m.state);
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
        return {n / F::tile, f.size.d_state, width(f.size), F::tile * width(f.size), F::tile * f.size.d_state};
    }
    template <class E, dependence Reach, class F>
    static typename F::scalar* bar_or(F& f, index row, typename F::scalar* ignored) {
        return E::depends >= Reach ? f.template bar_at<E>(row) : ignored;
    }
    /// H before the chunk that begins at `row`, recomputed block by block from the states that were kept.
    template <class F>
    static const typename F::scalar* before(F& f, index row) {
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index one = carry(f.size), all = F::tile * one, tokens = block_tokens(f), length = chunk(f);
        const index t = row / F::tile, block = t / tokens, first = block * tokens;
        const auto at = [&](index i) { return i == 0 ? m.starts + block * all : m.inside + (i - 1) * all; };
        if (m.block != block) {
            m.block = block;
            const index last = std::min(f.tokens, first + tokens);
            for (index i = 1; first + i * length < last; ++i) {
                const index from = (first + (i - 1) * length) * F::tile;
                for (index s = 0; s < F::tile; ++s)
                    kernel::selective_scan_advance<typename F::team, T>(
                        shape(f, length * F::tile), m.A, f.template value_at<Delta>(from + s),
                        f.template value_at<B>(from + s), f.template value_at<U>(from + s), at(i - 1) + s * one,
                        at(i) + s * one);
            }
        }
        return at((t - first) / length);
    }
};

}  // namespace fprnn
