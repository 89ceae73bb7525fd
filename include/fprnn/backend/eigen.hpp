#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/backend/pack.hpp>
#include <fprnn/backend/products.hpp>
#include <fprnn/backend/reference.hpp>
#include <fprnn/core/flush_denormals.hpp>

#include <memory>
#include <thread>
#include <type_traits>

#ifdef FPRNN_EIGEN

namespace fprnn {

static_assert(sizeof(Eigen::Index) >= sizeof(index),
              "fprnn: Eigen's sizes must have 64 bits, do not set EIGEN_DEFAULT_DENSE_INDEX_TYPE to a shorter type");

/// Eigen's packets and matrix products on the threads of a pool, which is shared by copies. In loops,
/// denormal numbers count as zero (flush_denormals).
class eigen : public host_backend<eigen> {
public:
    /// Sequences worked on together.
    static constexpr index tile = 16;
    /// A product's rows have the bits that they have in a tile: all of them go the same way through Eigen's
    /// kernel.
    static constexpr bool products_are_by_row = true;

    template <class T>
    using team = std::conditional_t<std::is_floating_point_v<T>, pack_team<T>, serial_team<T>>;

    /// All backends made in this way share one pool, with a thread a core.
    eigen() : pool_(shared_pool()) {}
    explicit eigen(int threads) : pool_(std::make_shared<thread_pool>(threads)) {}

    static int default_threads() {
        const auto n = static_cast<int>(std::thread::hardware_concurrency());
        return n > 0 ? n : 1;
    }
    int threads() const { return pool_->threads(); }

    // Not inline, so that a program of several sources can instantiate them in one: they are most of what a
    // small one compiles.
    template <class T>
    static void multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T> packing = {});
    template <class T>
    static void multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite,
                              view<T> packing = {});
    template <class T>
    static void multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T> packing = {});
    template <class T>
    static index packing_size(index r, index n, index k) {
        using rows = block_product<T, Eigen::ColMajor, Eigen::RowMajor>;
        using columns = block_product<T, Eigen::ColMajor, Eigen::ColMajor>;
        const index size = std::max({columns::size(n, k), columns::size(k, n), rows::size(k, whole_lines<T>(r))});
        return size > on_stack ? size : 0;
    }

    template <class T>
    static index packed_size(index n, index k) {
        return packed_product<T, Eigen::RowMajor>::whole_columns(n) * k;
    }
    template <class T>
    static void pack(matrix<const T> w, T* packed);
    template <class T>
    static void pack_back(matrix<const T> w, T* packed);
    template <class T>
    static void pack_rows(matrix<const T> x, T* packed);
    template <class T>
    static void multiply_packed(matrix<T> y, packed_matrix<T> x, packed_matrix<T> w, bool overwrite);
    template <class T>
    static void multiply_back_packed(matrix<T> x_bar, packed_matrix<T> y_bar, packed_matrix<T> w, bool overwrite);

    template <class Body>
    void for_each(index n, Body&& body) {
        pool_->for_each(n, [&](index i, index thread) {
            const flush_denormals quick;
            thread_pool::call(body, i, thread);
        });
    }

private:
    static std::shared_ptr<thread_pool> shared_pool() {
        static const auto pool = std::make_shared<thread_pool>(default_threads());
        return pool;
    }

    template <class T>
    using dense = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

    /// A row-major matrix is its transpose's columns.
    template <class T>
    static auto columns(matrix<T> m) {
        using target = std::conditional_t<std::is_const_v<T>, const dense<T>, dense<T>>;
        return Eigen::Map<target, Eigen::Unaligned, Eigen::OuterStride<>>(m.data, m.columns, m.rows,
                                                                          Eigen::OuterStride<>(m.stride));
    }

    static constexpr index on_stack = 1 << 12;  ///< numbers
    template <class T>
    static index whole_lines(index numbers) {
        constexpr index line = 64 / static_cast<index>(sizeof(T));
        return (numbers + line - 1) / line * line;
    }
    /// Few numbers on the stack, many in `packing` or, without it, on the heap.
    template <class T>
    class packing_memory {
    public:
        packing_memory(index size, view<T> packing) {
            if (size <= on_stack) return;
            if (size > packing.size()) large_ = buffer<T>(static_cast<std::size_t>(size));
            data_ = size > packing.size() ? large_.data() : packing.data();
        }
        packing_memory(const packing_memory&) = delete;
        packing_memory& operator=(const packing_memory&) = delete;
        T* data() { return data_; }

    private:
        alignas(64) T small_[on_stack];
        buffer<T> large_;
        T* data_ = small_;
    };

    /// C = A B or C += A B. Large blocks of A are packed to `packing`, or to the heap without it.
    template <class C, class A, class B, class T>
    static void product(C c, const A& a, const B& b, bool overwrite, view<T> packing) {
        const index m = c.rows(), n = c.cols(), k = a.cols();
        using blocks = block_product<T, A::IsRowMajor ? Eigen::RowMajor : Eigen::ColMajor,
                                     B::IsRowMajor ? Eigen::RowMajor : Eigen::ColMajor>;
        constexpr bool columns_are_rows =
            !B::IsRowMajor;  // of the tile, which have the same bits however many there are
        // Not a * b, with which a small program would compile all of Eigen's products, a tenth of its time.
        if ((n == 1 && !columns_are_rows) || k < 1) {
            if (overwrite) blocks::clear(c.data(), c.outerStride(), m, n);
            if (k > 0) c.col(0).noalias() += a * b.col(0);
            return;
        }
        index first_row = 0;
        if constexpr (A::IsRowMajor && columns_are_rows) {
            using few = product_of_few<T>;
            if (n > 0 && n <= few::most) {
                first_row = few::rows(m);
                if (overwrite) blocks::clear(c.data(), c.outerStride(), first_row, n);
                few::add(&a.coeffRef(0, 0), a.outerStride(), first_row, k, b.data(), b.outerStride(), n, c.data(),
                         c.outerStride());
                if (first_row == m) return;
            }
        }
        packing_memory<T> memory(blocks::size(m - first_row, k), packing);
        T* packed = memory.data();
        alignas(64) T packed_columns[static_cast<std::size_t>(blocks::depth * blocks::columns)];
        for (index row = first_row; row < m; row += blocks::rows)
            for (index at = 0; at < k; at += blocks::depth) {
                const index rows = std::min(blocks::rows, m - row), depth = std::min(blocks::depth, k - at);
                blocks::pack(&a.coeffRef(row, at), a.outerStride(), rows, depth, packed);
                for (index column = 0; column < n; column += blocks::columns) {
                    const index columns = std::min(blocks::columns, n - column);
                    T* to = &c.coeffRef(row, column);
                    if (overwrite && at == 0) blocks::clear(to, c.outerStride(), rows, columns);
                    const T* from = &b.coeffRef(at, column);
                    if constexpr (columns_are_rows) {
                        blocks::pack_columns_of_four(from, b.outerStride(), depth, columns, packed_columns);
                        blocks::add_of_four(packed, packed_columns, rows, depth, columns, to, c.outerStride());
                    } else {
                        blocks::pack_columns(from, b.outerStride(), depth, columns, packed_columns);
                        blocks::add(packed, packed_columns, rows, depth, columns, to, c.outerStride());
                    }
                }
            }
    }

    std::shared_ptr<thread_pool> pool_;
};

