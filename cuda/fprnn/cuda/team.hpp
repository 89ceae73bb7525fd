#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/core/small_array.hpp>

#include <concepts>
#include <cstdint>

namespace fprnn::cuda {

/// Zero until what it stands for is there.
using flag = std::uint32_t;
using counter = unsigned long long;

namespace detail {

struct addition {
    template <class T>
    FPRNN_BOTH T operator()(T a, T b) const {
        return a + b;
    }
    template <class T, std::size_t K>
    FPRNN_BOTH small_array<T, K> operator()(small_array<T, K> a, const small_array<T, K>& b) const {
        for (std::size_t k = 0; k < K; ++k) a[k] += b[k];
        return a;
    }
};
struct larger {
    template <class T>
    FPRNN_BOTH T operator()(T a, T b) const {
        return math::maximum(a, b);
    }
};

}  // namespace detail

/// A block of threads that executes a kernel body together: on a GPU a thread block, in tests threads of the
/// host.
///
///     Team()              this thread's
///     rank(), size()      this thread's number, and how many there are
///     barrier()           nobody goes on before all have come; what they wrote until then, all see
///                         afterwards
///     shared()            memory of this block alone, aligned to 16 bytes, as much as the launch asked for
///     reduce(x, op)       op(… op(x of rank 0, x of rank 1) …, x of the last rank), which all receive
///     scan(x, op, n)      the same from the first of each n ranks, a power of two that divides size(), to
///                         this one; before the next scan comes a barrier. op is associative; how its terms
///                         are bracketed depends on size() and n alone
///
/// Between blocks, in the order in which they take numbers: a block may wait for what a lower number will
/// publish, never for a higher one, so that it does not matter how many blocks run at a time.
///
///     take(c)             the next number of a counter (relaxed: the number alone is passed on)
///     publish(f)          release: sets the flag after everything that this thread wrote, or saw through a
///                         barrier
///     wait(f)             acquire: returns when the flag is set, and what was published with it can be read
template <class Team>
concept team = std::default_initializable<Team> && requires(const Team& t, counter& c, flag& f) {
    { t.rank() } -> std::same_as<int>;
    { t.size() } -> std::same_as<int>;
    t.barrier();
    { t.shared() } -> std::same_as<void*>;
    { t.reduce(1.0, detail::addition{}) } -> std::same_as<double>;
    { t.scan(1.0, detail::addition{}, 1) } -> std::same_as<double>;
    { t.take(c) } -> std::same_as<index>;
    t.publish(f);
    t.wait(f);
};

}  // namespace fprnn::cuda

/// Arrays that are indexed by constants alone live in registers.
#ifdef __CUDA_ARCH__
#define FPRNN_UNROLL _Pragma("unroll")
#else
#define FPRNN_UNROLL
#endif

namespace fprnn::cuda::detail {

/// body(i) for i below `count`, which is nearly always Items: that case has no branches, so that all loads
/// are under way before the first is used.
template <int Items, class Body>
FPRNN_BOTH void each_item(int count, Body&& body) {
    if (count == Items) {
        FPRNN_UNROLL for (int i = 0; i < Items; ++i) body(i);
    } else {
        FPRNN_UNROLL for (int i = 0; i < Items; ++i) if (i < count) body(i);
    }
}

}  // namespace fprnn::cuda::detail
