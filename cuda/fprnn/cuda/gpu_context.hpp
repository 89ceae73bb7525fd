#pragma once

#include <fprnn/cuda/error.hpp>
#include <fprnn/cuda/program.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace fprnn::cuda {

struct device_options {
    /// Products of float may shorten their factors to TF32, 10 bits behind the point, which tensor cores
    /// multiply.
    bool tf32 = false;
    /// What happens to a token between two products is one kernel. Without, everything is: to be compared
    /// with, and to look for errors.
    bool programs = true;
    /// An iteration of many tokens is a graph, a pass of tokens one by one is several, and what an adjoint
    /// adds is one, of which all happens or nothing. Without, everything is called every time, and an adjoint
    /// that fails may have added some of it.
    bool graphs = true;
};

namespace detail {

class blas;

/// What has been called and not started.
class pending {
public:
    virtual void flush() = 0;

protected:
    ~pending() = default;
};
/// Graphs that are kept for later calls.
class kept_graphs {
public:
    virtual ~kept_graphs() = default;
    /// Says whether there were any.
    virtual bool forget() = 0;
};
/// A pass that is being called, whose calls may happen later.
class called_pass {
public:
    /// All that has been called happens.
    virtual void finish() = 0;
    /// The same, because the host waits for it.
    virtual void look() = 0;
    /// Whether it frees this memory, which what has been called still uses.
    virtual bool frees(void* data) noexcept = 0;

protected:
    ~called_pass() = default;
};

/// Makes a GPU the current one of this thread, and the one that was current again afterwards.
class current_gpu {
public:
    explicit current_gpu(int gpu) : gpu_(gpu) {
        check(cudaGetDevice(&before_), "cudaGetDevice");
        if (before_ != gpu) check(cudaSetDevice(gpu), [&] { return "cudaSetDevice(" + std::to_string(gpu) + ")"; });
    }
    ~current_gpu() {
        if (before_ != gpu_) (void)cudaSetDevice(before_);
    }
    current_gpu(const current_gpu&) = delete;
    current_gpu& operator=(const current_gpu&) = delete;

private:
    int gpu_, before_ = 0;
};

/// A shared mutex at which who wants it alone goes before all that come later: those who share it may always
/// be some.
class gate {
public:
    void lock() {
        std::unique_lock mine(next_);
        all_.lock();
        (void)mine.release();
    }
    void unlock() {
        all_.unlock();
        next_.unlock();
    }
    void lock_shared() {
        const std::lock_guard mine(next_);
        all_.lock_shared();
    }
    void unlock_shared() { all_.unlock_shared(); }

private:
    std::mutex next_;
    std::shared_mutex all_;
};
/// Making and destroying a handle of cuBLAS waits for all of a GPU, which would end the captures of other
/// threads: who captures shares it. A thread captures on one device at a time.
inline gate& of_captures() {
    static gate one;
    return one;
}

/// What a device and everything that lies on it share.
struct gpu_context {
    int gpu = 0, multiprocessors = 0, threads = 0;
    device_options options;
    cudaStream_t stream = nullptr;
    cudaMemPool_t pool = nullptr;
    std::shared_ptr<detail::blas> blas;  ///< once a product has been asked for
    std::mutex changes_blas;
    std::shared_ptr<detail::kept_graphs> graphs;    ///< once calls have been asked for that are some
    detail::called_pass* pass = nullptr;            ///< that is being called
    bool is_captured = false;                       ///< what is called does not happen
    std::map<const void*, detail::step> functions;  ///< of the GPU, by what stands for them on the host
    std::mutex functions_mutex;

    gpu_context() { (void)of_captures(); }  // which is to be there as long
    gpu_context(const gpu_context&) = delete;
    gpu_context& operator=(const gpu_context&) = delete;
    ~gpu_context() {  // Nobody is left to hear of an error.
        graphs.reset();
        int before = gpu;
        if (blas) (void)cudaGetDevice(&before), (void)cudaSetDevice(gpu);
        blas.reset();
        if (before != gpu) (void)cudaSetDevice(before);
        if (stream) (void)cudaStreamSynchronize(stream), (void)cudaStreamDestroy(stream);
        if (pool) (void)cudaMemPoolDestroy(pool);
    }
};

inline int attribute(cudaDeviceAttr which, int gpu) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, gpu),
          [&] { return "cudaDeviceGetAttribute(" + std::to_string(which) + ", GPU " + std::to_string(gpu) + ")"; });
    return value;
}

}  // namespace detail

}  // namespace fprnn::cuda
