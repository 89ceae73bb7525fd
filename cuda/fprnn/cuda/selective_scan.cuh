#pragma once

#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/row.cuh>
#include <fprnn/cuda/scan.cuh>
#include <fprnn/cuda/selective_scan.hpp>

namespace fprnn::cuda::detail {

template <int Threads, int N, int Items, class Sequences>
__global__ void __launch_bounds__(Threads) selective_scan_kernel(Sequences s) {
    selective_scan_tile<Threads, N, Items>(block<Threads>{}, blockIdx.x, s);
}
template <int Threads, int N, int Items, class Adjoint>
__global__ void __launch_bounds__(Threads, selective_scan_back_blocks<typename Adjoint::state>(N))
    selective_scan_back_kernel(Adjoint s) {
    selective_scan_back_tile<Threads, N, Items>(block<Threads>{}, blockIdx.x, s);
}

template <int Threads, int N, int Items, class Sequences>
void selective_scan_start(const device& d, index tiles, const Sequences& s) {
    constexpr std::size_t shared = selective_scan_shared_bytes<typename Sequences::state, N, Items>;
    launch(d, "selective_scan", selective_scan_kernel<Threads, N, Items, Sequences>, tiles, {Threads, shared}, s);
}
template <int Threads, int N, int Items, class Adjoint>
void selective_scan_back_start(const device& d, index tiles, const Adjoint& s) {
    constexpr std::size_t shared = selective_scan_back_shared_bytes<typename Adjoint::state, Threads, N, Items>;
    static_assert(shared <= 48 * 1024, "more is asked for by an attribute of the kernel");
    launch(d, "selective_scan_back", selective_scan_back_kernel<Threads, N, Items, Adjoint>, tiles, {Threads, shared},
           s);
}

}  // namespace fprnn::cuda::detail
