#pragma once

#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/scan.cuh>
#include <fprnn/cuda/selective_scan.hpp>

namespace fprnn::cuda::detail {

template <int Threads, int N, int Items, class T, class S>
__global__ void __launch_bounds__(Threads) selective_scan_kernel(selective_scan_sequences<T, S> s) {
    selective_scan_tile<Threads, N, Items>(block{}, blockIdx.x, s);
}

template <int Threads, int N, int Items, class T, class S>
void selective_scan_start(const device& d, index tiles, const selective_scan_sequences<T, S>& s) {
    launch(d, "selective_scan", selective_scan_kernel<Threads, N, Items, T, S>, tiles,
           {Threads, selective_scan_shared_bytes<S, N, Items>}, s);
}

}  // namespace fprnn::cuda::detail
