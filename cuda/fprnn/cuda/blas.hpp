#pragma once

#include <fprnn/cuda/device.hpp>

#include <cublas_v2.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace fprnn::cuda::detail {

/// What cuBLAS says of a call that failed, as cuda::error says it of CUDA's.
inline void check_product(cublasStatus_t status, const std::string& call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw std::runtime_error(call + ": " + cublasGetStatusString(status) + " (" + cublasGetStatusName(status) + ")");
}

/// A handle on a device's stream. Products have full precision: float is not shortened to TF32.
class blas {
public:
    static cublasHandle_t of(const device& d) {
        auto& mine = d.context_->blas;
        if (!mine) mine = std::make_shared<blas>(d);
        return mine->handle_;
    }
    explicit blas(const device& d) {
        const current_gpu current(d.gpu());
        check_product(cublasCreate(&handle_), "cublasCreate(GPU " + std::to_string(d.gpu()) + ")");
        if (const auto status = cublasSetStream(handle_, d.stream()); status != CUBLAS_STATUS_SUCCESS) {
            (void)cublasDestroy(handle_);
            check_product(status, "cublasSetStream");
        }
    }
    ~blas() { (void)cublasDestroy(handle_); }
    blas(const blas&) = delete;
    blas& operator=(const blas&) = delete;

private:
    cublasHandle_t handle_ = nullptr;
};

/// C = op(A) op(B) or C += op(A) op(B), column-major as cuBLAS has it: C [m,n], k in between.
template <class T>
void multiply_columns(const device& d, cublasOperation_t of_a, cublasOperation_t of_b, index m, index n, index k,
                      matrix<const T> a, matrix<const T> b, bool overwrite, matrix<T> c) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "cuda: products are of float or double");
    if (m == 0 || n == 0 || (k == 0 && !overwrite)) return;
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
        check_product(status, std::string(std::is_same_v<T, float> ? "cublasSgemm" : "cublasDgemm") + "(" +
                                  std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + ")");
}

}  // namespace fprnn::cuda::detail
