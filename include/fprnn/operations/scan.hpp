#pragma once

#include <fprnn/operations/frame.hpp>
#include <fprnn/ops/scan.hpp>

#include <algorithm>

namespace fprnn {

namespace body {

/// All sequences side by side, as one row of channels.
template <class T>
struct scan {
    index tokens, channels, stride;
    const T *lambda, *u, *before;
    T* h;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        kernel::scan<Team, T>(tokens, channels, stride, lambda, u, before, h);
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

namespace operations {

/// h_t = λ_t ⊙ h_{t−1} + u_t. A tile's sequences lie side by side, so they are scanned as one row of tile·D
/// channels.
template <class T, class Backend>
struct scan : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    struct memory {
        T* before = nullptr;   ///< [tile, D], h_{−1}
        T* running = nullptr;  ///< [tile, D], the cotangent that comes from later tokens
        T* trial = nullptr;    ///< [tile, D], the same inside the adjoint's iteration; its sum over unrolled ones
        T* aside = nullptr;    ///< [tile, D], of sequences that have ended, while others go on; null without lengths
    };

    static constexpr bool keeps_values = true, is_by_row = false;

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const {
        auto& m = f.template make<memory>(s);
        const index n = f.tile * f.width(s);
        m.before = kept.take(n);
        m.running = scratch.take(n);
        m.trial = scratch.take(n);
        if (f.lengths && f.phase != pass::forward) m.aside = scratch.take(n);
    }
    void begin(frame& f, slot s, const T* carry) const {
        const memory& m = f.template own<memory>(s);
        const index n = f.tile * f.width(s);
        if (f.phase != pass::backward)
            f.on.copy(n, carry, m.before);
        else if (carry)
            f.on.copy(n, carry, m.running);
        else
            f.on.fill(n, m.running, 0);
    }
    void end(frame& f, slot s, T* carry) const {
        const memory& m = f.template own<memory>(s);
        if (f.phase == pass::backward)
            f.on.copy(f.tile * f.width(s), m.running, carry);
        else
            f.copy_last(s, m.before, carry);
    }
    void value(frame& f, slot s, index row, index n) const {
        if (f.phase == pass::replay) return;
        const index tokens = tokens_of(f, s, n), D = n / tokens * f.width(s);
        const T *lambda = f.value_at(f.graph.operand(s, 0), row), *u = f.value_at(f.graph.operand(s, 1), row),
                *before = start(f, s, row);
        f.by_channels(tokens, D, [&](index first, index count) {
            f.one_row(
                body::scan<T>{tokens, count, D, lambda + first, u + first, before + first, f.value_at(s, row) + first});
        });
        f.clear_behind(row, n, f.width(s), f.value_at(s, row));
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        if (f.graph[s].depends < reach) return;
        const slot lambda = f.graph.operand(s, 0), u = f.graph.operand(s, 1);
        const memory& m = f.template own<memory>(s);
        const index tokens = tokens_of(f, s, n), D = n / tokens * f.width(s);
        T* running = m.running + row % f.tile * f.width(s);
        if (reach != dependence::input) {
            f.on.copy(D, running, m.trial);
            running = m.trial;
        }
        const body::scan_back<T> all{
            tokens,           D,       f.value_at(lambda, row),          f.value_at(s, row),         start(f, s, row),
            f.bar_at(s, row), running, f.bar_within(lambda, row, reach), f.bar_within(u, row, reach)};
        if (f.lengths)
            back_to_ends(f, s, row, n, all);
        else
            f.one_row(all);
    }

    void before_unrolled_chunk(frame& f, slot s) const {
        f.on.fill(f.tile * f.width(s), f.template own<memory>(s).trial, 0);
    }
    void after_unrolled_step(frame& f, slot s, index, index) const {
        const memory& m = f.template own<memory>(s);
        move_to_sum(f, f.tile * f.width(s), m.running, m.trial);
    }
    void after_unrolled_chunk(frame& f, slot s, index, index) const {
        const memory& m = f.template own<memory>(s);
        f.on.copy(f.tile * f.width(s), m.trial, m.running);
    }

private:
    /// Outside of the iteration all tokens are at hand, inside it the chunk's.
    static index tokens_of(const frame& f, slot s, index n) { return f.graph.is_iterated(s) ? f.span : n / f.tile; }
    /// Tokens that the same sequences have at a time. Through those behind its end the cotangent of a
    /// sequence's state goes unchanged.
    static void back_to_ends(frame& f, slot s, index row, index n, const body::scan_back<T>& all) {
        const index D = f.width(s), q = row % f.tile, sequences = n / all.tokens;
        T* const aside = f.template own<memory>(s).aside;
        const auto own = [&](index i) { return f.tokens_within(q + i, row / f.tile, all.tokens); };
        for (index last = all.tokens, first = 0; last > 0; last = first) {
            first = 0;
            for (index i = 0; i < sequences; ++i)
                if (own(i) < last) first = std::max(first, own(i));
            for (index i = 0; i < sequences; ++i) {
                if (own(i) >= last) continue;
                f.on.copy(D, all.running + i * D, aside + i * D);
                f.on.fill(D, all.running + i * D, 0);
            }
            body::scan_back<T> part = all;
            const index at = first * all.channels;
            part.tokens = last - first;
            part.lambda += at, part.h += at, part.h_bar += at;
            if (first > 0) part.before = all.h + at - all.channels;
            if (part.lambda_bar) part.lambda_bar += at;
            if (part.u_bar) part.u_bar += at;
            f.one_row(part);
            for (index i = 0; i < sequences; ++i)
                if (own(i) < last) f.on.copy(D, aside + i * D, all.running + i * D);
        }
    }
    static const T* start(const frame& f, slot s, index row) {
        return row < f.tile ? f.template own<memory>(s).before + row * f.width(s) : f.value_at(s, row - f.tile);
    }
};

}  // namespace operations

}  // namespace fprnn
