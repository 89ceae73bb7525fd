#pragma once

#include <fprnn/operations/frame.hpp>

namespace fprnn::operations {

/// What both shifts have: token −1, which the carry holds between calls.
template <class T, class Backend>
struct shift_with_carry : operation<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    struct memory {
        T* before = nullptr;  ///< [tile, width], token −1
    };
    void lay_out(frame& f, slot s, arena<T>&, arena<T>& kept) const override {
        f.template make<memory>(s).before = kept.take(f.tile * f.width(s));
    }
    void begin(frame& f, slot s, const T* carry) const override {
        if (carry) f.on.copy(f.tile * f.width(s), carry, before(f, s));
    }

protected:
    static T* before(frame& f, slot s) { return f.template own<memory>(s).before; }
    /// The last token of node `of` becomes the carry.
    static void keep_last_token(frame& f, slot s, slot of, T* carry) {
        f.on.copy(f.tile * f.width(s), f.value_at(of, f.rows() - f.tile), carry);
    }
};

/// Outside of the iteration: rows move down by one token.
template <class T, class Backend>
struct shift final : shift_with_carry<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    void end(frame& f, slot s, T* carry) const override { this->keep_last_token(f, s, f.graph.operand(s, 0), carry); }
    void value(frame& f, slot s, index row, index n) const override {
        const index D = f.width(s);
        T* out = f.value_at(s, row);
        if (row == 0) {
            f.on.copy(f.tile * D, this->before(f, s), out);
            out += f.tile * D;
            row += f.tile;
            n -= f.tile;
        }
        f.on.copy(n * D, f.value_at(f.graph.operand(s, 0), row - f.tile), out);
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const override {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        const index skip = row == 0 ? f.tile : 0;
        f.one_row(body::add<T>{(n - skip) * f.width(s), f.bar_at(s, row + skip), f.bar_at(x, row + skip - f.tile)});
    }
};

/// y_{t−1}^{ℓ−1}: inside a chunk the previous iterate one token earlier; at its first token, what the chunk before reached.
template <class T, class Backend>
struct shift_of_iterate final : shift_with_carry<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    void end(frame& f, slot s, T* carry) const override { this->keep_last_token(f, s, f.graph.fixed_point, carry); }
    void value(frame& f, slot s, index row, index n) const override {
        const index D = f.width(s), block = f.tile * D;
        T* out = f.value_at(s, row);
        f.on.copy(block, row == 0 ? this->before(f, s) : f.value_at(f.graph.fixed_point, row - f.tile), out);
        f.on.copy(n * D - block, f.value_at(f.graph.previous, row), out + block);
    }
    /// Within the chunk; what goes to the chunk before is the engine's to pass on.
    void back(frame& f, slot s, index row, index n, dependence) const override {
        f.one_row(body::add<T>{(n - f.tile) * f.width(s), f.bar_at(s, row + f.tile), f.bar_at(f.graph.previous, row)});
    }
};

}  // namespace fprnn::operations
