#pragma once

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

/// The part of CUDA's runtime that the library calls on the host, over the host's memory: two GPUs, of which
/// any call may be made to fail. It stands in for the real one, which the tests are not linked with.
namespace fake {

/// A call that happens later. Of a std::function for every kernel, too much would be compiled.
struct call {
    virtual ~call() = default;
    virtual void operator()() const = 0;
};
template <class F>
struct call_of final : call {
    explicit call_of(const F& f_) : f(f_) {}
    void operator()() const override { f(); }
    F f;
};

/// What is written down between the begin and the end of a capture, with the memory that is taken within.
struct graph {
    struct node {
        cudaGraphNodeType type;
        std::shared_ptr<const call> happen;
    };
    std::vector<node> nodes;
    std::vector<void*> memory;
    bool is_invalid = false;  ///< something was called that cannot be captured
    ~graph();
};

struct runtime {
    int gpus = 2, current = 0, capability = 9, multiprocessors = 1;
    int streams = 0, pools = 0;
    bool guarded = false;                           ///< memory is out of the host's reach but in calls and kernels
    std::map<void*, std::size_t> memory;            ///< what is allocated
    int overruns = 0;                               ///< guarded allocations that were written behind
    std::size_t most = std::size_t(1) << 30;        ///< bytes that one allocation may have
    int calls = 0;                                  ///< that could have failed, so far
    std::map<std::string, int> calls_of;            ///< by name
    int failing = std::numeric_limits<int>::max();  ///< the number of the call that fails
    std::string failed;                             ///< its name
    cudaError_t last = cudaSuccess;
    std::shared_ptr<graph> capturing;
    bool loads_while_capturing = true;  ///< kernels and products
    int captured = 0;                   ///< how many of them have been, so far
    int unloaded = -1;                  ///< the number of the one that cannot be
    bool is_called_again = false;       ///< what failed, so that nobody needs to hear of it
    int graphs = 0;                     ///< that have not been destroyed, executable ones, too
    bool graphs_take_memory = false;    ///< as long as there are any, nothing else has some
    int without_memory = 0;             ///< how many of the next graphs and handles have none, when they begin

    /// Of a kernel's or a product's code. What cannot be loaded ends a capture.
    cudaError_t load() {
        if (!capturing) return cudaSuccess;
        if (capturing->is_invalid) return cudaErrorStreamCaptureInvalidated;
        capturing->is_invalid = captured++ == unloaded || !loads_while_capturing;
        return capturing->is_invalid ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
    }
    bool has_no_memory() { return without_memory > 0 && without_memory-- > 0; }

    cudaError_t result(const char* name, cudaError_t code = cudaSuccess) {
        ++calls_of[name];
        if (calls++ == failing) code = cudaErrorUnknown;
        if (code != cudaSuccess) failed = name, last = code;
        return code;
    }
};
inline runtime state;

constexpr std::size_t alignment = 256, initialised = std::size_t(1) << 16;

/// What guarded memory is taken from, so that one call puts all of it within the host's reach or out of it.
/// After each allocation there are bytes that nobody may write.
struct arena {
    static constexpr std::size_t bytes = std::size_t(1) << 30, page = 4096;

    char* base =
        static_cast<char*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::map<char*, std::size_t> taken;  ///< with the bytes that follow
    std::size_t open = 0;                ///< bytes that are within reach

