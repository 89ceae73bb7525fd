#pragma once

#include <fprnn/backend/pack.hpp>

#include <algorithm>

#ifdef FPRNN_EIGEN
#include <Eigen/Core>

namespace fprnn {

/// C += A B in blocks, by the routines of Eigen's own products.
template <class T, int OrderA, int OrderB>
class block_product {
    using index_type = Eigen::Index;
    using traits = Eigen::internal::gebp_traits<T, T>;
    using result = Eigen::internal::blas_data_mapper<T, index_type, Eigen::ColMajor, 0, 1>;
    template <int Order>
    using constant = Eigen::internal::const_blas_data_mapper<T, index_type, Order>;

public:
    /// Of A: a multiple of what the kernel takes at once, so that blocks do not change bits.
    static constexpr index rows = 480;
    /// Of a row-major B every row is read again for each four columns: so few stay in the first cache.
    static constexpr index depth = OrderB == Eigen::RowMajor ? 64 : 256;
    /// Of B: with what is added to C they stay in the first cache.
    static constexpr index columns = 16;

    /// Of a packed block of A [m,k].
    static index size(index m, index k) { return std::min(m, rows) * std::min(k, depth); }
    /// A [m,k] to `packed`, m k numbers that begin a cache line.
    static void pack(const T* a, index stride, index m, index k, T* packed) {
        Eigen::internal::gemm_pack_lhs<T, index_type, constant<OrderA>, traits::mr, traits::LhsProgress,
                                       typename traits::LhsPacket4Packing, OrderA>
            pack_block;
        pack_block(packed, constant<OrderA>(a, stride), k, m);
    }
    /// B [k,n], at most `depth` and `columns`, to `packed`, k n numbers.
    static void pack_columns(const T* b, index stride, index k, index n, T* packed) {
        Eigen::internal::gemm_pack_rhs<T, index_type, constant<OrderB>, traits::nr, OrderB> pack_block;
        pack_block(packed, constant<OrderB>(b, stride), k, n);
    }
    /// C [m,n], in columns.
    static void add(const T* packed_a, const T* packed_b, index m, index k, index n, T* c, index stride) {
        Eigen::internal::gebp_kernel<T, T, index_type, result, traits::mr, traits::nr, false, false> multiply;
        multiply(result(c, stride), packed_a, packed_b, m, k, n, T(1));
    }
    /// C [m,n] of at most three columns and four of B: columns of every product go the same way through the
    /// kernel, which has another for what remains of four.
    static void add_remaining(const T* packed_a, const T* packed_b, index m, index k, index n, T* c, index stride) {
        alignas(64) T four[static_cast<std::size_t>(4 * rows)];
        for (index first = 0; first < m; first += rows) {
            const index some = std::min(rows, m - first);
            for (index j = 0; j < 4; ++j)
                for (index i = 0; i < some; ++i) four[j * some + i] = j < n ? c[j * stride + first + i] : T(0);
            add(packed_a + first * k, packed_b, some, k, 4, four, some);
            for (index j = 0; j < n; ++j) std::copy_n(four + j * some, some, c + j * stride + first);
        }
    }
    /// B [k,n], at most `depth` and `columns`, to `packed` with columns of zeros up to a multiple of four.
    static void pack_columns_of_four(const T* b, index stride, index k, index n,
                                     T* packed) requires(OrderB == Eigen::ColMajor) {
        const index whole = n / 4 * 4, rest = n - whole;
        if (whole > 0) pack_columns(b, stride, k, whole, packed);
        if (rest == 0) return;
        alignas(64) T four[static_cast<std::size_t>(4 * depth)];
        for (index j = 0; j < rest; ++j) std::copy_n(b + (whole + j) * stride, k, four + j * k);
        std::fill(four + rest * k, four + 4 * k, T(0));
        pack_columns(four, k, k, 4, packed + whole * k);
    }
    /// C [m,n] += A B of what pack_columns_of_four has packed.
    static void add_of_four(const T* packed_a, const T* packed_b, index m, index k, index n, T* c, index stride) {
        const index whole = n / 4 * 4;
        if (whole > 0) add(packed_a, packed_b, m, k, whole, c, stride);
        if (whole < n) add_remaining(packed_a, packed_b + whole * k, m, k, n - whole, c + whole * stride, stride);
    }
    /// C [m,n] = 0. GCC makes a call of memset of every loop that it sees through, a call for each short
    /// column.
    static void clear(T* c, index stride, index m, index n) {
        auto zero = fprnn::pack<T>(T(0)).p;
        EIGEN_OPTIMIZATION_BARRIER(zero)
        for (index j = 0; j < n; ++j)
            pack_team<T>::each(m, [&](auto lane) { lane.store(c + j * stride, fprnn::pack<T>(zero)); });
    }
};

/// C += A B of a row-major A and at most four columns of B, for which packing A would cost more than the
/// product: it is transposed in registers instead. Sums are in the order of Eigen's kernel, and so are the
/// bits.
template <class T>
class product_of_few {
    using traits = Eigen::internal::gebp_traits<T, T>;
    static constexpr index P = pack<T>::size;
    static constexpr index depth = block_product<T, Eigen::RowMajor, Eigen::ColMajor>::depth;

public:
    static constexpr index most = 4;  ///< columns
    /// Of m rows so many that it can take: whole groups of three registers, whose sums run through one
    /// accumulator in Eigen's kernel. What remains has others.
    static constexpr index rows(index m) {
        constexpr index group = 3 * P;
        return P > 1 && traits::mr == group ? m / group * group : 0;
    }
    /// m: as rows() says. C and B in columns.
    static void add(const T* a, index stride, index m, index k, const T* b, index b_stride, index n, T* c,
                    index c_stride) {
        for (index at = 0; at < k; at += depth)
            for (index i = 0; i < m; i += P)
                with_columns<1>(n, a + i * stride + at, stride, std::min(depth, k - at), b + at, b_stride, c + i,
                                c_stride);
    }

private:
    template <index N>
    static void with_columns(index n, const T* a, index stride, index k, const T* b, index b_stride, T* c,
                             index c_stride) {
        if constexpr (N > most)
            return;
        else if (N < n)
            with_columns<N + 1>(n, a, stride, k, b, b_stride, c, c_stride);
        else
            add_rows<N>(a, stride, k, b, b_stride, c, c_stride);
    }
    /// A register of rows.
    template <index N>
    static void add_rows(const T* a, index stride, index k, const T* b, index b_stride, T* c, index c_stride) {
        pack<T> sums[N];
        for (pack<T>& sum : sums) sum = pack<T>(T(0));
        const auto add_column = [&](pack<T> column, index at) {
            for (index j = 0; j < N; ++j) sums[j] = multiply_add(column, pack<T>(b[j * b_stride + at]), sums[j]);
        };
        index at = 0;
        if constexpr (P > 1)
            for (; at + P <= k; at += P) {
                pack_square<T> square;
                square.load(a + at, stride);
                square.transpose();
                for (index i = 0; i < P; ++i) add_column(square.row[i], at + i);
            }
        for (; at < k; ++at) {
            T column[P];
            for (index i = 0; i < P; ++i) column[i] = a[i * stride + at];
            add_column(pack<T>::load(column), at);
        }
        for (index j = 0; j < N; ++j) (sums[j] + pack<T>::load(c + j * c_stride)).store(c + j * c_stride);
    }
};

/// C += A B with an A that is packed once for many products with few columns, by the routines of Eigen's own
/// products, which would pack it every time: half of what a product with 16 columns takes. B is packed once
/// for many A.
template <class T, int Order>
class packed_product {
    using blocks = block_product<T, Order, Eigen::ColMajor>;

public:
    static void clear(T* c, index stride, index m, index n) { blocks::clear(c, stride, m, n); }
    /// A [m,k], blocks of columns one after the other, to `packed`, m k numbers that begin a cache line.
    static void pack(const T* a, index stride, index m, index k, T* packed) {
        for (index at = 0; at < k; at += blocks::depth)
            blocks::pack(Order == Eigen::RowMajor ? a + at : a + at * stride, stride, m,
                         std::min(blocks::depth, k - at), packed + m * at);
    }
    /// B [k,n], n at most block_product::columns, to `packed`, k whole_columns(n) numbers.
    static void pack_columns(const T* b, index stride, index k, index n, T* packed) {
        for (index at = 0; at < k; at += blocks::depth)
            blocks::pack_columns_of_four(b + at, stride, std::min(blocks::depth, k - at), n,
                                         packed + whole_columns(n) * at);
    }
    static constexpr index whole_columns(index n) { return (n + 3) / 4 * 4; }
    /// C [m,n], in columns.
    static void add(const T* packed_a, const T* packed_b, index m, index k, index n, T* c, index stride) {
        for (index at = 0; at < k; at += blocks::depth)
            blocks::add_of_four(packed_a + m * at, packed_b + whole_columns(n) * at, m, std::min(blocks::depth, k - at),
                                n, c, stride);
    }
};

}  // namespace fprnn

#endif
