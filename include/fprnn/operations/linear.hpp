#pragma once

#include <fprnn/operations/frame.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace fprnn::operations {

/// W [n, k₁ + k₂ + …] beside its parts. A part that depends on less than the map is multiplied for all tokens
/// at once (`hoist`); the rest where the map itself is evaluated, and on the CPU all of it where nothing is
/// evaluated twice: in one-token chunks of maps that do not see y_t.
template <class T, class Backend>
struct linear : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    struct memory {
        /// [T, tile, n]: bias and the hoisted parts; null where nothing is evaluated twice.
        T* hoisted = nullptr;
        T* total = nullptr;       ///< [T, tile, n]: cotangents summed over unrolled iterations
        T* packed = nullptr;      ///< the parts of W that one-token chunks multiply
        T* packed_bar = nullptr;  ///< a tile of the map's cotangents
        T *joint_weights = nullptr, *joint_rows = nullptr;  ///< where a backend multiplies several maps at a time
        T *W = nullptr,
          *W_bar = nullptr;  ///< [n,k] and its cotangents; null where they are the parameters and their gradient
    };

    static constexpr bool keeps_values = true;
    static constexpr bool keeps_cotangents = true;

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>&) const {
        auto& m = f.template make<memory>(s);
        if (!f.graph.is_iterated(s)) return;
        const index n = f.rows() * f.width(s);
        if ((f.phase == pass::forward && !is_evaluated_once(f, s)) || f.unrolled) m.hoisted = scratch.take(n);
        if (f.phase != pass::forward && f.unrolled) m.total = scratch.take(n);
        index packed = 0;
        if (has_one_token_chunk(f) && !f.unrolled)
            for_each_part(f, s, [&](const part& p) {
                if (!p.is_packed) return;
                packed += packed_size(f, s, p);
                if (f.phase == pass::forward) pack_rows_of(f, s, p, scratch);
            });
        if (packed == 0) return;
        m.packed = scratch.take(packed);
        if (f.phase != pass::forward) m.packed_bar = scratch.take(packed_rows_size(f, f.width(s)));
    }
    /// Products are formed of all tokens, of a chunk's and of those that the last chunk has.
    index packing_size(const frame& f, slot s) const {
        const auto size = [&](index tokens) {
            return f.on.template packing_size<T>(tokens * f.tile, f.width(s), columns(f, s));
        };
        return std::max({size(f.tokens), size(f.chunk), size(f.tokens % f.chunk)});
    }
    void begin(frame& f, slot s, const T*) const {
        if (!f.graph.is_iterated(s)) return;
        const memory& m = f.template own<memory>(s);
        if (m.total) f.on.fill(f.rows() * f.width(s), m.total, 0);
        if (m.packed == nullptr) return;
        for_each_part(f, s, [&](const part& p) {
            if (!p.packed) return;
            if (f.phase == pass::forward)
                f.on.pack(weights(f, s, p), p.packed);
            else
                f.on.pack_back(weights(f, s, p), p.packed);
        });
    }
    void hoist(frame& f, slot s) const {
        if (!f.graph.is_iterated(s) || !has_hoisted(f, s) || is_token_by_token(f, s)) return;
        T* out = is_evaluated_once(f, s) ? f.value_at(s, 0) : f.template own<memory>(s).hoisted;
        multiply_parts(f, s, 0, f.rows(), out, start(f, s, out, f.rows()), hoisted);
    }
    void value(frame& f, slot s, index row, index n) const {
        if (f.phase == pass::replay) return;
        T* out = f.value_at(s, row);
        bool overwrite = true;
        if (!f.graph.is_iterated(s)) {
            overwrite = start(f, s, out, n);
        } else if (has_hoisted(f, s)) {
            const index D = f.width(s);
            if (is_token_by_token(f, s)) {
                overwrite = multiply_parts(f, s, row, n, out, start(f, s, out, n), hoisted);
            } else {
                if (!is_evaluated_once(f, s)) f.on.copy(n * D, f.template own<memory>(s).hoisted + row * D, out);
                overwrite = false;
            }
        }
        multiply_parts(f, s, row, n, out, overwrite, here);
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        if (T* packed = f.template own<memory>(s).packed_bar; packed && n == f.tile)
            f.on.pack_rows(matrix<const T>{f.bar_at(s, row), n, f.width(s), f.stride(s)}, packed);
        for_each_part(f, s, [&](const part& p) {
            const bool is_reached =
                p.is_hoisted ? reach == dependence::input && is_token_by_token(f, s) : f.graph[p.from].depends >= reach;
            if (is_reached) multiply_back(f, s, row, n, p);
        });
    }
    void hoist_back(frame& f, slot s) const {
        if (is_token_by_token(f, s)) return;
        for_each_part(f, s, [&](const part& p) {
            if (p.is_hoisted) multiply_back(f, s, 0, f.rows(), p);
        });
    }
    void end_back(frame& f, slot s) const {
        const index n = f.width(s);
        multiply_weights(f, s, 0, f.rows(),
                         [&](const part& p) { return !f.graph.is_iterated(s) || p.is_hoisted || !f.unrolled; });
        if (!f.graph[s].has_bias) return;
        auto sums = f.sums(f.rows(), n, f.gradient_of(s) + bias_at(f, s));
        f.each_row(f.rows(), body::add_rows<T>{n, f.bars(s, 0), sums.into});
        sums.finish();
    }

    /// Iterations differ in what the iterated parts were, so their weights are formed iteration by iteration;
    /// what the hoisted parts need is summed.
    void after_unrolled_step(frame& f, slot s, index row, index n) const {
        if (!f.graph.is_iterated(s)) return;
        multiply_weights(f, s, row, n, [](const part& p) { return !p.is_hoisted; });
        const index D = f.width(s);
        f.one_row(body::add<T>{n * D, f.bar_at(s, row), f.template own<memory>(s).total + row * D});
    }
    void after_unrolled_chunk(frame& f, slot s, index row, index n) const {
        const index D = f.width(s);
        if (f.graph.is_iterated(s)) f.on.copy(n * D, f.template own<memory>(s).total + row * D, f.bar_at(s, row));
    }

