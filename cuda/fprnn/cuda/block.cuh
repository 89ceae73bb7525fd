#pragma once

#include <fprnn/cuda/team.hpp>

#include <cuda/atomic>

namespace fprnn::cuda {

/// The team of a thread block.
struct block {
    __device__ int rank() const { return static_cast<int>(threadIdx.x); }
    __device__ int size() const { return static_cast<int>(blockDim.x); }
    __device__ void barrier() const { __syncthreads(); }
    __device__ void* shared() const {
        extern __shared__ __align__(16) unsigned char memory[];
        return memory;
    }

    __device__ index take(counter& c) const {
        return static_cast<index>(everywhere<counter>(c).fetch_add(1, ::cuda::memory_order_relaxed));
    }
    __device__ void publish(flag& f) const { everywhere<flag>(f).store(1, ::cuda::memory_order_release); }
    __device__ void wait(flag& f) const {
        while (everywhere<flag>(f).load(::cuda::memory_order_acquire) == 0) __nanosleep(40);
    }

private:
    template <class T>
    using everywhere = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;
};

}  // namespace fprnn::cuda
