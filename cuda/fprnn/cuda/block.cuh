#pragma once

#include <fprnn/cuda/team.hpp>

#include <cub/block/block_reduce.cuh>
#include <cub/util_type.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/atomic>

namespace fprnn::cuda {

/// The team of a thread block; its scan and reduce are CUB's.
template <int Threads>
struct block {
    __device__ static int rank() { return static_cast<int>(threadIdx.x); }
    __device__ static constexpr int size() { return Threads; }
    __device__ static void barrier() { __syncthreads(); }
    __device__ static void* shared() {
        extern __shared__ __align__(16) unsigned char memory[];
        return memory;
    }

    template <class T, class Operation>
    __device__ static T reduce(T x, Operation operation) {
        using algorithm = cub::BlockReduce<T, Threads>;
        __shared__ typename algorithm::TempStorage storage;
        __shared__ cub::Uninitialized<T> result;
        x = algorithm(storage).Reduce(x, operation);
        // Who has read the last result has since given something to this one.
        if (rank() == 0) result.Alias() = x;
        barrier();
        return result.Alias();
    }

    template <class T, class Operation>
    __device__ static T scan(T x, Operation operation, int n) {
        return scan_lanes<1>(x, operation, n);
    }

    __device__ static index take(counter& c) {
        return static_cast<index>(everywhere<counter>(c).fetch_add(1, ::cuda::memory_order_relaxed));
    }
    __device__ static void publish(flag& f) { everywhere<flag>(f).store(1, ::cuda::memory_order_release); }
    __device__ static void wait(flag& f) {
        while (everywhere<flag>(f).load(::cuda::memory_order_acquire) == 0) __nanosleep(40);
    }

private:
    static constexpr int warp = Threads < 32 ? Threads : 32;

    /// Of n ranks of a warp, at least Lanes, without a barrier; of more, warp by warp.
    template <int Lanes, class T, class Operation>
    __device__ static T scan_lanes(T x, Operation operation, int n) {
        if constexpr (Lanes < warp)
            if (n > Lanes) return scan_lanes<2 * Lanes>(x, operation, n);
        if constexpr (Lanes > 1) {
            using algorithm = cub::WarpScan<T, Lanes>;
            __shared__ typename algorithm::TempStorage storage[Threads / Lanes];
            algorithm(storage[rank() / Lanes]).InclusiveScan(x, x, operation);
        }
        if constexpr (Lanes == warp && warp < Threads)
            if (n > warp) return scan_warps(x, operation, n);
        return x;
    }
    /// A function of its own, whose registers others do not have to spare.
    template <class T, class Operation>
    __device__ __noinline__ static T scan_warps(T x, Operation operation, int n) {
        __shared__ cub::Uninitialized<T> last[Threads / warp];
        const int mine = rank() / warp, first = rank() / n * (n / warp);
        if (rank() % warp == warp - 1) last[mine].Alias() = x;
        barrier();
        if (mine == first) return x;
        T before = last[first].Alias();
        for (int w = first + 1; w < mine; ++w) before = operation(before, last[w].Alias());
        return operation(before, x);
    }

    template <class T>
    using everywhere = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;
};

}  // namespace fprnn::cuda
