#pragma once

#include <fprnn/operations/frame.hpp>
#include <fprnn/ops/l2_normalise.hpp>
#include <fprnn/ops/norm.hpp>

namespace fprnn {

namespace body {

/// Parts of a row, one behind the other.
struct parts_of_row {
    index count, channels;
};

/// The norm of each part. Their weights are `apart` numbers from each other, 0 where all have one, and so are
/// the biases.
template <class Function, class T>
struct norm_of_parts {
    parts_of_row parts;
    index apart;
    strided<const T> x;
    const T *weight, *bias;
    strided<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        for (index h = 0; h < parts.count; ++h) {
            const index at = h * parts.channels;
            Function::template value<Team, T>(parts.channels, x[r] + at, weight + h * apart, bias + h * apart,
                                              y[r] + at);
        }
    }
};

/// The cotangents of the weights, and behind them those of the biases, where they are asked for.
template <class Function, class T>
struct norm_of_parts_back {
    parts_of_row parts;
    index apart, weights;
    strided<const T> x;
    const T* weight;
    strided<const T> y_bar;
    receiver<T> x_bar, weight_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        T *const to = x_bar.at(r, worker), *const of_weight = weight_bar.at(r, worker);
        for (index h = 0; h < parts.count; ++h) {
            const index at = h * parts.channels;
            T* const bar = of_weight ? of_weight + h * apart : nullptr;
            Function::template back<Team, T>(parts.channels, x[r] + at, weight + h * apart, y_bar[r] + at, to + at, bar,
                                             bar ? bar + weights : nullptr);
        }
    }
};

template <class T>
struct l2_normalise_parts {
    parts_of_row parts;
    strided<const T> x;
    strided<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        for (index h = 0; h < parts.count; ++h) {
            const index at = h * parts.channels;
            l2_normalise_function::value<Team, T>(parts.channels, x[r] + at, y[r] + at);
        }
    }
};
template <class T>
struct l2_normalise_parts_back {
    parts_of_row parts;
    strided<const T> x, y_bar;
    receiver<T> x_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        T* const to = x_bar.at(r, worker);
        for (index h = 0; h < parts.count; ++h) {
            const index at = h * parts.channels;
            l2_normalise_function::back<Team, T>(parts.channels, x[r] + at, y_bar[r] + at, to + at);
        }
    }
};

}  // namespace body

namespace operations {

template <class T, class Backend>
body::parts_of_row parts_of(const frame<T, Backend>& f, graph::slot s) {
    const index channels = f.graph[s].part.of(f.size);
    return {f.width(s) / channels, channels};
}

/// A norm of each part, with weights that the parts share, or one for each channel.
template <class Function, class T, class Backend>
struct norm_of_parts : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        const T* weight = f.parameters_of(s);
        f.each_row(n,
                   body::norm_of_parts<Function, T>{parts_of(f, s), apart(f, s), f.values(f.graph.operand(s, 0), row),
                                                    weight, weight + weights(f, s), f.values(s, row)});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        const index numbers = Function::has_bias ? 2 * weights(f, s) : weights(f, s);
        cotangents<T, Backend> to(f, x, row, n, reach);
        auto weight_bar = f.sums(n, numbers, reach == dependence::input ? f.gradient_of(s) : nullptr);
        f.each_row(n,
                   body::norm_of_parts_back<Function, T>{parts_of(f, s), apart(f, s), weights(f, s), f.values(x, row),
                                                         f.parameters_of(s), f.bars(s, row), to.into, weight_bar.into});
        weight_bar.finish();
        to.finish();
    }

private:
    static index weights(const frame& f, slot s) {
        return f.graph[s].parts_share ? parts_of(f, s).channels : f.width(s);
    }
    static index apart(const frame& f, slot s) { return f.graph[s].parts_share ? 0 : parts_of(f, s).channels; }
};

template <class T, class Backend>
struct l2_normalise_parts : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        f.each_row(n,
                   body::l2_normalise_parts<T>{parts_of(f, s), f.values(f.graph.operand(s, 0), row), f.values(s, row)});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        cotangents<T, Backend> to(f, x, row, n, reach);
        f.each_row(n, body::l2_normalise_parts_back<T>{parts_of(f, s), f.values(x, row), f.bars(s, row), to.into});
        to.finish();
    }
};

}  // namespace operations

}  // namespace fprnn
