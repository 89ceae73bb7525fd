#pragma once

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

/// The part of CUDA's runtime that the library calls on the host, over the host's memory: two GPUs, of which any call may be
/// made to fail. It stands in for the real one, which the tests are not linked with.
namespace fake {

/// What is written down between the begin and the end of a capture, with the memory that is taken within.
struct graph {
    struct node {
        std::type_index what;
        std::function<void()> happen;
    };
    std::vector<node> nodes;
    std::vector<void*> memory;
    ~graph();
};

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
    std::shared_ptr<graph> capturing;
    int graphs = 0;                   ///< that have not been destroyed, executable ones, too
    bool graphs_take_memory = false;  ///< as long as there are any, nothing else has some

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
    std::memset(data, 0xff, std::min(bytes, std::size_t(1) << 20));  // of more than tests have, what products work in
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

inline graph::~graph() {
    for (void* data : memory) release(data);
}
/// Happens now, or when the graph is started that is being captured.
template <class Call>
void enqueue(const Call& call) {
    const auto happen = [call] {
        const reach all;
        call();
    };
    if (state.capturing)
        state.capturing->nodes.push_back({typeid(Call), happen});
    else
        happen();
}
inline cudaGraph_t handle_of(std::shared_ptr<graph> g) {
    ++state.graphs;
    return reinterpret_cast<cudaGraph_t>(new std::shared_ptr<graph>(std::move(g)));
}
template <class Handle>
std::shared_ptr<graph>& graph_of(Handle handle) {
    return *reinterpret_cast<std::shared_ptr<graph>*>(handle);
}
template <class Handle>
cudaError_t destroy(Handle handle) {
    if (!handle) return cudaErrorInvalidValue;
    --state.graphs;
    delete &graph_of(handle);
    return cudaSuccess;
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
    *value = which == cudaDevAttrComputeCapabilityMajor        ? fake::state.capability
             : which == cudaDevAttrMaxThreadsPerMultiProcessor ? 2048
                                                               : 1;
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
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return fake::state.result("cudaStreamSynchronize",
                              fake::state.capturing ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
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
    const auto code =
        fake::state.result("cudaMallocFromPoolAsync",
                           bytes > fake::state.most || (fake::state.graphs_take_memory && fake::state.graphs > 0)
                               ? cudaErrorMemoryAllocation
                               : cudaSuccess);
    if (code != cudaSuccess) return code;
    *data = fake::allocate(bytes);
    if (fake::state.capturing) {
        fake::state.capturing->memory.push_back(*data);
        fake::enqueue([to = *data, bytes] { std::memset(to, 0xff, bytes); });
    }
    return code;
}
/// Within a capture only what the graph has taken can be given back.
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) {
    if (fake::state.capturing) {
        const auto& own = fake::state.capturing->memory;
        return std::find(own.begin(), own.end(), data) == own.end() ? cudaErrorInvalidValue : cudaSuccess;
    }
    fake::release(data);
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGraphMemTrim(int) { return fake::state.result("cudaDeviceGraphMemTrim"); }
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    const auto code = fake::state.result("cudaStreamBeginCapture");
    if (code == cudaSuccess) fake::state.capturing = std::make_shared<fake::graph>();
    return code;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    auto written = std::exchange(fake::state.capturing, nullptr);
    const auto code = fake::state.result("cudaStreamEndCapture");
    *graph = code == cudaSuccess ? fake::handle_of(std::move(written)) : nullptr;
    return code;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* started, cudaGraph_t graph, unsigned long long) {
    const auto code = fake::state.result("cudaGraphInstantiate");
    if (code == cudaSuccess) *started = reinterpret_cast<cudaGraphExec_t>(fake::handle_of(fake::graph_of(graph)));
    return code;
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
    *count = fake::graph_of(graph)->nodes.size();
    return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t started, cudaStream_t) {
    const auto code = fake::state.result("cudaGraphLaunch");
    if (code == cudaSuccess)
        for (const auto& node : fake::graph_of(started)->nodes) node.happen();
    return code;
}
/// Takes what is of the same kind, node by node, and has no memory of its own.
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t started, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
    auto& mine = fake::graph_of(started);
    const auto& other = fake::graph_of(graph);
    const bool same =
        mine->memory.empty() && other->memory.empty() &&
        std::equal(mine->nodes.begin(), mine->nodes.end(), other->nodes.begin(), other->nodes.end(),
                   [](const fake::graph::node& a, const fake::graph::node& b) { return a.what == b.what; });
    const auto code = fake::state.result("cudaGraphExecUpdate", same ? cudaSuccess : cudaErrorGraphExecUpdateFailure);
    if (code == cudaSuccess) mine = other;
    return code;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return fake::destroy(graph); }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t started) { return fake::destroy(started); }
inline cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
    const auto code = fake::state.result("cudaMemsetAsync");
    if (code == cudaSuccess) fake::enqueue([=] { std::memset(data, value, bytes); });
    return code;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
    const auto code = fake::state.result("cudaMemcpyAsync");
    if (code == cudaSuccess) fake::enqueue([=] { std::memcpy(to, from, bytes); });
    return code;
}
}