template <class T>
void eigen::multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T> packing) {
    product(columns(y), columns(w).transpose(), columns(x), overwrite, packing);
}
template <class T>
void eigen::multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite, view<T> packing) {
    product(columns(x_bar), columns(w), columns(y_bar), overwrite, packing);
}
template <class T>
void eigen::multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T> packing) {
    using blocks = block_product<T, Eigen::ColMajor, Eigen::RowMajor>;
    const index n = y_bar.columns, r = y_bar.rows, most = whole_lines<T>(std::min(r, blocks::depth));
    for (auto first = parts.begin(); first != parts.end();) {
        // Parts that fit beside each other: each block of Ȳ is packed once for all of them.
        index together = 0;
        auto last = first;
        for (; last != parts.end() && together + last->x.columns <= blocks::rows; ++last) together += last->x.columns;
        if (last == first || n < 2 || r < 1) {
            product(columns(first->w_bar), columns(first->x), columns(y_bar).transpose(), false, packing);
            ++first;
            continue;
        }
        packing_memory<T> memory(together * most, packing);
        alignas(64) T packed_columns[static_cast<std::size_t>(blocks::depth * blocks::columns)];
        for (index at = 0; at < r; at += blocks::depth) {
            const index depth = std::min(blocks::depth, r - at);
            T* packed = memory.data();
            for (auto part = first; part != last; packed += part++->x.columns * most)
                blocks::pack(part->x.data + at * part->x.stride, part->x.stride, part->x.columns, depth, packed);
            for (index column = 0; column < n; column += blocks::columns) {
                const index columns = std::min(blocks::columns, n - column);
                blocks::pack_columns(y_bar.data + at * y_bar.stride + column, y_bar.stride, depth, columns,
                                     packed_columns);
                packed = memory.data();
                for (auto part = first; part != last; packed += part++->x.columns * most)
                    blocks::add(packed, packed_columns, part->x.columns, depth, columns,
                                part->w_bar.data + column * part->w_bar.stride, part->w_bar.stride);
            }
        }
        first = last;
    }
}

template <class T>
void eigen::pack(matrix<const T> w, T* packed) {
    packed_product<T, Eigen::RowMajor>::pack(w.data, w.stride, w.rows, w.columns, packed);
}
template <class T>
void eigen::pack_back(matrix<const T> w, T* packed) {
    packed_product<T, Eigen::ColMajor>::pack(w.data, w.stride, w.columns, w.rows, packed);
}
template <class T>
void eigen::pack_rows(matrix<const T> x, T* packed) {
    packed_product<T, Eigen::RowMajor>::pack_columns(x.data, x.stride, x.columns, x.rows, packed);
}
template <class T>
void eigen::multiply_packed(matrix<T> y, packed_matrix<T> x, packed_matrix<T> w, bool overwrite) {
    using product = packed_product<T, Eigen::RowMajor>;
    if (overwrite) product::clear(y.data, y.stride, y.columns, y.rows);
    product::add(w.packed, x.packed, y.columns, x.plain.columns, y.rows, y.data, y.stride);
}
template <class T>
void eigen::multiply_back_packed(matrix<T> x_bar, packed_matrix<T> y_bar, packed_matrix<T> w, bool overwrite) {
    using product = packed_product<T, Eigen::ColMajor>;
    if (overwrite) product::clear(x_bar.data, x_bar.stride, x_bar.columns, x_bar.rows);
    product::add(w.packed, y_bar.packed, x_bar.columns, y_bar.plain.columns, x_bar.rows, x_bar.data, x_bar.stride);
}

}  // namespace fprnn

#endif