protected:
    /// An operand, and its columns of W. Equal operands are several parts.
    struct part {
        slot from;
        index column, width;
        bool is_hoisted, is_packed;
        T* packed;  ///< its columns as begin packed them; null where it has not
    };
    template <class G>
    static void for_each_part(const frame& f, slot s, G&& g) {
        const bool iterated = f.graph.is_iterated(s), token_by_token = is_token_by_token(f, s);
        T* packed = f.template own<memory>(s).packed;
        index column = 0;
        for (const slot from : f.graph.operands(s)) {
            part p{from, column, f.width(from), iterated && !f.graph.is_iterated(from), false, packed};
            p.is_packed = iterated && (!p.is_hoisted || token_by_token) && !is_multiplied_once(f, s);
            if (!p.is_packed) p.packed = nullptr;
            g(std::as_const(p));
            if (p.packed) packed += packed_size(f, s, p);
            column += p.width;
        }
    }
    static matrix<const T> weights(const frame& f, slot s, const part& p) {
        const T* W = f.template own<memory>(s).W;
        return {(W ? W : f.parameters_of(s)) + p.column, f.width(s), p.width, columns(f, s)};
    }
    static matrix<T> weights_bar(const frame& f, slot s, const part& p) {
        T* W_bar = f.template own<memory>(s).W_bar;
        return {(W_bar ? W_bar : f.gradient_of(s)) + p.column, f.width(s), p.width, columns(f, s)};
    }
    /// Whether something is there before the iterated parts are multiplied: the bias, or hoisted parts.
    static bool has_hoisted(const frame& f, slot s) {
        if (f.graph[s].has_bias) return true;
        for (const slot from : f.graph.operands(s))
            if (!f.graph.is_iterated(from)) return true;
        return false;
    }

    static index columns(const frame& f, slot s) {
        index all = 0;
        for (const slot from : f.graph.operands(s)) all += f.width(from);
        return all;
    }

