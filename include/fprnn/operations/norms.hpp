#pragma once

#include <fprnn/operations/frame.hpp>
#include <fprnn/ops/l2_normalise.hpp>
#include <fprnn/ops/norm.hpp>

namespace fprnn::operations {

/// A norm over channels with a weight and, where Function has one, a bias.
template <class Function, class T, class Backend>
struct norm : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        const index D = f.width(s);
        const T* weight = f.parameters_of(s);
        f.each_row(
            n, body::norm<Function, T>{D, f.values(f.graph.operand(s, 0), row), weight, weight + D, f.values(s, row)});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        const index D = f.width(s);
        cotangents<T, Backend> to(f, x, row, n, reach);
        auto weight_bar =
            f.sums(n, Function::has_bias ? 2 * D : D, reach == dependence::input ? f.gradient_of(s) : nullptr);
        f.each_row(n, body::norm_back<Function, T>{D, f.values(x, row), f.parameters_of(s), f.bars(s, row), to.into,
                                                   weight_bar.into});
        weight_bar.finish();
        to.finish();
    }
};

template <class T, class Backend>
struct l2_normalise : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        f.each_row(n, body::l2_normalise<T>{f.width(s), f.values(f.graph.operand(s, 0), row), f.values(s, row)});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        cotangents<T, Backend> to(f, x, row, n, reach);
        f.each_row(n, body::l2_normalise_back<T>{f.width(s), f.values(x, row), f.bars(s, row), to.into});
        to.finish();
    }
};

}  // namespace fprnn::operations
