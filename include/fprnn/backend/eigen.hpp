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
        const auto size = [](index rows, index cols, index depth) {
            using blocks = product_blocks<T>;
            return blocks::needed(rows, cols, depth) ? blocks(rows, cols, depth).size() : 0;
        };
        return std::max({size(n, r, k), size(k, r, n), size(k, n, r)});
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

    /// C = A B or C += A B, in `packing` where Eigen would take memory from the heap: the same blocks and bits.
    template <class C, class A, class B, class T>
    static void product(C c, const A& a, const B& b, bool overwrite, view<T> packing) {
        const index m = c.rows(), n = c.cols(), k = a.cols();
        if (m > 1 && n > 1 && product_blocks<T>::needed(m, n, k)) {
            product_blocks<T> blocks(m, n, k);
            if (blocks.size() <= packing.size()) {
                blocks.use(packing.data());
                if (overwrite) c.setZero();
                constexpr int row_major = Eigen::RowMajor, column_major = Eigen::ColMajor;
                Eigen::internal::general_matrix_matrix_product<
                    Eigen::Index, T, A::IsRowMajor ? row_major : column_major, false, T,
                    B::IsRowMajor ? row_major : column_major, false, column_major, 1>::run(m, n, k, a.data(),
                                                                                           a.outerStride(), b.data(),
                                                                                           b.outerStride(), c.data(), 1,
                                                                                           c.outerStride(), T(1),
                                                                                           blocks);
                return;
            }
        }
        if (overwrite)
            c.noalias() = a * b;
        else
            c.noalias() += a * b;
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
