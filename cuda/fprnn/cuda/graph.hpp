#pragma once

#include <fprnn/cuda/device.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace fprnn::cuda::detail {

struct destroy_graph {
    void operator()(cudaGraph_t g) const { (void)cudaGraphDestroy(g); }
};
/// What has been called on a stream, written down.
using written_graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, destroy_graph>;

/// While it lives, what is called on a device's stream is written down instead of happening. Memory that is taken and given back is the
/// graph's. What nobody asks for with end() is forgotten.
class capture {
public:
    /// Errors: what CUDA says, as in the rest.
    explicit capture(const device& d) : device_(d) {
        const current_gpu current(d.gpu());
        check(cudaStreamBeginCapture(d.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    }
    ~capture() {
        if (is_over_) return;
        cudaGraph_t graph = nullptr;
        (void)cudaStreamEndCapture(device_.stream(), &graph);
        (void)cudaGetLastError();
        const written_graph forgotten(graph);
    }
    capture(const capture&) = delete;
    capture& operator=(const capture&) = delete;

    /// Called once.
    written_graph end() {
        is_over_ = true;
        cudaGraph_t graph = nullptr;
        check(cudaStreamEndCapture(device_.stream(), &graph), "cudaStreamEndCapture");
        return written_graph(graph);
    }

private:
    const device& device_;
    bool is_over_ = false;
};

/// What calls() starts on the device's stream. Errors: also what calls() throws, after which the stream is as it was.
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
    executable_graph(executable_graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
    executable_graph& operator=(executable_graph&& other) noexcept {
        std::swap(graph_, other.graph_);
        return *this;
    }
    ~executable_graph() {
        if (graph_) (void)cudaGraphExecDestroy(graph_);
    }

    /// Becomes that of `what`, which costs less where it has been that of the same calls with other addresses and numbers.
    void become(const written_graph& what) {
        if (graph_) {
            cudaGraphExecUpdateResultInfo difference{};
            const cudaError_t code = cudaGraphExecUpdate(graph_, what.get(), &difference);
            if (code == cudaSuccess) return;
            if (code != cudaErrorGraphExecUpdateFailure) check(code, "cudaGraphExecUpdate");
            (void)cudaGetLastError();
            (void)cudaGraphExecDestroy(std::exchange(graph_, nullptr));
        }
        check(cudaGraphInstantiate(&graph_, what.get(), 0), "cudaGraphInstantiate");
    }
    void start(const device& d) const {
        const current_gpu current(d.gpu());
        check(cudaGraphLaunch(graph_, d.stream()), "cudaGraphLaunch");
    }

private:
    cudaGraphExec_t graph_ = nullptr;
};

}  // namespace fprnn::cuda::detail
