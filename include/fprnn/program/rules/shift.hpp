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
        f.template memory_of<node>().before = kept.take(F::tile * width(f.size));
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        if (carry) std::copy_n(carry, F::tile * width(f.size), f.template memory_of<node>().before);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        std::copy_n(f.template value_at<E>(f.rows() - F::tile), F::tile * width(f.size), carry);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index D = width(f.size);
        auto* out = f.template value_at<node>(row);
        if (row == 0) {
            std::copy_n(f.template memory_of<node>().before, F::tile * D, out);
            out += F::tile * D;
            row += F::tile;
            n -= F::tile;
        }
        std::copy_n(f.template value_at<E>(row - F::tile), n * D, out);
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            const index D = width(f.size), skip = row == 0 ? F::tile : 0;
            const auto* from = f.template bar_at<node>(row + skip);
            auto* to = f.template bar_at<E>(row + skip - F::tile);
            F::team::each((n - skip) * D, [&](auto lane) { lane.add(to, lane.load(from)); });
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
        f.template memory_of<node>().before = kept.take(F::tile * width(f.size));
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        if (carry) std::copy_n(carry, F::tile * width(f.size), f.template memory_of<node>().before);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        std::copy_n(f.template value_at<solved<F>>(f.rows() - F::tile), F::tile * width(f.size), carry);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index block = F::tile * width(f.size);
        const auto* first =
            row == 0 ? f.template memory_of<node>().before : f.template value_at<solved<F>>(row - F::tile);
        auto* out = f.template value_at<node>(row);
        std::copy_n(first, block, out);
        std::copy_n(f.template value_at<previous_node>(row), n * width(f.size) - block, out + block);
    }
    /// Within the chunk; what goes to the chunk before is the engine's to pass on.
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        const index D = width(f.size);
        const auto* from = f.template bar_at<node>(row + F::tile);
        auto* to = f.template bar_at<previous_node>(row);
        F::team::each((n - F::tile) * D, [&](auto lane) { lane.add(to, lane.load(from)); });
    }
};

}  // namespace fprnn
