#pragma once

#include <fprnn/program/frame.hpp>

#include <algorithm>

namespace fprnn {

/// Outside the iteration: rows move down by one token; the carry is the operand's last token.
template <class E>
struct rule<shift_node<E>> : plain_rule {
    using node = shift_node<E>;
    template <class T>
    struct memory {
        T* before = nullptr;  ///< [tile, width], token −1
    };
    static index width(const dims& d) { return node::width::of(d); }
    static index carry(const dims& d) { return width(d); }

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>&, arena<typename F::scalar>& kept) {
        f.template memory_of<node>().before = kept.take(f.tile * width(f.size));
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        if (carry) f.on.copy(f.tile * width(f.size), carry, f.template memory_of<node>().before);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        f.on.copy(f.tile * width(f.size), f.template value_at<E>(f.rows() - f.tile), carry);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index D = width(f.size);
        auto* out = f.template value_at<node>(row);
        if (row == 0) {
            f.on.copy(f.tile * D, f.template memory_of<node>().before, out);
            out += f.tile * D;
            row += f.tile;
            n -= f.tile;
        }
        f.on.copy(n * D, f.template value_at<E>(row - f.tile), out);
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            const index D = width(f.size), skip = row == 0 ? f.tile : 0;
            f.one_row(body::add<typename F::scalar>{(n - skip) * D, f.template bar_at<node>(row + skip),
                                                    f.template bar_at<E>(row + skip - f.tile)});
        }
    }
};

/// y_{t−1}^{ℓ−1}: inside a chunk the previous iterate one token earlier; at its first token, what the chunk before
/// reached.
template <>
struct rule<shift_node<previous_node>> : plain_rule {
    using node = shift_node<previous_node>;
    template <class T>
    struct memory {
        T* before = nullptr;
    };
    static index width(const dims& d) { return d.d_inner; }
    static index carry(const dims& d) { return d.d_inner; }

    template <class F>
    using solved = typename F::program::fixed_point;

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>&, arena<typename F::scalar>& kept) {
        f.template memory_of<node>().before = kept.take(f.tile * width(f.size));
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        if (carry) f.on.copy(f.tile * width(f.size), carry, f.template memory_of<node>().before);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        f.on.copy(f.tile * width(f.size), f.template value_at<solved<F>>(f.rows() - f.tile), carry);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index block = f.tile * width(f.size);
        const auto* first =
            row == 0 ? f.template memory_of<node>().before : f.template value_at<solved<F>>(row - f.tile);
        auto* out = f.template value_at<node>(row);
        f.on.copy(block, first, out);
        f.on.copy(n * width(f.size) - block, f.template value_at<previous_node>(row), out + block);
    }
    /// Within the chunk; what goes to the chunk before is the engine's to pass on.
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        const index D = width(f.size);
        f.one_row(body::add<typename F::scalar>{(n - f.tile) * D, f.template bar_at<node>(row + f.tile),
                                                f.template bar_at<previous_node>(row)});
    }
};

}  // namespace fprnn