private:
    enum which { hoisted, here };

    /// Where the bias stands among the node's parameters.
    static index bias_at(const frame& f, slot s) {
        return f.width(s) * (columns(f, s) + (f.graph[s].weight_normed ? 1 : 0));
    }
    /// Whether every token's rows are evaluated once: what is hoisted need not be copied then.
    static bool is_evaluated_once(const frame& f, slot s) {
        return f.graph[s].depends == dependence::shifted && f.chunk == 1 && !f.unrolled;
    }
    /// Whether a call has one product of it, for which packing W would not pay: a streamed token.
    static bool is_multiplied_once(const frame& f, slot s) {
        return f.phase == pass::forward && f.tokens == 1 && is_evaluated_once(f, s);
    }
    /// Whether hoisting would only write these rows and read them once more.
    static bool is_token_by_token(const frame& f, slot s) { return has_tiles<Backend> && is_evaluated_once(f, s); }
    /// Also when the last chunk alone is: its bits are then those of a call that begins with it.
    static bool has_one_token_chunk(const frame& f) { return f.chunk == 1 || f.tokens % f.chunk == 1; }

    static index packed_rows_size(const frame& f, index n) { return f.on.template packed_size<T>(f.tile, n); }
    /// Whole cache lines.
    static index packed_size(const frame& f, slot s, const part& p) {
        constexpr index line = 64 / static_cast<index>(sizeof(T));
        return (f.on.template packed_size<T>(f.width(s), p.width) + line - 1) / line * line;
    }
    /// The maps that are evaluated in the same sweep over the nodes share packed rows of an operand; the
    /// first of them packs. Where several fixed points read the operand, maps of the later ones pack for
    /// themselves.
    static std::size_t sweep_of(const frame& f, slot s) { return f.graph[s].depends == dependence::current ? 1 : 0; }
    static void pack_rows_of(frame& f, slot s, const part& p, arena<T>& scratch) {
        auto& from = f.nodes[p.from];
        slot& first = from.packed_by[sweep_of(f, s)];
        if (first != graph::nowhere) return;
        first = s;
        from.packed = scratch.take(packed_rows_size(f, p.width));
    }
    /// Of the parts p for which which(p).
    template <class Which>
    static void multiply_weights(frame& f, slot s, index row, index n, const Which& which) {
        std::array<weights_part<T>, 8> some;  // which share the packed cotangents
        std::size_t count = 0;
        const auto multiply = [&] {
            f.on.multiply_weights(matrix<const T>{f.bar_at(s, row), n, f.width(s), f.stride(s)},
                                  weights_parts<T>(some.data(), count), f.packing);
            count = 0;
        };
        for_each_part(f, s, [&](const part& p) {
            if (!which(p)) return;
            some[count++] = {weights_bar(f, s, p), f.value_rows(p.from, row, n)};
            if (count == some.size()) multiply();
        });
        if (count > 0) multiply();
    }
    /// The bias, when there is one; says whether the first product overwrites.
    static bool start(const frame& f, slot s, T* out, index n) {
        if (!f.graph[s].has_bias) return true;
        const index D = f.width(s);
        f.each_row(n, body::copy<T>{D, {f.parameters_of(s) + bias_at(f, s), 0}, {out, D}});
        return false;
    }
    /// Says whether the next product overwrites.
    static bool multiply_parts(frame& f, slot s, index row, index n, T* to, bool overwrite, which parts) {
        const matrix<T> out{to, n, f.width(s), f.width(s)};
        for_each_part(f, s, [&](const part& p) {
            if (p.is_hoisted != (parts == hoisted)) return;
            const auto x = f.value_rows(p.from, row, n);
            const auto w = weights(f, s, p);
            if (p.packed && n == f.tile && !f.is_block) {
                const auto& from = f.nodes[p.from];
                const slot first = from.packed_by[sweep_of(f, s)];
                if (first == s || f.graph[first].stage != f.graph[s].stage) f.on.pack_rows(x, from.packed);
                f.on.multiply_packed(out, {x, from.packed}, {w, p.packed}, overwrite);
            } else {
                f.on.multiply(out, x, w, overwrite, f.packing);
            }
            overwrite = false;
            // Of all tokens is one product, also when it is formed token by token.
            if (f.graph.is_iterated(s) && parts == here)
                ++f.work.matrix_products;
            else if (row == 0)
                ++f.work.hoisted_products;
        });
        return overwrite;
    }
    static void multiply_back(frame& f, slot s, index row, index n, const part& p) {
        const matrix<T> x_bar = f.bar_rows(p.from, row, n);
        const matrix<const T> y_bar{f.bar_at(s, row), n, f.width(s), f.stride(s)};
        const auto w = weights(f, s, p);
        if (p.packed && n == f.tile)
            f.on.multiply_back_packed(x_bar, {y_bar, f.template own<memory>(s).packed_bar}, {w, p.packed}, false);
        else
            f.on.multiply_back(x_bar, y_bar, w, f.graph[p.from].overwritten_by == s, f.packing);
    }
};

}  // namespace fprnn::operations
