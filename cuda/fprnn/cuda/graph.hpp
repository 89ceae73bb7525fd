#pragma once

#include <fprnn/cuda/device.hpp>

#include <exception>

namespace fprnn::cuda::detail {

/// What is called on a device's stream, written down once and started as often as it is wanted.
class graph {
public:
    /// Of all that calls() starts there; none of it happens. Memory that is taken and given back within calls() is the graph's.
    /// Errors: what CUDA says, and what calls() throws, after which the stream is as it was.
    template <class Calls>
    graph(const device& d, const Calls& calls) : device_(d) {
        const current_gpu current(d.gpu());
        check(cudaStreamBeginCapture(d.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        std::exception_ptr failure;
        try {
            calls();
        } catch (...) {
            failure = std::current_exception();
        }
        cudaGraph_t written = nullptr;
        cudaError_t code = cudaStreamEndCapture(d.stream(), &written);
        const char* call = "cudaStreamEndCapture";
        if (code == cudaSuccess && !failure) {
            call = "cudaGraphInstantiate";
            code = cudaGraphInstantiate(&started_, written, 0);
        }
        if (written) (void)cudaGraphDestroy(written);
        if (failure) {
            (void)cudaGetLastError();
            std::rethrow_exception(failure);
        }
        check(code, call);
    }
    ~graph() { (void)cudaGraphExecDestroy(started_); }
    graph(const graph&) = delete;
    graph& operator=(const graph&) = delete;

    void start() const {
        const current_gpu current(device_.gpu());
        check(cudaGraphLaunch(started_, device_.stream()), "cudaGraphLaunch");
    }

private:
    const device& device_;
    cudaGraphExec_t started_ = nullptr;
};

}  // namespace fprnn::cuda::detail
