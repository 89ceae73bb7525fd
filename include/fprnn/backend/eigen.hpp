#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/backend/reference.hpp>
#include <fprnn/core/flush_denormals.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>

namespace fprnn {

/// A register of channels with the arithmetic of a number; its operations are Eigen's packet operations.
template <class T>
struct pack {
    using traits = Eigen::internal::packet_traits<T>;
    using packet = typename traits::type;
    static constexpr index size = Eigen::internal::unpacket_traits<packet>::size;

    packet p;

    pack() = default;
    explicit pack(packet v) : p(v) {}
    pack(T x) requires(!std::same_as<packet, T>) : p(Eigen::internal::pset1<packet>(x)) {}

    static pack load(const T* from) { return pack(Eigen::internal::ploadu<packet>(from)); }
    void store(T* to) const { Eigen::internal::pstoreu(to, p); }

    friend pack operator+(pack a, pack b) { return pack(Eigen::internal::padd(a.p, b.p)); }
    friend pack operator-(pack a, pack b) { return pack(Eigen::internal::psub(a.p, b.p)); }
    friend pack operator*(pack a, pack b) { return pack(Eigen::internal::pmul(a.p, b.p)); }
    friend pack operator/(pack a, pack b) { return pack(Eigen::internal::pdiv(a.p, b.p)); }
    friend pack operator-(pack a) { return pack(Eigen::internal::pnegate(a.p)); }
    pack& operator+=(pack b) { return *this = *this + b; }
    pack& operator*=(pack b) { return *this = *this * b; }

    friend pack exp(pack a) { return pack(Eigen::internal::pexp(a.p)); }
    friend pack log1p(pack a) {
        if constexpr (traits::HasLog1p) {
            return pack(Eigen::internal::plog1p(a.p));
        } else {
            T x[static_cast<std::size_t>(size)];
            a.store(x);
            for (T& v : x) v = std::log1p(v);
            return load(x);
        }
    }
    friend pack sqrt(pack a) { return pack(Eigen::internal::psqrt(a.p)); }
    friend pack abs(pack a) { return pack(Eigen::internal::pabs(a.p)); }
    friend pack maximum(pack a, pack b) { return pack(Eigen::internal::pmax(a.p, b.p)); }

    T sum() const { return Eigen::internal::predux(p); }
};

/// A full register of channels.
template <class T>
struct pack_lane {
    index channel;

    pack<T> load(const T* p) const { return pack<T>::load(p + channel); }
    void store(T* p, pack<T> v) const { v.store(p + channel); }
    void add(T* p, pack<T> v) const { (load(p) + v).store(p + channel); }
    void prefetch(const T* p) const { Eigen::internal::prefetch(p + channel); }
};

/// The last, partly filled register of a row; the empty places read 0 and are never written.
template <class T>
struct tail_lane {
    index channel;
    index filled;

    pack<T> load(const T* p) const {
        T x[static_cast<std::size_t>(pack<T>::size)] = {};
        for (index i = 0; i < filled; ++i) x[i] = p[channel + i];
        return pack<T>::load(x);
    }
    void store(T* p, pack<T> v) const {
        T x[static_cast<std::size_t>(pack<T>::size)];
        v.store(x);
        for (index i = 0; i < filled; ++i) p[channel + i] = x[i];
    }
    void add(T* p, pack<T> v) const { store(p, load(p) + v); }
    void prefetch(const T*) const {}
    /// `v` with zeros in the empty places.
    pack<T> only_filled(pack<T> v) const {
        T x[static_cast<std::size_t>(pack<T>::size)];
        v.store(x);
        for (index i = filled; i < pack<T>::size; ++i) x[i] = 0;
        return pack<T>::load(x);
    }
    /// `v` with its first channel in the empty places.
    pack<T> repeat_first(pack<T> v) const {
        T x[static_cast<std::size_t>(pack<T>::size)];
        v.store(x);
        for (index i = filled; i < pack<T>::size; ++i) x[i] = x[0];
        return pack<T>::load(x);
    }
};

/// Runs bodies a register of channels at a time. Every row takes the same path whatever its address, so equal rows give
/// equal bits wherever they stand.
template <class T>
struct pack_team {
    static constexpr index width = pack<T>::size;

    template <class Body>
    static void each(index channels, Body&& body) {
        index i = 0;
        for (; i + width <= channels; i += width) body(pack_lane<T>{i});
        if (i < channels) body(tail_lane<T>{i, channels - i});
    }
    template <std::size_t K, class Body>
    static small_array<T, K> sum(index channels, Body&& body) {
        small_array<pack<T>, K> total;
        for (auto& t : total.values) t = pack<T>(T(0));
        index i = 0;
        for (; i + width <= channels; i += width) {
            const auto part = body(pack_lane<T>{i});
            for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
        }
        if (i < channels) {
            const tail_lane<T> lane{i, channels - i};
            const auto part = body(lane);
            for (std::size_t k = 0; k < K; ++k) total[k] += lane.only_filled(part[k]);
        }
        return sums(total);
    }
    template <class Body>
    static T max(index channels, Body&& body) {
        pack<T> largest(-std::numeric_limits<T>::infinity());
        pack<T> taint(T(0));  // 0 · x is NaN for every x that is not finite
        each(channels, [&](auto lane) {
            pack<T> v = body(lane);
            if constexpr (requires { lane.filled; }) v = lane.repeat_first(v);
            largest = maximum(largest, v);
            taint += v * pack<T>(T(0));
        });
        return taint.sum() == T(0) ? Eigen::internal::predux_max(largest.p) : std::numeric_limits<T>::quiet_NaN();
    }

private:
    /// A register folded until it has at most four numbers.
    template <class Packet>
    static auto folded(Packet p) {
        if constexpr (Eigen::internal::unpacket_traits<Packet>::size > 4)
            return folded(Eigen::internal::predux_half_dowto4(p));
        else
            return p;
    }
    /// The sum of every register, four at a time: half of the shuffles that four sums take by themselves.
    template <std::size_t K>
    static small_array<T, K> sums(const small_array<pack<T>, K>& total) {
        using quarter = decltype(folded(total[0].p));
        constexpr std::size_t rest = K % 4, fours = K - (rest < 3 ? rest : 0);
        small_array<T, K> result;
        std::size_t k = 0;
        if constexpr (Eigen::internal::unpacket_traits<quarter>::size == 4)
            for (; k < fours; k += 4) {
                Eigen::internal::PacketBlock<quarter, 4> four;
                for (std::size_t i = 0; i < 4; ++i) four.packet[i] = folded(total[std::min(k + i, K - 1)].p);
                Eigen::internal::ptranspose(four);
                const quarter s = Eigen::internal::padd(Eigen::internal::padd(four.packet[0], four.packet[1]),
                                                        Eigen::internal::padd(four.packet[2], four.packet[3]));
                T x[4];
                Eigen::internal::pstoreu(x, s);
                for (std::size_t i = 0; i < 4 && k + i < K; ++i) result[k + i] = x[i];
            }
        for (; k < K; ++k) result[k] = total[k].sum();
        return result;
    }
};

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
