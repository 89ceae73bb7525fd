#pragma once

#include <fprnn/operations/attention_bodies.hpp>

#include <cmath>

namespace fprnn::operations {

/// Causal softmax attention. Keys and values of a sequence are appended to those of its carry, and a query
/// sees them in that order, whichever call appended them: so several calls have the bits of one. Memory is
/// linear in tokens: what a query sees goes through its softmax in blocks, of which the adjoint computes the
/// probabilities again.
template <positions P, class T, class Backend>
struct attention : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    using normaliser = attending::normaliser<T>;

    struct memory {
        T* cache = nullptr;             ///< [tile, carry], with the count before the call: kept
        normaliser* z = nullptr;        ///< [rows, H]: kept
        T* turned = nullptr;            ///< [rows, H K], queries
        T* cache_bar = nullptr;         ///< [tile, carry]
        double* frequencies = nullptr;  ///< [K/2]; null where positions do not matter
        strided<T> scratch;             ///< [workers, H K]
        bool has_carry_bar = false;     ///< the carry out has a cotangent
    };

    static constexpr bool keeps_values = true, is_by_row = false;

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const {
        auto& m = f.template make<memory>(s);
        const attention_sizes of = sizes(f, s);
        m.cache = kept.take(f.tile * of.carry());
        m.z = kept.template take_room<normaliser>(f.rows() * of.heads);
        m.turned = scratch.take(f.rows() * of.heads * of.K);
        if (P == positions::rotary) m.frequencies = scratch.template take_room<double>(of.K / 2);
        if (f.phase == pass::forward) return;
        m.cache_bar = scratch.take(f.tile * of.carry());
        m.scratch = f.take_per_worker(scratch, of.heads * of.K, f.tile);
    }
    void begin(frame& f, slot s, const T* carry) const {
        auto& m = f.template own<memory>(s);
        const attention_sizes of = sizes(f, s);
        for (index c = 0; m.frequencies && c < of.K / 2; ++c)
            m.frequencies[c] = std::pow(1e4, static_cast<double>(-2 * c) / static_cast<double>(of.K));
        m.has_carry_bar = f.phase == pass::backward && carry;
        for (index q = 0; q < f.tile; ++q) {
            const index at = q * of.carry();
            if (f.phase != pass::backward)
                each_part(f, of, q, static_cast<index>(carry[at]),
                          [&](index first, index n) { f.on.copy(n, carry + at + first, m.cache + at + first); });
            else
                each_part(f, of, q, count(m, of, q), [&](index first, index n) {
                    if (carry)
                        f.on.copy(n, carry + at + first, m.cache_bar + at + first);
                    else
                        f.on.fill(n, m.cache_bar + at + first, 0);
                });
        }
    }
    void end(frame& f, slot s, T* carry) const {
        const memory& m = f.template own<memory>(s);
        const attention_sizes of = sizes(f, s);
        const bool is_backward = f.phase == pass::backward;
        if (is_backward && !m.has_carry_bar) f.on.fill(f.tile * of.carry(), carry, 0);
        const T* const from = is_backward ? m.cache_bar : m.cache;
        for (index q = 0; q < f.tile; ++q) {
            const index at = q * of.carry(), before = count(m, of, q);
            each_part(f, of, q, before,
                      [&](index first, index n) { f.on.copy(n, from + at + first, carry + at + first); });
            if (!is_backward) carry[at] = static_cast<T>(before + f.tokens_within(q, 0, f.tokens));
        }
    }
    void value(frame& f, slot s, index row, index n) const {
        if (f.phase == pass::replay) return;
        if constexpr (has_tiles<Backend>) {
            f.each_token(n, body::append_keys<T>{rows(f, s)});
            f.each_token(n, body::attend<T>{rows(f, s), f.values(s, 0)});
            f.clear_behind(row, n, f.width(s), f.value_at(s, row));
        }
    }
    void back(frame& f, slot s, index, index, dependence) const {
        const memory& m = f.template own<memory>(s);
        const auto bars = [&](std::size_t k) { return f.bars(f.graph.operand(s, k), 0); };
        if constexpr (has_tiles<Backend>)
            f.each_row(f.tile, body::attend_back<T>{rows(f, s), m.cache_bar, f.bars(s, 0), bars(0), bars(1), bars(2),
                                                    m.scratch});
    }

private:
    static attention_sizes sizes(const frame& f, slot s) {
        const index heads = f.size.heads;
        return {heads, f.width(f.graph.operand(s, 0)) / heads, f.width(s) / heads, f.size.context};
    }
    static index count(const memory& m, const attention_sizes& of, index q) {
        return attended<T>{of, m.cache + q * of.carry()}.count();
    }
    /// Calls what(first, n) for the parts of sequence q's carry in which these tokens and those before them
    /// stand.
    template <class What>
    static void each_part(const frame& f, const attention_sizes& of, index q, index before, const What& what) {
        const index n = of.tokens_of_blocks(before + f.tokens_within(q, 0, f.tokens)) * of.heads;
        what(0, 1 + n * of.K);
        what(1 + of.context * of.heads * of.K, n * of.V);
    }
    /// All rows: outside of an iteration they are at hand together.
    static body::attention_rows<T> rows(frame& f, slot s) {
        const memory& m = f.template own<memory>(s);
        const attention_sizes of = sizes(f, s);
        const auto operand = [&](std::size_t k) { return f.values(f.graph.operand(s, k), 0); };
        const index turned = of.heads * of.K;
        return {of,
                {of.heads, of.K, m.frequencies},
                f.tile,
                f.tokens,
                f.lengths,
                m.cache,
                operand(0),
                operand(1),
                operand(2),
                f.values(s, 0),
                {m.turned, turned},
                m.z};
    }
};

}  // namespace fprnn::operations
