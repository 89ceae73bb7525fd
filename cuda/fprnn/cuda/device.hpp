#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/tensor.hpp>
#include <fprnn/cuda/gpu_context.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace fprnn {
template <class T>
struct layer_parameters;
}

namespace fprnn::cuda {

class device;
class allocation;
template <class T>
class tensor;
template <class T>
struct layer_parameters;

namespace detail {
template <class T>
class numbers;
template <class T>
class row_sums;
template <class T>
struct row_team;
class blas;
class capture;
class executable_graph;
class graphs_of_calls;
class known_graphs;
class recorder;
struct device_planning;
struct device_layer_calls;

inline void copy_now(const device&, void* to, const void* from, index bytes, const fprnn::shape&);

/// What numbers are computed in that are stored as X.
template <class X>
struct computed_in {
    using type = X;
};

/// What a copy does not have.
template <class T>
struct not_copied {
    mutable T value{};

    not_copied() = default;
    not_copied(const not_copied&) {}
    not_copied& operator=(const not_copied&) { return *this; }
    ~not_copied() = default;
    friend bool operator==(const not_copied&, const not_copied&) { return true; }
};
}  // namespace detail

/// A GPU with a stream and a pool of memory of its own. What is called on it happens in that order, some time
/// later. Copies are the same device; within by_rows, what is called on the object itself is started later
/// than what is called on its copies, and by one thread. Memory that is freed stays in the pool for later
/// calls; it goes back to the GPU with the last copy and the last tensor, or when `trim` is called.
/// One thread at a time uses a device, its copies and its tensors: several threads have one each, of the same
/// GPU if they like. Errors: no GPU of that number; one older than compute capability 7.0, whose threads
/// cannot wait for each other, or without memory pools; what CUDA says.
class device : public without_packing<device> {
public:
    explicit device(int gpu = 0, const device_options& options = {})
        : context_(std::make_shared<detail::gpu_context>()) {
        context_->options = options;
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
        context_->threads = context_->multiprocessors * detail::attribute(cudaDevAttrMaxThreadsPerMultiProcessor, gpu);
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
    /// That it has room for at a time.
    int resident_threads() const { return context_->threads; }
    cudaStream_t stream() const { return context_->stream; }

    /// Returns when everything that was called has happened. Errors: also those of kernels that ran since the
    /// last time.
    void synchronize() const {
        look();
        check(cudaStreamSynchronize(stream()),
              [&] { return "cudaStreamSynchronize(GPU " + std::to_string(gpu()) + ")"; });
    }
    /// Gives memory that nothing lies in back to the GPU.
    void trim() const {
        if (context_->graphs) context_->graphs->forget();
        synchronize();
        const auto on_gpu = [this](const char* call) { return call + ("(GPU " + std::to_string(gpu()) + ")"); };
        check(cudaMemPoolTrimTo(context_->pool, 0), [&] { return on_gpu("cudaMemPoolTrimTo"); });
        check(cudaDeviceGraphMemTrim(gpu()), [&] { return on_gpu("cudaDeviceGraphMemTrim"); });
    }
    /// Bytes, not initialised. Errors: out of memory, after which what there was is as it was.
    allocation allocate(index bytes) const;
    /// They become zero.
    void clear(void* data, index bytes) const {
        flush();
        clear_now(data, bytes);
    }

    /// A copy on this device, made when this returns. Errors: out of memory.
    template <class T>
    tensor<T> copy(const fprnn::tensor<T>& x) const;
    template <class T>
    layer_parameters<T> copy(const fprnn::layer_parameters<T>& theta) const;

    friend bool operator==(const device&, const device&) = default;

    /// The GPU's function that `key` stands for, found once.
    template <class Find>
    detail::step function(const void* key, const Find& find) const {
        const std::lock_guard lock(context_->functions_mutex);
        const auto known = context_->functions.find(key);
        if (known != context_->functions.end()) return known->second;
        finish_graph();
        const detail::current_gpu current(gpu());
        return context_->functions[key] = find();
    }

    // What layers ask of a backend (backend_for), defined in fprnn/cuda/backend.hpp. A device has no tiles:
    // it takes all sequences of a batch at a time.
    template <class T>
    using team = typename detail::row_team<T>::type;
    template <class T>
    using array = tensor<T>;
    template <class X>
    using computed_in = typename detail::computed_in<X>::type;
    template <class T>
    using memory = detail::numbers<T>;
    template <class T>
    using row_sums = detail::row_sums<T>;
    using planning = detail::device_planning;
    using layer_calls = detail::device_layer_calls;  // fprnn/cuda/layer.hpp

    /// argument_error unless x, a tensor or its view, is on this device.
    template <class Array>
    void require_here(const char* operation, const char* name, const Array& x) const;
    static constexpr int threads() { return 1; }
    template <class Body>
    void for_each(index n, Body&& body) const;
    index workers(index n) const;
    template <class T, class Body>
    [[gnu::always_inline]] void rows(index n, const Body& body) const;
    template <class T, class Body>
    [[gnu::always_inline]] void row(const Body& body) const;
    template <class Calls>
    void pass(index tokens, std::span<const index> sizes, const Calls& calls) const;
    template <class Calls>
    void by_rows(index n, const Calls& calls) const;
    template <class T, class Calls>
    [[gnu::always_inline]] void repeat(index n, const T* running, const Calls& calls) const;
    template <class T, class Calls>
    [[gnu::always_inline]] void repeat_by_rows(index n, const T* running, const Calls& calls) const;
    template <class Calls>
    void at_once(const Calls& calls) const;
    template <class T>
    [[gnu::always_inline]] void copy(index n, const std::type_identity_t<T>* from, T* to) const;
    template <class T>
    [[gnu::always_inline]] void fill(index n, T* to, std::type_identity_t<T> value) const;
    template <class T>
    void put(index n, const std::type_identity_t<T>* from, T* to) const;
    template <class T>
    fprnn::tensor<T> seen(index n, const T* from) const;
    template <class T>
    bool any(index n, const T* flags) const;
    template <class T>
    void assign(tensor<T>& x, const fprnn::shape& extents) const;

    template <class T>
    void multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T> = {}) const;
    template <class T>
    void multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite, view<T> = {}) const;
    template <class T>
    void multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T> = {}) const;

