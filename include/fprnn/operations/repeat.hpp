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

/// Each number for all channels of a part, or the sum of each part: one is the adjoint of the other.
template <bool Sum, class T, class Backend>
struct repeat_or_sum : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void value(frame& f, slot s, index row, index n) const {
        call<Sum>(f, s, n, false, f.values(f.graph.operand(s, 0), row), {f.values(s, row)});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const slot x = f.graph.operand(s, 0);
        if (f.graph[x].depends >= reach) call<!Sum>(f, s, n, true, f.bars(s, row), {f.bars(x, row)});
    }

private:
    template <bool Sums>
    static void call(const frame& f, slot s, index n, bool adds, strided<const T> from, receiver<T> to) {
        const index x = f.width(f.graph.operand(s, 0)), y = f.width(s), parts = Sum ? y : x, channels = Sum ? x : y;
        if constexpr (Sums)
            f.each_row(n, body::sum_parts<T>{parts, channels / parts, adds, from, to});
        else
            f.each_row(n, body::repeat<T>{parts, channels / parts, adds, from, to});
    }
};

}  // namespace operations

}  // namespace fprnn
