#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/cuda/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace fprnn::cuda {

namespace detail {

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

/// What a device and everything that lies on it share.
struct gpu_context {
    int gpu = 0, multiprocessors = 0;
    cudaStream_t stream = nullptr;
    cudaMemPool_t pool = nullptr;

    gpu_context() = default;
    gpu_context(const gpu_context&) = delete;
    gpu_context& operator=(const gpu_context&) = delete;
    ~gpu_context() {  // Nobody is left to hear of an error.
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

class memory;

/// A GPU with a stream and a pool of memory of its own. What is called on it happens in that order, some time later.
/// Copies are the same device. Memory that is freed stays in the pool for later calls; it goes back to the GPU with
/// the last copy and the last tensor, or when `trim` is called.
/// Errors: no GPU of that number; one older than compute capability 7.0, whose threads cannot wait for each other, or
/// without memory pools; what CUDA says.
class device {
public:
    explicit device(int gpu = 0) : context_(std::make_shared<detail::gpu_context>()) {
        int count = 0;
        check(cudaGetDeviceCount(&count), "device: cudaGetDeviceCount");
        require(gpu >= 0 && gpu < count, "device",
                [&] { return "GPU " + std::to_string(gpu) + " of " + std::to_string(count) + " does not exist"; });
        const int major = detail::attribute(cudaDevAttrComputeCapabilityMajor, gpu);
        require(major >= 7, "device", [&] {
            return "GPU " + std::to_string(gpu) + " has compute capability " + std::to_string(major) + "." +
                   std::to_string(detail::attribute(cudaDevAttrComputeCapabilityMinor, gpu)) + ", 7.0 is needed";
        });
        require(detail::attribute(cudaDevAttrMemoryPoolsSupported, gpu) != 0, "device",
                [&] { return "GPU " + std::to_string(gpu) + " has no memory pools"; });

        context_->gpu = gpu;
        context_->multiprocessors = detail::attribute(cudaDevAttrMultiProcessorCount, gpu);
        const detail::current_gpu current(gpu);
        check(cudaStreamCreateWithFlags(&context_->stream, cudaStreamNonBlocking), "device: cudaStreamCreateWithFlags");
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = gpu;
        check(cudaMemPoolCreate(&context_->pool, &properties), "device: cudaMemPoolCreate");
        std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
        check(cudaMemPoolSetAttribute(context_->pool, cudaMemPoolAttrReleaseThreshold, &everything),
              "device: cudaMemPoolSetAttribute");
    }

    int gpu() const { return context_->gpu; }
    int multiprocessors() const { return context_->multiprocessors; }
    cudaStream_t stream() const { return context_->stream; }

    /// Returns when everything that was called has happened. Errors: also those of kernels that ran since the last time.
    void synchronize() const {
        check(cudaStreamSynchronize(stream()),
              [&] { return "cudaStreamSynchronize(GPU " + std::to_string(gpu()) + ")"; });
    }
    /// Gives memory that nothing lies in back to the GPU.
    void trim() const {
        synchronize();
        check(cudaMemPoolTrimTo(context_->pool, 0), "cudaMemPoolTrimTo");
    }
    /// Bytes, not initialised. Errors: out of memory, after which what there was is as it was.
    memory allocate(index bytes) const;

    friend bool operator==(const device&, const device&) = default;

private:
    friend class memory;
    std::shared_ptr<detail::gpu_context> context_;
};

/// Memory on a device. It is freed in the order of the stream: after what was called before.
class memory {
public:
    memory() = default;
    memory(memory&& other) noexcept : context_(std::move(other.context_)), data_(std::exchange(other.data_, nullptr)) {}
    memory& operator=(memory&& other) noexcept {
        std::swap(context_, other.context_);
        std::swap(data_, other.data_);
        return *this;
    }
    ~memory() {
        if (data_) (void)cudaFreeAsync(data_, context_->stream);
    }

    void* data() const { return data_; }

private:
    friend class device;
    memory(std::shared_ptr<detail::gpu_context> context, void* data) : context_(std::move(context)), data_(data) {}

    std::shared_ptr<detail::gpu_context> context_;
    void* data_ = nullptr;
};

inline memory device::allocate(index bytes) const {
    if (bytes == 0) return {};
    const detail::current_gpu current(gpu());
    void* data = nullptr;
    check(cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(bytes), context_->pool, stream()), [&] {
        return "cudaMallocFromPoolAsync(" + std::to_string(bytes) + " bytes, GPU " + std::to_string(gpu()) + ")";
    });
    return {context_, data};
}

}  // namespace fprnn::cuda
