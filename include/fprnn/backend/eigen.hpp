#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/backend/pack.hpp>
#include <fprnn/backend/products.hpp>
#include <fprnn/backend/reference.hpp>
#include <fprnn/core/flush_denormals.hpp>

#include <memory>
#include <thread>
#include <type_traits>

namespace fprnn {

/// Eigen's packets and matrix products on the threads of a pool, which is shared by copies. In loops, denormal numbers count
/// as zero (flush_denormals).
class eigen {
public:
    /// Sequences worked on together. A multiple of the columns that Eigen's product kernel takes at once (4), so that all
    /// of them go the same way through it.
    static constexpr index tile = 16;

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

    // Not inline, so that a program of several sources can instantiate them in one: they are most of what a small one compiles.
    template <class T>
    static void multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T> packing = {});
    template <class T>
    static void multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite,
                              view<T> packing = {});
    template <class T>
    static void multiply_weights(matrix<T> w_bar, matrix<const T> y_bar, matrix<const T> x, view<T> packing = {});
    template <class T>
    static index packing_size(index r, index n, index k) {
        using x_rows = block_product<T, Eigen::ColMajor, Eigen::RowMajor>;
        using columns = block_product<T, Eigen::ColMajor, Eigen::ColMajor>;
        const index size = std::max({columns::size(n, k), columns::size(k, n), x_rows::size(k, r)});
        return size > on_stack ? size : 0;
    }

    template <class T>
    static index packed_size(index n, index k) {
        return n * k;
    }
    template <class T>
    static void pack(matrix<const T> w, T* packed);
    template <class T>
    static void pack_back(matrix<const T> w, T* packed);
    template <class T>
    static void multiply_packed(matrix<T> y, matrix<const T> x, matrix<const T> w, const T* packed, bool overwrite);
    template <class T>
    static void multiply_back_packed(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, const T* packed,
                                     bool overwrite);

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
    using dense = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic>;

    /// A row-major matrix is its transpose's columns.
    template <class T>
    static auto columns(matrix<T> m) {
        using target = std::conditional_t<std::is_const_v<T>, const dense<T>, dense<T>>;
        return Eigen::Map<target, Eigen::Unaligned, Eigen::OuterStride<>>(m.data, m.columns, m.rows,
                                                                          Eigen::OuterStride<>(m.stride));
    }

    static constexpr index on_stack = 1 << 12;  ///< numbers

    /// C = A B or C += A B. Large blocks of A are packed to `packing`, or to the heap without it.
    template <class C, class A, class B, class T>
    static void product(C c, const A& a, const B& b, bool overwrite, view<T> packing) {
        const index m = c.rows(), n = c.cols(), k = a.cols();
        if (m < 2 || n < 2 || k < 1) {
            if (overwrite)
                c.noalias() = a * b;
            else
                c.noalias() += a * b;
            return;
        }
        using blocks = block_product<T, A::IsRowMajor ? Eigen::RowMajor : Eigen::ColMajor,
                                     B::IsRowMajor ? Eigen::RowMajor : Eigen::ColMajor>;
        const index size = blocks::size(m, k);
        alignas(64) T small[on_stack];
        dense<T> large;
        if (size > on_stack && size > packing.size()) large.resize(size, 1);
        T* packed = size <= on_stack ? small : size <= packing.size() ? packing.data() : large.data();
        for (index row = 0; row < m; row += blocks::rows)
            for (index at = 0; at < k; at += blocks::depth) {
                const index rows = std::min(blocks::rows, m - row), depth = std::min(blocks::depth, k - at);
                blocks::pack(&a.coeffRef(row, at), a.outerStride(), rows, depth, packed);
                for (index column = 0; column < n; column += blocks::columns) {
                    const index columns = std::min(blocks::columns, n - column);
                    auto part = c.block(row, column, rows, columns);
                    if (overwrite && at == 0) part.setZero();
                    blocks::add(packed, rows, depth, &b.coeffRef(at, column), b.outerStride(), part.data(),
                                c.outerStride(), columns);
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
void eigen::multiply_weights(matrix<T> w_bar, matrix<const T> y_bar, matrix<const T> x, view<T> packing) {
    product(columns(w_bar), columns(x), columns(y_bar).transpose(), false, packing);
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
void eigen::multiply_packed(matrix<T> y, matrix<const T> x, matrix<const T> w, const T* packed, bool overwrite) {
    if (overwrite) columns(y).setZero();
    packed_product<T, Eigen::RowMajor>::add(packed, w.rows, w.columns, x.data, x.stride, y.data, y.stride, y.rows);
}
template <class T>
void eigen::multiply_back_packed(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, const T* packed,
                                 bool overwrite) {
    if (overwrite) columns(x_bar).setZero();
    packed_product<T, Eigen::ColMajor>::add(packed, w.columns, w.rows, y_bar.data, y_bar.stride, x_bar.data,
                                            x_bar.stride, x_bar.rows);
}

}  // namespace fprnn
