#pragma once

#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/scan.hpp>

#include <algorithm>

namespace fprnn::cuda::detail {

template <int Threads, int Items, int Blocks, class Recurrence>
__global__ void __launch_bounds__(Threads, Blocks)
    scan_kernel(tiling tiles, look_back<typename Recurrence::state> between, Recurrence recurrence) {
    scan_tiles<Items>(block<Threads>{}, tiles, between, recurrence);
}

template <int Threads, int Items, int Blocks, class Recurrence>
void scan_start(const device& d, const char* name, const tiling& tiles,
                const look_back<typename Recurrence::state>& between, const Recurrence& recurrence) {
    const auto kernel = scan_kernel<Threads, Items, Blocks, Recurrence>;
    const block_size size{Threads, scan_shared_bytes<typename Recurrence::state>(Threads)};
    const index blocks = std::min(tiles.tiles, resident_blocks(d, name, kernel, size));
    launch(d, name, kernel, blocks, size, tiles, between, recurrence);
}

}  // namespace fprnn::cuda::detail
