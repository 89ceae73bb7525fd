#pragma once

#include <fprnn/cuda/device.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <string>

namespace fprnn::cuda {

/// How much a block of a kernel takes.
struct block_size {
    int threads;
    std::size_t shared_bytes;
};

/// As many blocks as run on the device at a time. Errors: a kernel that was not compiled for this GPU; a
/// block that it has no room for.
template <class... P>
index resident_blocks(const device& d, const char* name, void (*kernel)(P...), block_size size) {
    const detail::current_gpu current(d.gpu());
    const auto call = [&] {
        return std::string(name) + ": cudaOccupancyMaxActiveBlocksPerMultiprocessor(" + std::to_string(size.threads) +
               " threads, " + std::to_string(size.shared_bytes) + " bytes of shared memory)";
    };
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, size.threads, size.shared_bytes), call);
    if (blocks == 0) throw error(cudaErrorLaunchOutOfResources, call());
    return index(blocks) * d.multiprocessors();
}

/// Calls a kernel. Errors: more blocks than a grid may have; what CUDA says of the launch. What happens while
/// the kernel runs is an error of a later call.
template <class... P>
void launch(const device& d, const char* name, void (*kernel)(P...), index blocks, block_size size,
            std::type_identity_t<P>... arguments) {
    const auto call = [&] {
        return std::string(name) + ": cudaLaunchKernelEx(" + std::to_string(blocks) + " blocks of " +
               std::to_string(size.threads) + " threads, " + std::to_string(size.shared_bytes) +
               " bytes of shared memory)";
    };
    constexpr index most = std::numeric_limits<int>::max();
    if (blocks > most)
        throw error(cudaErrorInvalidConfiguration, call() + ", at most " + std::to_string(most) + " blocks");
    const detail::current_gpu current(d.gpu());
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(static_cast<unsigned>(blocks));
    configuration.blockDim = dim3(static_cast<unsigned>(size.threads));
    configuration.dynamicSmemBytes = size.shared_bytes;
    configuration.stream = d.stream();
    check(cudaLaunchKernelEx(&configuration, kernel, arguments...), call);
}

}  // namespace fprnn::cuda
