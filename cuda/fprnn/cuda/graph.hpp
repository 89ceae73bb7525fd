#pragma once

#include <fprnn/cuda/device.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn::cuda::detail {

/// What a call that fails is said to be.
inline auto call_on(const device& d, const char* name) {
    return [&d, name] { return std::string(name) + "(GPU " + std::to_string(d.gpu()) + ")"; };
}

struct destroy_graph {
    void operator()(cudaGraph_t g) const { (void)cudaGraphDestroy(g); }
};
/// What has been called on a stream, written down.
using written_graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, destroy_graph>;

/// Whether some of its calls take memory, a library's own, too, of which nobody else knows.
inline bool takes_memory(const device& d, const written_graph& what) {
    std::size_t n = 0;
    check(cudaGraphGetNodes(what.get(), nullptr, &n), call_on(d, "cudaGraphGetNodes"));
    std::vector<cudaGraphNode_t> nodes(n);
    check(cudaGraphGetNodes(what.get(), nodes.data(), &n), call_on(d, "cudaGraphGetNodes"));
    return std::any_of(nodes.begin(), nodes.end(), [&](cudaGraphNode_t node) {
        cudaGraphNodeType type{};
        check(cudaGraphNodeGetType(node, &type), call_on(d, "cudaGraphNodeGetType"));
        return type == cudaGraphNodeTypeMemAlloc;
    });
}

/// While it lives, what is called on a device's stream is written down instead of happening. Memory that is
/// taken and given back is the graph's. What nobody asks for with end() is forgotten.
class capture {
public:
    /// Errors: what CUDA says, as in the rest.
    explicit capture(const device& d) : device_(d) {
        const current_gpu current(d.gpu());
        check(cudaStreamBeginCapture(d.stream(), cudaStreamCaptureModeThreadLocal),
              call_on(d, "cudaStreamBeginCapture"));
        d.context_->is_captured = true;
    }
    ~capture() {
        if (is_over_) return;
        device_.context_->is_captured = false;
        cudaGraph_t graph = nullptr;
        (void)cudaStreamEndCapture(device_.stream(), &graph);
        (void)cudaGetLastError();
        const written_graph forgotten(graph);
    }
    capture(const capture&) = delete;
    capture& operator=(const capture&) = delete;

    /// Called once.
    written_graph end() {
        const current_gpu current(device_.gpu());
        is_over_ = true;
        device_.context_->is_captured = false;
        cudaGraph_t graph = nullptr;
        check(cudaStreamEndCapture(device_.stream(), &graph), call_on(device_, "cudaStreamEndCapture"));
        return written_graph(graph);
    }

private:
    const device& device_;
    std::shared_lock<gate> others_{of_captures()};
    bool is_over_ = false;
};

/// Whether something was called that cannot be written down.
inline bool is_of_capture(cudaError_t code) {
    return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
}

/// What calls() starts on the device's stream. Errors: also what calls() throws, after which the stream is as
/// it was.
template <class Calls>
written_graph written_down(const device& d, const Calls& calls) {
    capture all(d);
    calls();
    return all.end();
}

/// A graph that can be started, as often as it is wanted.
class executable_graph {
public:
    executable_graph() = default;
    executable_graph(executable_graph&& other) noexcept
        : graph_(std::exchange(other.graph_, nullptr)), takes_memory_(other.takes_memory_) {}
    executable_graph& operator=(executable_graph&& other) noexcept {
        std::swap(graph_, other.graph_);
        std::swap(takes_memory_, other.takes_memory_);
        return *this;
    }
    ~executable_graph() {
        if (graph_) (void)cudaGraphExecDestroy(graph_);
    }

    /// Becomes that of `what`, which costs less where it has been that of the same calls with other addresses
    /// and numbers, and both take no memory.
    void become(const device& d, const written_graph& what) {
        const current_gpu current(d.gpu());
        const bool takes = takes_memory(d, what);
        if (graph_ && !takes_memory_ && !takes) {
            cudaGraphExecUpdateResultInfo difference{};
            const cudaError_t code = cudaGraphExecUpdate(graph_, what.get(), &difference);
            if (code == cudaSuccess) return;
            if (code != cudaErrorGraphExecUpdateFailure && code != cudaErrorNotSupported)
                check(code, call_on(d, "cudaGraphExecUpdate"));
            (void)cudaGetLastError();
        }
        if (graph_) check(cudaGraphExecDestroy(std::exchange(graph_, nullptr)), call_on(d, "cudaGraphExecDestroy"));
        takes_memory_ = takes;
        const auto instantiate = [&] { return cudaGraphInstantiate(&graph_, what.get(), 0); };
        cudaError_t code = instantiate();
        if (code == cudaErrorMemoryAllocation && d.make_room()) code = instantiate();
        check(code, [&] {
            std::size_t calls = 0;
            (void)cudaGraphGetNodes(what.get(), nullptr, &calls);
            return "cudaGraphInstantiate(" + std::to_string(calls) + " calls, GPU " + std::to_string(d.gpu()) + ")";
        });
    }
    /// Memory that it takes for itself is taken now.
    void start(const device& d) const {
        const current_gpu current(d.gpu());
        const auto launch = [&] { return cudaGraphLaunch(graph_, d.stream()); };
        cudaError_t code = launch();
        if (code == cudaErrorMemoryAllocation && d.make_room()) code = launch();
        check(code, call_on(d, "cudaGraphLaunch"));
    }

private:
    cudaGraphExec_t graph_ = nullptr;
    bool takes_memory_ = false;
};

}  // namespace fprnn::cuda::detail
