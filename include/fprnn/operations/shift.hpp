#pragma once

#include <fprnn/operations/frame.hpp>

namespace fprnn::operations {

/// Outside of the iteration: rows move down by one token, and the last one is the carry.
template <class T, class Backend>
struct shift : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    static constexpr bool is_by_row = false;

    struct memory {
        T* before = nullptr;           ///< [tile, width], token −1: kept
        const T* carry_bar = nullptr;  ///< [tile, width], the cotangent of the carry out; null where it is zero
    };
    void lay_out(frame& f, slot s, arena<T>&, arena<T>& kept) const {
        f.template make<memory>(s).before = kept.take(f.tile * f.width(s));
    }
    void begin(frame& f, slot s, const T* carry) const {
        auto& m = f.template own<memory>(s);
        if (f.phase == pass::backward)
            m.carry_bar = carry;
        else
            f.on.copy(f.tile * f.width(s), carry, m.before);
    }
    void end(frame& f, slot s, T* carry) const {
        const memory& m = f.template own<memory>(s);
        if (f.phase != pass::backward) return f.copy_last(f.graph.operand(s, 0), m.before, carry);
        const index D = f.width(s);
        if (!f.lengths || !m.carry_bar) return f.on.copy(f.tile * D, f.bar_at(s, 0), carry);
        for (index q = 0; q < f.tile; ++q)  // without tokens it goes through; `carry` may be what m.carry_bar is
            f.on.copy(D, f.lengths[q] > 0 ? f.bar_at(s, q) : m.carry_bar + q * D, carry + q * D);
    }
    void value(frame& f, slot s, index row, index n) const {
        const index D = f.width(s);
        T* out = f.value_at(s, row);
        if (row == 0) {
            f.on.copy(f.tile * D, f.template own<memory>(s).before, out);
            out += f.tile * D;
            row += f.tile;
            n -= f.tile;
        }
        f.on.copy(n * D, f.value_at(f.graph.operand(s, 0), row - f.tile), out);
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        const index D = f.width(s), skip = row == 0 ? f.tile : 0;
        f.one_row(body::add<T>{(n - skip) * D, f.bar_at(s, row + skip), f.bar_at(x, row + skip - f.tile)});
        const memory& m = f.template own<memory>(s);
        if (m.carry_bar && row + n == f.rows()) f.add_to_last(x, m.carry_bar, nullptr);
    }
};

/// y_{t−1}^{ℓ−1}: inside a chunk the previous iterate one token earlier; at its first token, what the chunk
/// before reached.
template <class T, class Backend>
struct shift_of_iterate : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    static constexpr bool is_by_row = false;

    struct memory {
        T* before = nullptr;           ///< [tile, width], token −1: kept
        T* before_bar = nullptr;       ///< [tile, width], its cotangent
        const T* carry_bar = nullptr;  ///< [tile, width], the cotangent of the carry out; null where it is zero
    };
    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const {
        auto& m = f.template make<memory>(s);
        m.before = kept.take(f.tile * f.width(s));
        if (f.phase != pass::forward) m.before_bar = scratch.take(f.tile * f.width(s));
    }
    void begin(frame& f, slot s, const T* carry) const {
        auto& m = f.template own<memory>(s);
        const index n = f.tile * f.width(s);
        if (f.phase != pass::backward) return f.on.copy(n, carry, m.before);
        m.carry_bar = carry;
        f.on.fill(n, m.before_bar, 0);
    }
    void end(frame& f, slot s, T* carry) const {
        const memory& m = f.template own<memory>(s);
        if (f.phase == pass::backward)
            f.on.copy(f.tile * f.width(s), m.before_bar, carry);
        else
            f.copy_last(f.graph.stage_of(s).fixed_point, m.before, carry);
    }
    void value(frame& f, slot s, index row, index n) const {
        const index D = f.width(s), block = f.tile * D;
        T* out = f.value_at(s, row);
        const T* first =
            row == 0 ? f.template own<memory>(s).before : f.value_at(f.graph.stage_of(s).fixed_point, row - f.tile);
        f.on.copy(block, first, out);
        f.on.copy(n * D - block, f.value_at(f.graph.stage_of(s).previous, row), out + block);
    }
    /// Within the chunk.
    void back(frame& f, slot s, index row, index n, dependence) const {
        f.one_row(body::add<T>{(n - f.tile) * f.width(s), f.bar_at(s, row + f.tile),
                               f.bar_at(f.graph.stage_of(s).previous, row)});
    }
    void begin_adjoint(frame& f, slot s) const {
        const memory& m = f.template own<memory>(s);
        if (m.carry_bar) f.add_to_last(f.graph.stage_of(s).fixed_point, m.carry_bar, m.before_bar);
    }
    void pass_to_chunk_before(frame& f, slot s, index row) const {
        T* to =
            row == 0 ? f.template own<memory>(s).before_bar : f.bar_at(f.graph.stage_of(s).fixed_point, row - f.tile);
        f.one_row(body::add<T>{f.tile * f.width(s), f.bar_at(s, row), to});
    }
};

}  // namespace fprnn::operations
