#pragma once

#include <fprnn/core/shape.hpp>

#include <Eigen/Core>

#include <algorithm>

namespace fprnn {

/// How Eigen cuts a product [m,k] [k,n] into blocks that it packs. Blocks beyond the limit of its stack arrays would come
/// from the heap, product after product.
template <class T>
class product_blocks : public Eigen::internal::level3_blocking<T, T> {
public:
    /// Whether blocks can be larger than that limit.
    static bool needed(index m, index n, index k) { return std::max(m, n) * k > limit; }

    product_blocks(index m, index n, index k) {
        this->m_mc = m;
        this->m_nc = n;
        this->m_kc = k;
        Eigen::internal::computeProductBlockingSizes<T, T, 1>(this->m_kc, this->m_mc, this->m_nc, Eigen::Index(1));
    }
    index size() const { return size_of_A() + this->m_nc * this->m_kc; }
    void use(T* memory) {
        this->m_blockA = memory;
        this->m_blockB = memory + size_of_A();
    }

private:
    static constexpr index limit = EIGEN_STACK_ALLOCATION_LIMIT / sizeof(T);

    /// Whole cache lines, so that B is aligned as well.
    index size_of_A() const {
        constexpr index line = 64 / static_cast<index>(sizeof(T));
        return (this->m_mc * this->m_kc + line - 1) / line * line;
    }
};

/// C += A B with an A that is packed once for many products with few columns, by the routines of Eigen's own products, which
/// would pack it every time: half of what a product with 16 columns takes.
template <class T, int Order>
class packed_product {
    using index_type = Eigen::Index;
    using traits = Eigen::internal::gebp_traits<T, T>;
    using columns = Eigen::internal::blas_data_mapper<T, index_type, Eigen::ColMajor, 0, 1>;
    template <int StorageOrder>
    using constant = Eigen::internal::const_blas_data_mapper<T, index_type, StorageOrder>;

public:
    /// A [m,k], blocks of `depth` columns one after the other, to `packed`, m k numbers that begin a cache line.
    static void pack(const T* a, index stride, index m, index k, T* packed) {
        Eigen::internal::gemm_pack_lhs<T, index_type, constant<Order>, traits::mr, traits::LhsProgress,
                                       typename traits::LhsPacket4Packing, Order>
            pack_block;
        for (index at = 0; at < k; at += depth)
            pack_block(packed + m * at, constant<Order>(Order == Eigen::RowMajor ? a + at : a + at * stride, stride),
                       std::min(depth, k - at), m);
    }
    /// B [k,n] and C [m,n] in columns, n at most `most`.
    static void add(const T* packed, index m, index k, const T* b, index b_stride, T* c, index c_stride, index n) {
        Eigen::internal::gemm_pack_rhs<T, index_type, constant<Eigen::ColMajor>, traits::nr, Eigen::ColMajor>
            pack_block;
        Eigen::internal::gebp_kernel<T, T, index_type, columns, traits::mr, traits::nr, false, false> multiply;
        alignas(64) T block[static_cast<std::size_t>(depth * most)];
        for (index at = 0; at < k; at += depth) {
            const index size = std::min(depth, k - at);
            pack_block(block, constant<Eigen::ColMajor>(b + at, b_stride), size, n);
            multiply(columns(c, c_stride), packed + m * at, block, m, size, n, T(1), -1, -1, 0, 0);
        }
    }
    static constexpr index most = 16;  ///< columns of B

private:
    static constexpr index depth = 256;
};

}  // namespace fprnn
