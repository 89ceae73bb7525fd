#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/core/shape.hpp>

#include <concepts>
#include <cstdint>

namespace fprnn::cuda {

/// Zero until what it stands for is there.
using flag = std::uint32_t;
using counter = unsigned long long;

/// A block of threads that executes a kernel body together: on a GPU a thread block, in tests threads of the host.
///
///     rank(), size()      this thread's number, and how many there are
///     barrier()           nobody goes on before all have come; what they wrote until then, all see afterwards
///     shared()            memory of this block alone, aligned to 16 bytes, as much as the launch asked for
///
/// Between blocks, in the order in which they take numbers: a block may wait for what a lower number will publish, never
/// for a higher one, so that it does not matter how many blocks run at a time.
///
///     take(c)             the next number of a counter (relaxed: the number alone is passed on)
///     publish(f)          release: sets the flag after everything that this thread wrote, or saw through a barrier
///     wait(f)             acquire: returns when the flag is set, and what was published with it can be read
template <class Team>
concept team = requires(const Team& t, counter& c, flag& f) {
    { t.rank() } -> std::same_as<int>;
    { t.size() } -> std::same_as<int>;
    t.barrier();
    { t.shared() } -> std::same_as<void*>;
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

/// body(i) for i below `count`, which is nearly always Items: that case has no branches, so that all loads are under way
/// before the first is used.
template <int Items, class Body>
FPRNN_BOTH void each_item(int count, Body&& body) {
    if (count == Items) {
        FPRNN_UNROLL for (int i = 0; i < Items; ++i) body(i);
    } else {
        FPRNN_UNROLL for (int i = 0; i < Items; ++i) if (i < count) body(i);
    }
}

}  // namespace fprnn::cuda::detail
