#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace fprnn::cuda {

/// A call of CUDA that failed. The message names the call, its sizes, and CUDA's words for what went wrong.
class error : public std::runtime_error {
public:
    error(cudaError_t code, const std::string& call)
        : error(code, call, cudaGetErrorString(code), cudaGetErrorName(code)) {}
    /// Of a library of CUDA, in its own words.
    error(cudaError_t code, const std::string& call, const char* words, const char* name)
        : std::runtime_error(call + ": " + words + " (" + name + ")"), code_(code) {}

    cudaError_t code() const { return code_; }

private:
    cudaError_t code_;
};

/// Throws an error unless `code` is success. `call()` says what was called; it is made only when it is
/// needed.
template <class Call>
void check(cudaError_t code, Call&& call) {
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // or the next kernel would be blamed for it
    throw error(code, std::string(call()));
}
inline void check(cudaError_t code, const char* call) {
    check(code, [call] { return call; });
}

}  // namespace fprnn::cuda
