#pragma once

#include <fprnn/cuda/device.hpp>

#include <cublas_v2.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

namespace fprnn::cuda::detail {

/// A handle on a device's stream, and memory that products work in: they would take some by themselves, and
/// within a graph for that graph.
class blas {
public:
    static cublasHandle_t of(const device& d) {
        gpu_context& mine = *d.context_;
        {
            const std::lock_guard alone(mine.changes_blas);
            if (mine.blas) return mine.blas->handle_.get();
        }
        // Made without the mutex: it waits for captures of other threads, which may ask for a handle, too.
        // Where two threads make one, the second goes. (Not std::call_once, which would wait so, and which
        // GCC 12's ThreadSanitizer does not leave when the function throws.)
        auto made = std::make_shared<blas>(d);
        const std::lock_guard alone(mine.changes_blas);
        if (!mine.blas) mine.blas.swap(made);
        return mine.blas->handle_.get();
    }
    /// Throws what cuBLAS says of a call that failed. Within a capture that may be because of the capture,
    /// whatever it says: what is wrong besides is said again when it is called.
    static void check(const device& d, cublasStatus_t status, const std::string& call) {
        if (status == CUBLAS_STATUS_SUCCESS) return;
        throw error(d.context_->is_captured                ? cudaErrorStreamCaptureUnsupported
                    : status == CUBLAS_STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation
                                                           : cudaErrorUnknown,
                    call, cublasGetStatusString(status), cublasGetStatusName(status));
    }
    explicit blas(const device& d) {
        d.finish_graph();  // or a pass that first needs a product in the middle would have none
        cuda::check(d.context_->is_captured ? cudaErrorStreamCaptureUnsupported : cudaSuccess, "cublasCreate");
        const std::unique_lock alone(of_captures());
        // What cuBLAS recommends: 4 MiB, and 32 from Hopper on.
        const index bytes = attribute(cudaDevAttrComputeCapabilityMajor, d.gpu()) >= 9 ? 32 << 20 : 4 << 20;
        workspace_ = {d.take(bytes), {d.stream()}};
        const current_gpu current(d.gpu());
        cublasHandle_t handle = nullptr;
        cublasStatus_t status = cublasCreate(&handle);
        if (status == CUBLAS_STATUS_ALLOC_FAILED && d.make_room()) status = cublasCreate(&handle);
        check(d, status, "cublasCreate(GPU " + std::to_string(d.gpu()) + ")");
        handle_.reset(handle);
        check(d, cublasSetStream(handle, d.stream()), "cublasSetStream");
        const auto mode = d.context_->options.tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
        check(d, cublasSetMathMode(handle, mode), "cublasSetMathMode");
        check(d, cublasSetWorkspace(handle, workspace_.get(), static_cast<std::size_t>(bytes)), "cublasSetWorkspace");
    }

private:
    struct give_back {
        cudaStream_t stream;
        void operator()(void* data) const { (void)cudaFreeAsync(data, stream); }
    };
    struct destroy {
        void operator()(cublasHandle_t handle) const {
            const std::unique_lock alone(of_captures());
            (void)cublasDestroy(handle);
        }
    };
    std::unique_ptr<void, give_back> workspace_{nullptr, {}};
    std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, destroy> handle_;
};

/// C = op(A) op(B) or C += op(A) op(B), column-major as cuBLAS has it: C [m,n], k in between.
template <class T>
void multiply_columns(const device& d, cublasOperation_t of_a, cublasOperation_t of_b, index m, index n, index k,
                      matrix<const T> a, matrix<const T> b, bool overwrite, matrix<T> c) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "cuda: products are of float or double");
    if (m == 0 || n == 0 || (k == 0 && !overwrite)) return;
    if (k == 0) a.stride = b.stride = std::max(m, n);  // of nothing, but cuBLAS asks for some
    const T one(1), beta(overwrite ? 0 : 1);
    const cublasHandle_t handle = blas::of(d);
    const current_gpu current(d.gpu());
    cublasStatus_t status;
    if constexpr (std::is_same_v<T, float>)
        status = cublasSgemm_64(handle, of_a, of_b, m, n, k, &one, a.data, a.stride, b.data, b.stride, &beta, c.data,
                                c.stride);
    else
        status = cublasDgemm_64(handle, of_a, of_b, m, n, k, &one, a.data, a.stride, b.data, b.stride, &beta, c.data,
                                c.stride);
    if (status != CUBLAS_STATUS_SUCCESS)
        blas::check(d, status,
                    std::string(std::is_same_v<T, float> ? "cublasSgemm" : "cublasDgemm") + "(" + std::to_string(m) +
                        " x " + std::to_string(n) + " x " + std::to_string(k) + ")");
}

}  // namespace fprnn::cuda::detail
