#pragma once

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

/// The part of CUDA's runtime that the library calls on the host, over the host's memory: two GPUs, of which any call may be
/// made to fail. It stands in for the real one, which the tests are not linked with.
namespace fake {

struct runtime {
    int gpus = 2, current = 0, capability = 9;
    int streams = 0, pools = 0;
    bool guarded = false;                           ///< memory is out of the host's reach but in calls and kernels
    std::map<void*, std::size_t> memory;            ///< what is allocated
    std::size_t most = std::size_t(1) << 30;        ///< bytes that one allocation may have
    int calls = 0;                                  ///< that could have failed, so far
    std::map<std::string, int> calls_of;            ///< by name
    int failing = std::numeric_limits<int>::max();  ///< the number of the call that fails
    std::string failed;                             ///< its name
    cudaError_t last = cudaSuccess;

    cudaError_t result(const char* name, cudaError_t code = cudaSuccess) {
        ++calls_of[name];
        if (calls++ == failing) code = cudaErrorUnknown;
        if (code != cudaSuccess) failed = name, last = code;
        return code;
    }
};
inline runtime state;

constexpr std::size_t page = 4096, alignment = 256;

/// Of the pages around memory, the last one is never within reach.
inline std::size_t pages_of(std::size_t bytes) { return (bytes + page - 1) / page * page + page; }
inline char* first_page(void* data) {
    return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(data) / page * page);
}
inline void protect(int how) {
    for (const auto& [data, bytes] : state.memory) mprotect(first_page(data), pages_of(bytes) - page, how);
}

/// Within its life the host reaches what is on the GPU: what calls and kernels do.
class reach {
public:
    reach() {
        if (state.guarded) protect(PROT_READ | PROT_WRITE);
    }
    ~reach() {
        if (state.guarded) protect(PROT_NONE);
    }
    reach(const reach&) = delete;
    reach& operator=(const reach&) = delete;
};

/// Memory ends where its pages do, so that what is beyond it is out of reach, and begins as NaN.
inline void* allocate(std::size_t bytes) {
    void* data;
    if (state.guarded) {
        const std::size_t all = pages_of(bytes), used = (bytes + alignment - 1) / alignment * alignment;
        char* base = static_cast<char*>(mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base + all - page, page, PROT_NONE);
        data = base + (all - page - used);
    } else {
        data = std::malloc(bytes);
    }
    std::memset(data, 0xff, bytes);
    if (state.guarded) mprotect(first_page(data), pages_of(bytes) - page, PROT_NONE);
    state.memory[data] = bytes;
    return data;
}
inline void release(void* data) {
    const std::size_t bytes = state.memory.at(data);
    state.memory.erase(data);
    if (state.guarded)
        munmap(first_page(data), pages_of(bytes));
    else
        std::free(data);
}

}  // namespace fake

extern "C" {

inline cudaError_t cudaGetLastError() { return std::exchange(fake::state.last, cudaSuccess); }
inline const char* cudaGetErrorString(cudaError_t) { return "its words"; }
inline const char* cudaGetErrorName(cudaError_t) { return "itsName"; }
inline cudaError_t cudaGetDeviceCount(int* count) {
    *count = fake::state.gpus;
    return fake::state.result("cudaGetDeviceCount", fake::state.gpus == 0 ? cudaErrorNoDevice : cudaSuccess);
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    *value = which == cudaDevAttrComputeCapabilityMajor ? fake::state.capability : 1;
    return fake::state.result("cudaDeviceGetAttribute");
}
inline cudaError_t cudaGetDevice(int* gpu) {
    *gpu = fake::state.current;
    return fake::state.result("cudaGetDevice");
}
inline cudaError_t cudaSetDevice(int gpu) {
    const auto code = fake::state.result("cudaSetDevice");
    if (code == cudaSuccess) fake::state.current = gpu;
    return code;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    const auto code = fake::state.result("cudaStreamCreateWithFlags");
    if (code == cudaSuccess) *stream = reinterpret_cast<cudaStream_t>(&fake::state), ++fake::state.streams;
    return code;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) {
    --fake::state.streams;
    return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return fake::state.result("cudaStreamSynchronize"); }
inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
    const auto code = fake::state.result("cudaMemPoolCreate");
    if (code == cudaSuccess) *pool = reinterpret_cast<cudaMemPool_t>(&fake::state), ++fake::state.pools;
    return code;
}
inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
    --fake::state.pools;
    return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
    return fake::state.result("cudaMemPoolSetAttribute");
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return fake::state.result("cudaMemPoolTrimTo"); }
inline cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t, cudaStream_t) {
    const auto code = fake::state.result("cudaMallocFromPoolAsync",
                                         bytes > fake::state.most ? cudaErrorMemoryAllocation : cudaSuccess);
    if (code == cudaSuccess) *data = fake::allocate(bytes);
    return code;
}
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) {
    fake::release(data);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
    const auto code = fake::state.result("cudaMemsetAsync");
    const fake::reach all;
    if (code == cudaSuccess) std::memset(data, value, bytes);
    return code;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
    const auto code = fake::state.result("cudaMemcpyAsync");
    const fake::reach all;
    if (code == cudaSuccess) std::memcpy(to, from, bytes);
    return code;
}
}
