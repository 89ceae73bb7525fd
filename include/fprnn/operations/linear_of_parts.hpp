#pragma once

#include <fprnn/operations/frame.hpp>

#include <algorithm>

namespace fprnn::operations {

/// A block-diagonal W, [parts, n, k]: a product for each part, of its columns of the rows. Weights and bias
/// receive theirs from all rows at once, and where the backward pass goes through several iterations, from
/// each.
template <class T, class Backend>
struct linear_of_parts : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    static constexpr bool keeps_values = true;
    static constexpr bool keeps_cotangents = true;

    index packing_size(const frame& f, slot s) const {
        const index H = parts(f, s), n = f.width(s) / H, k = f.width(operand(f, s)) / H;
        const auto size = [&](index tokens) { return f.on.template packing_size<T>(tokens * f.tile, n, k); };
        return std::max({size(f.tokens), size(f.chunk), size(f.tokens % f.chunk)});
    }
    void value(frame& f, slot s, index row, index n) const {
        if (f.phase == pass::replay) return;
        const index D = f.width(s);
        const bool has_bias = f.graph[s].has_bias;
        if (has_bias) f.each_row(n, body::copy<T>{D, {f.parameters_of(s) + weights(f, s), 0}, f.values(s, row)});
        for (index h = 0; h < parts(f, s); ++h)
            f.on.multiply(part(f, s, matrix<T>{f.value_at(s, row), n, D, f.stride(s)}, h),
                          part(f, s, f.value_rows(operand(f, s), row, n), h),
                          matrix_of<const T>(f, s, f.parameters_of(s), h), !has_bias, f.packing);
        if (f.graph.is_iterated(s))
            ++f.work.matrix_products;
        else if (row == 0)
            ++f.work.hoisted_products;
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = operand(f, s);
        if (f.graph[x].depends < reach) return;
        for (index h = 0; h < parts(f, s); ++h)
            f.on.multiply_back(part(f, s, f.bar_rows(x, row, n), h), bars(f, s, row, n, h),
                               matrix_of<const T>(f, s, f.parameters_of(s), h), false, f.packing);
    }
    void end_back(frame& f, slot s) const {
        if (!f.graph.is_iterated(s) || !f.unrolled) add_gradient(f, s, 0, f.rows());
    }
    void after_unrolled_step(frame& f, slot s, index row, index n) const {
        if (f.graph.is_iterated(s)) add_gradient(f, s, row, n);
    }

private:
    static slot operand(const frame& f, slot s) { return f.graph.operand(s, 0); }
    static index parts(const frame& f, slot s) { return f.graph[s].parts.of(f.size); }
    static index weights(const frame& f, slot s) { return f.width(s) * (f.width(operand(f, s)) / parts(f, s)); }
    /// The columns of part h.
    template <class U>
    static matrix<U> part(const frame& f, slot s, const matrix<U>& rows, index h) {
        const index columns = rows.columns / parts(f, s);
        return {rows.data + h * columns, rows.rows, columns, rows.stride};
    }
    static matrix<const T> bars(const frame& f, slot s, index row, index n, index h) {
        return part(f, s, matrix<const T>{f.bar_at(s, row), n, f.width(s), f.stride(s)}, h);
    }
    /// W of part h, or its cotangents.
    template <class U>
    static matrix<U> matrix_of(const frame& f, slot s, U* all, index h) {
        const index H = parts(f, s), n = f.width(s) / H, k = f.width(operand(f, s)) / H;
        return {all + h * n * k, n, k, k};
    }
    static void add_gradient(frame& f, slot s, index row, index n) {
        const index D = f.width(s);
        for (index h = 0; h < parts(f, s); ++h) {
            const weights_part<T> of_part{matrix_of<T>(f, s, f.gradient_of(s), h),
                                          part(f, s, f.value_rows(operand(f, s), row, n), h)};
            f.on.multiply_weights(bars(f, s, row, n, h), weights_parts<T>(&of_part, 1), f.packing);
        }
        if (!f.graph[s].has_bias) return;
        auto sums = f.sums(n, D, f.gradient_of(s) + weights(f, s));
        f.each_row(n, body::add_rows<T>{D, f.bars(s, row), sums.into});
        sums.finish();
    }
};

}  // namespace fprnn::operations
