#pragma once

#include <fprnn/operations/frame.hpp>

namespace fprnn {

namespace body {

/// y[h, i] = x[h], or += where it `adds`, for `parts` parts of so many channels.
template <class T>
struct repeat {
    index parts, channels_of_a_part;
    bool adds;
    strided<const T> x;
    receiver<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        const T* from = x[r];
        T* to = y.at(r, worker);
        for (index h = 0; h < parts; ++h, to += channels_of_a_part)
            Team::each(channels_of_a_part, [&](auto lane) {
                const decltype(lane.load(to)) number(from[h]);
                adds ? lane.add(to, number) : lane.store(to, number);
            });
    }
};
/// y[h] = Σ_i x[h, i], or += where it `adds`.
template <class T>
struct sum_parts {
    index parts, channels_of_a_part;
    bool adds;
    strided<const T> x;
    receiver<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        const T* from = x[r];
        T* to = y.at(r, worker);
        for (index h = 0; h < parts; ++h, from += channels_of_a_part) {
            const auto sum =
                Team::template sum<1>(channels_of_a_part, [&](auto lane) { return small_array{lane.load(from)}; });
            Team::once([&] { to[h] = adds ? to[h] + sum[0] : sum[0]; });
        }
    }
};

}  // namespace body

namespace operations {

/// Each number for all channels of a part; the adjoint is the sum of each part.
template <class T, class Backend>
struct repeat : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        const slot x = f.graph.operand(s, 0);
        const index parts = f.width(x);
        f.each_row(n, body::repeat<T>{parts, f.width(s) / parts, false, f.values(x, row), {f.values(s, row)}});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        const index parts = f.width(x);
        f.each_row(n, body::sum_parts<T>{parts, f.width(s) / parts, true, f.bars(s, row), {f.bars(x, row)}});
    }
};

/// The sum of each part; the adjoint is `repeat`.
template <class T, class Backend>
struct sum_parts : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        const slot x = f.graph.operand(s, 0);
        const index parts = f.width(s);
        f.each_row(n, body::sum_parts<T>{parts, f.width(x) / parts, false, f.values(x, row), {f.values(s, row)}});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends < reach) return;
        const index parts = f.width(s);
        f.each_row(n, body::repeat<T>{parts, f.width(x) / parts, true, f.bars(s, row), {f.bars(x, row)}});
    }
};

}  // namespace operations

}  // namespace fprnn
