#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/row.hpp>

namespace fprnn::cuda::detail {

inline constexpr int row_threads = 128;

/// All threads of a launch execute one row; a thread owns the channels i, i + threads, … of every array of
/// the row.
template <class T>
struct grid {
    template <class Body>
    __device__ static void each(index channels, Body&& body) {
        const index threads = index(gridDim.x) * blockDim.x;
        for (index i = index(blockIdx.x) * blockDim.x + threadIdx.x; i < channels; i += threads)
            body(scalar_lane<T>{i});
    }
};

template <class T, class Body>
__global__ void __launch_bounds__(row_threads) row_kernel(Body body) {
    body.template row<grid<T>>(0, 0);
}

template <class T, class Body>
void start_row(const device& d, const Body& body) {
    launch(d, "row", row_kernel<T, Body>, index(16) * d.multiprocessors(), {row_threads, 0}, body);
}

}  // namespace fprnn::cuda::detail
