#pragma once

#include <fprnn/ops/scan.hpp>
#include <fprnn/program/frame.hpp>

#include <algorithm>

namespace fprnn {

namespace body {

/// All sequences side by side, as one row of channels.
template <class T>
struct scan {
    index tokens, channels;
    const T *lambda, *u, *before;
    T* h;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        kernel::scan<Team, T>(tokens, channels, channels, lambda, u, before, h);
    }
};

template <class T>
struct scan_back {
    index tokens, channels;
    const T *lambda, *h, *before, *h_bar;
    T *running, *lambda_bar, *u_bar;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        kernel::scan_back<Team>(tokens, channels, channels, lambda, h, before, h_bar, running, lambda_bar, u_bar);
    }
};

}  // namespace body

template <class Lambda, class U>
struct rule<scan_node<Lambda, U>> : plain_rule {
    using node = scan_node<Lambda, U>;
    static constexpr bool kept = true;
    static constexpr bool affine = Lambda::depends < dependence::current;
    template <class T>
    struct memory {
        T* before = nullptr;   ///< [tile, D], h_{−1}
        T* running = nullptr;  ///< [tile, D], the cotangent that comes from later tokens
        T* trial = nullptr;    ///< [tile, D], the same inside the adjoint's iteration; its sum over unrolled ones
    };
    static index width(const dims& d) { return node::width::of(d); }
    static index carry(const dims& d) { return width(d); }

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>& kept_arena) {
        auto& m = f.template memory_of<node>();
        const index n = f.tile * width(f.size);
        m.before = kept_arena.take(n);
        m.running = scratch.take(n);
        m.trial = scratch.take(n);
    }
    template <class F>
    static void before_unrolled_chunk(F& f) {
        auto& m = f.template memory_of<node>();
        f.on.fill(f.tile * width(f.size), m.trial, 0);
    }
    template <class F>
    static void after_unrolled_step(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        move_to_sum(f, f.tile * width(f.size), m.running, m.trial);
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        f.on.copy(f.tile * width(f.size), m.trial, m.running);
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        auto& m = f.template memory_of<node>();
        const index n = f.tile * width(f.size);
        if (carry) f.on.copy(n, carry, m.before);
        if (f.phase == pass::backward) f.on.fill(n, m.running, 0);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        f.on.copy(f.tile * width(f.size), f.template value_at<node>(f.rows() - f.tile), carry);
    }
    /// A tile's sequences lie side by side, so they are scanned as one row of tile·D channels.
    template <class F>
    static void value(F& f, index row, index n) {
        if (f.phase == pass::replay) return;
        using T = typename F::scalar;
        const index tokens = tokens_of(f, n), D = n / tokens * width(f.size);
        f.one_row(body::scan<T>{tokens, D, f.template value_at<Lambda>(row), f.template value_at<U>(row), start(f, row),
                                f.template value_at<node>(row)});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        if constexpr (node::depends >= Reach) {
            auto& m = f.template memory_of<node>();
            const index tokens = tokens_of(f, n), D = n / tokens * width(f.size);
            T* running = m.running + row % f.tile * width(f.size);
            if constexpr (Reach != dependence::input) {
                f.on.copy(D, running, m.trial);
                running = m.trial;
            }
            f.one_row(body::scan_back<T>{tokens, D, f.template value_at<Lambda>(row), f.template value_at<node>(row),
                                         start(f, row), f.template bar_at<node>(row), running,
                                         f.template bar_within<Lambda, Reach>(row),
                                         f.template bar_within<U, Reach>(row)});
        }
    }

private:
    /// Outside of the iteration all tokens are at hand, inside it the chunk's.
    template <class F>
    static index tokens_of(const F& f, index n) {
        return node::depends == dependence::input || node::depends == dependence::output ? n / f.tile : f.span;
    }
    template <class F>
    static const typename F::scalar* start(F& f, index row) {
        return row < f.tile ? f.template memory_of<node>().before + row * width(f.size)
                            : f.template value_at<node>(row - f.tile);
    }
};

}  // namespace fprnn