    static std::size_t with_guard(std::size_t n) { return (n + alignment - 1) / alignment * alignment + alignment; }
    bool holds(const void* data) const {
        const auto at = reinterpret_cast<std::uintptr_t>(data), first = reinterpret_cast<std::uintptr_t>(base);
        return at >= first && at < first + bytes;
    }
    void reach(bool within) {
        std::size_t used = 0;
        if (within && !taken.empty()) {
            const auto& [last, n] = *taken.rbegin();
            used = (static_cast<std::size_t>(last - base) + n + page - 1) / page * page;
        }
        if (within)
            mprotect(base, used, PROT_READ | PROT_WRITE);
        else
            mprotect(base, open, PROT_NONE);
        open = used;
    }
    /// The first gap that is large enough; nullptr where there is none.
    char* take(std::size_t n) {
        char* at = base;
        for (const auto& [data, size] : taken) {
            if (static_cast<std::size_t>(data - at) >= n) break;
            at = data + size;
        }
        if (static_cast<std::size_t>(base + bytes - at) < n) return nullptr;
        return taken.emplace(at, n).first->first;
    }
    /// Pages that were written take time whenever they come within reach, so that those of one test go with
    /// it.
    void give(char* data) {
        taken.erase(data);
        if (taken.empty()) madvise(base, bytes, MADV_DONTNEED);
    }
};
inline arena guarded_memory;

/// Within its life the host reaches what is on the GPU: what calls and kernels do.
class reach {
public:
    reach() {
        if (state.guarded) guarded_memory.reach(true);
    }
    ~reach() {
        if (state.guarded) guarded_memory.reach(false);
    }
    reach(const reach&) = delete;
    reach& operator=(const reach&) = delete;
};

/// Memory that begins as NaN; nullptr where there is none. Of more than tests have, what products work in,
/// the beginning.
inline void* allocate(std::size_t bytes) {
    void* data = state.guarded ? guarded_memory.take(arena::with_guard(bytes)) : std::malloc(bytes);
    if (!data) return nullptr;
    state.memory[data] = bytes;
    const reach all;
    std::memset(data, 0xff, std::min(bytes, initialised));
    if (state.guarded) std::memset(static_cast<char*>(data) + bytes, 0xff, arena::with_guard(bytes) - bytes);
    return data;
}
/// What is given back is NaN again; what has been written after it is an overrun.
inline void release(void* data) {
    const std::size_t bytes = state.memory.at(data);
    state.memory.erase(data);
    if (!guarded_memory.holds(data)) return std::free(data);
    {
        const reach all;
        const char* memory = static_cast<const char*>(data);
        state.overruns += std::any_of(memory + bytes, memory + arena::with_guard(bytes),
                                      [](char byte) { return byte != static_cast<char>(0xff); });
        std::memset(data, 0xff, std::min(bytes, initialised));
    }
    guarded_memory.give(static_cast<char*>(data));
}

inline graph::~graph() {
    for (void* data : memory) release(data);
}
inline void write_down(std::unique_ptr<const call> happen, cudaGraphNodeType type) {
    state.capturing->nodes.push_back({type, std::move(happen)});
}
/// Happens now, or when the graph is started that is being captured.
template <class F>
void enqueue(const F& f, cudaGraphNodeType type = cudaGraphNodeTypeKernel) {
    if (state.capturing) return write_down(std::unique_ptr<const call>(new call_of<F>(f)), type);
    const reach all;
    f();
}
/// Within a capture what is taken is the graph's.
inline void belongs_to_graph(void* data, std::size_t bytes) {
    if (!state.capturing) return;
    state.capturing->memory.push_back(data);
    enqueue([=] { std::memset(data, 0xff, bytes); }, cudaGraphNodeTypeMemAlloc);
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
             : which == cudaDevAttrMultiProcessorCount         ? fake::state.multiprocessors
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
    if (fake::state.capturing) fake::state.capturing->is_invalid = true;
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
    if (!*data) return fake::state.last = cudaErrorMemoryAllocation;
    fake::belongs_to_graph(*data, bytes);
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
    const bool is_invalid = written && written->is_invalid;
    const auto code =
        fake::state.result("cudaStreamEndCapture", is_invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    *graph = code == cudaSuccess ? fake::handle_of(std::move(written)) : nullptr;
    return code;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* started, cudaGraph_t graph, unsigned long long) {
    const auto code = fake::state.result("cudaGraphInstantiate");
    if (code == cudaSuccess) *started = reinterpret_cast<cudaGraphExec_t>(fake::handle_of(fake::graph_of(graph)));
    return code;
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    auto& all = fake::graph_of(graph)->nodes;
    *count = all.size();
    if (nodes)
        for (auto& node : all) *nodes++ = reinterpret_cast<cudaGraphNode_t>(&node);
    return fake::state.result("cudaGraphGetNodes");
}
inline cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    *type = reinterpret_cast<fake::graph::node*>(node)->type;
    return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t started, cudaStream_t) {
    const auto code =
        fake::state.result("cudaGraphLaunch", fake::state.has_no_memory() ? cudaErrorMemoryAllocation : cudaSuccess);
    if (code == cudaSuccess)
        for (const auto& node : fake::graph_of(started)->nodes) {
            const fake::reach all;
            (*node.happen)();
        }
    return code;
}
/// Takes what is of the same kind, node by node. Nobody asks it of what has memory of its own.
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t started, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
    auto& mine = fake::graph_of(started);
    const auto& other = fake::graph_of(graph);
    const bool have_memory = !mine->memory.empty() || !other->memory.empty();
    const bool same = std::equal(mine->nodes.begin(), mine->nodes.end(), other->nodes.begin(), other->nodes.end(),
                                 [](const auto& a, const auto& b) { return typeid(*a.happen) == typeid(*b.happen); });
    const auto code = fake::state.result("cudaGraphExecUpdate", have_memory ? cudaErrorInvalidValue
                                                                : same      ? cudaSuccess
                                                                            : cudaErrorGraphExecUpdateFailure);
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