private:
    friend class allocation;
    friend class detail::blas;
    friend class detail::capture;
    friend class detail::executable_graph;
    friend class detail::graphs_of_calls;
    friend class detail::known_graphs;
    friend void detail::copy_now(const device&, void*, const void*, index, const fprnn::shape&);
    template <class T>
    friend class detail::row_sums;
    friend class detail::recorder;

    /// What writes calls down, null when they happen at once; the second, also when they are not of so many
    /// rows.
    detail::recorder* recording() const;
    detail::recorder* recording(index n) const;
    void flush() const {
        if (pending_.value) pending_.value->flush();
    }
    void* take(index bytes) const;
    /// What has been called of a pass happens, because the host does something else now; because it waits for
    /// it.
    void finish_graph() const {
        if (context_->pass) context_->pass->finish();
    }
    void look() const {
        flush();
        if (context_->pass) context_->pass->look();
    }
    /// Gives memory back that nothing lies in, where that can be done. Says whether it has been.
    bool make_room() const {
        if (context_->is_captured) return false;
        (void)cudaGetLastError();
        return cudaStreamSynchronize(stream()) == cudaSuccess && cudaMemPoolTrimTo(context_->pool, 0) == cudaSuccess &&
               cudaDeviceGraphMemTrim(gpu()) == cudaSuccess;
    }
    void clear_now(void* data, index bytes) const {
        if (bytes == 0) return;
        const detail::current_gpu current(gpu());
        check(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), stream()),
              [&] { return "cudaMemsetAsync(" + std::to_string(bytes) + " bytes)"; });
    }

    std::shared_ptr<detail::gpu_context> context_;
    detail::not_copied<detail::pending*> pending_;  ///< within by_rows, on this object
};

/// Memory on a device. It is freed in the order of the stream: after what was called before.
class allocation {
public:
    allocation() = default;
    allocation(allocation&& other) noexcept
        : context_(std::move(other.context_)), data_(std::exchange(other.data_, nullptr)) {}
    allocation& operator=(allocation&& other) noexcept {
        allocation mine(std::move(other));
        std::swap(context_, mine.context_);
        std::swap(data_, mine.data_);
        return *this;
    }
    ~allocation() {
        if (data_ && !(context_->pass && context_->pass->frees(data_))) (void)cudaFreeAsync(data_, context_->stream);
    }

    void* data() const { return data_; }

private:
    friend class device;
    allocation(std::shared_ptr<detail::gpu_context> context, void* data) : context_(std::move(context)), data_(data) {}

    std::shared_ptr<detail::gpu_context> context_;
    void* data_ = nullptr;
};

inline allocation device::allocate(index bytes) const {
    if (bytes == 0) return {};
    return {context_, take(bytes)};
}
inline void* device::take(index bytes) const {
    finish_graph();
    const detail::current_gpu current(gpu());
    void* data = nullptr;
    const auto allocate = [&] {
        return cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(bytes), context_->pool, stream());
    };
    cudaError_t code = allocate();
    if (code == cudaErrorMemoryAllocation) {
        if (context_->graphs) context_->graphs->forget();
        if (make_room()) code = allocate();
    }
    check(code, [&] {
        return "cudaMallocFromPoolAsync(" + std::to_string(bytes) + " bytes, GPU " + std::to_string(gpu()) + ")";
    });
    return data;
}

}  // namespace fprnn::cuda
