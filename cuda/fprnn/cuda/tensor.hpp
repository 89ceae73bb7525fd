#pragma once

#include <fprnn/core/tensor.hpp>
#include <fprnn/cuda/device.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace fprnn::cuda {

/// A tensor as operations take it, or none: its numbers and where they lie, while it lives. With const T it
/// is only read.
template <class T>
class tensor_view : public fprnn::view<T> {
    using owner = std::conditional_t<std::is_const_v<T>, const tensor<std::remove_const_t<T>>, tensor<T>>;

public:
    tensor_view() = default;
    tensor_view(owner& x) : fprnn::view<T>(x.data(), x.shape()), device_(&x.where()) {}

    const std::optional<device>& where() const {
        static const std::optional<device> nowhere;
        return device_ ? *device_ : nowhere;
    }

private:
    const std::optional<device>* device_ = nullptr;
};

/// An owning, contiguous, row-major array on a device, which an empty one made by default has not.
template <class T>
class tensor {
    static_assert(std::is_trivially_copyable_v<T>, "bytes are what is copied to a GPU and back");

public:
    using value_type = T;

    tensor() = default;
    /// What has been moved from is empty, its shape too, and on no device.
    tensor(tensor&& other) noexcept
        : device_(std::exchange(other.device_, std::nullopt)),
          shape_(std::exchange(other.shape_, fprnn::shape{0})),
          memory_(std::move(other.memory_)) {}
    tensor& operator=(tensor&& other) noexcept {
        device_ = std::exchange(other.device_, std::nullopt);
        shape_ = std::exchange(other.shape_, fprnn::shape{0});
        memory_ = std::move(other.memory_);
        return *this;
    }
    ~tensor() = default;
    /// Not initialised. Errors: out of memory; sizes that do not fit 64 bits.
    tensor(const device& where, fprnn::shape extents)
        : device_(where), shape_(extents), memory_(where.allocate(bytes())) {}

    const fprnn::shape& shape() const { return shape_; }
    index size() const { return shape_.count(); }
    bool empty() const { return size() == 0; }
    index bytes() const { return checked_product(size(), sizeof(T), "tensor"); }
    /// On the device. A const tensor's numbers are only read.
    T* data() { return static_cast<T*>(memory_.data()); }
    const T* data() const { return static_cast<const T*>(memory_.data()); }
    /// To be handed to what works on the device: the host cannot follow it.
    fprnn::view<T> view() { return {data(), shape_}; }
    fprnn::view<const T> view() const { return {data(), shape_}; }
    /// Where it lies.
    const std::optional<device>& where() const { return device_; }

    /// Every byte becomes zero.
    void clear() {
        if (!empty()) device_->clear(data(), bytes());
    }

private:
    std::optional<device> device_;
    fprnn::shape shape_{0};
    allocation memory_;
};

namespace detail {

/// "u is on GPU 1", where it should be on another device.
template <class Array>
std::string place_of(const char* name, const Array& x, const std::optional<device>& other) {
    const std::string is = std::string(name) + " is on ";
    if (!x.where()) return is + "no GPU";
    const bool same_gpu = other && other->gpu() == x.where()->gpu();
    return is + "GPU " + std::to_string(x.where()->gpu()) + (same_gpu ? ", of another device object," : "");
}

inline void copy_now(const device& d, void* to, const void* from, index bytes, const fprnn::shape& s) {
    if (bytes == 0) return;
    d.look();
    const current_gpu current(d.gpu());
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, d.stream()),
          [&] { return "cudaMemcpyAsync(" + s.to_string() + ", " + std::to_string(bytes) + " bytes)"; });
    d.synchronize();
}

}  // namespace detail

/// A copy on the device, and one back on the host. Both return when the copy is made. Errors: out of memory.
template <class T>
tensor<std::remove_const_t<T>> copy(const device& to, fprnn::view<T> x) {
    tensor<std::remove_const_t<T>> y(to, x.shape());
    detail::copy_now(to, y.data(), x.data(), y.bytes(), y.shape());
    return y;
}
template <class T>
tensor<T> copy(const device& to, const fprnn::tensor<T>& x) {
    return copy(to, x.view());
}
template <class T>
fprnn::tensor<T> copy_to_host(const tensor<T>& x) {
    fprnn::tensor<T> y(x.shape());
    if (!x.empty()) detail::copy_now(*x.where(), y.data(), x.data(), x.bytes(), x.shape());
    return y;
}

template <class Array>
void device::require_here(const char* operation, const char* name, const Array& x) const {
    require(x.where() == *this, operation,
            [&] { return detail::place_of(name, x, *this) + " but the call names GPU " + std::to_string(gpu()); });
}

template <class T>
tensor<T> device::copy(const fprnn::tensor<T>& x) const {
    return cuda::copy(*this, x);
}

}  // namespace fprnn::cuda
