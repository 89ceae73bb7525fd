#pragma once

#include "fake_runtime.hpp"

#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>

/// The part of cuBLAS that the library calls, as plain loops over column-major matrices.
namespace fake {

inline cublasStatus_t unloaded_product = CUBLAS_STATUS_NOT_INITIALIZED;  ///< what is said of it
inline bool products_take_memory = false;                                ///< by themselves, while they are captured

template <class T>
cublasStatus_t gemm(const char* name, cublasOperation_t of_a, cublasOperation_t of_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, const T* alpha, const T* A, std::int64_t lda, const T* B, std::int64_t ldb,
                    const T* beta, T* C, std::int64_t ldc) {
    if (state.result(name) != cudaSuccess) {
        state.is_called_again = state.capturing != nullptr;
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (state.load() != cudaSuccess) return unloaded_product;
    if (products_take_memory && state.capturing) belongs_to_graph(allocate(8), 8);
    const bool at = of_a == CUBLAS_OP_T, bt = of_b == CUBLAS_OP_T;
    const auto at_least = [](std::int64_t rows) { return std::max<std::int64_t>(rows, 1); };
    if (m < 0 || n < 0 || k < 0 || lda < at_least(at ? k : m) || ldb < at_least(bt ? n : k) || ldc < at_least(m))
        return CUBLAS_STATUS_INVALID_VALUE;
    enqueue([=, by = *alpha, keep = *beta] {
        for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < m; ++i) {
                T sum = 0;
                for (std::int64_t l = 0; l < k; ++l)
                    sum += A[at ? i * lda + l : l * lda + i] * B[bt ? l * ldb + j : j * ldb + l];
                T& to = C[j * ldc + i];
                to = by * sum + (keep == T(0) ? T(0) : keep * to);
            }
    });
    return CUBLAS_STATUS_SUCCESS;
}
inline int handles = 0;
inline cublasMath_t math{};

}  // namespace fake

extern "C" {

inline const char* cublasGetStatusName(cublasStatus_t) { return "itsName"; }
inline const char* cublasGetStatusString(cublasStatus_t) { return "its words"; }
inline cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    if (fake::state.result("cublasCreate") != cudaSuccess || fake::state.capturing)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (fake::state.has_no_memory()) return CUBLAS_STATUS_ALLOC_FAILED;
    *handle = reinterpret_cast<cublasHandle_t>(&fake::state), ++fake::handles;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
    --fake::handles;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) {
    return fake::state.result("cublasSetStream") == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
    fake::math = mode;
    return fake::state.result("cublasSetMathMode") == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, std::size_t bytes) {
    const bool is_there = fake::state.memory.count(workspace) && fake::state.memory.at(workspace) >= bytes;
    return fake::state.result("cublasSetWorkspace") == cudaSuccess && is_there ? CUBLAS_STATUS_SUCCESS
                                                                               : CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasSgemm_v2_64(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, std::int64_t m,
                                        std::int64_t n, std::int64_t k, const float* alpha, const float* A,
                                        std::int64_t lda, const float* B, std::int64_t ldb, const float* beta, float* C,
                                        std::int64_t ldc) {
    return fake::gemm("cublasSgemm", of_a, of_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
inline cublasStatus_t cublasDgemm_v2_64(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, std::int64_t m,
                                        std::int64_t n, std::int64_t k, const double* alpha, const double* A,
                                        std::int64_t lda, const double* B, std::int64_t ldb, const double* beta,
                                        double* C, std::int64_t ldc) {
    return fake::gemm("cublasDgemm", of_a, of_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
}
