#pragma once

#include <fprnn/core/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn {

/// A non-owning, contiguous, row-major array. `view<const T>` reads only. Indices are not checked.
template <class T>
class view {
public:
    using value_type = std::remove_const_t<T>;

    view() = default;
    view(T* data, fprnn::shape extents) : data_(data), shape_(extents) {}
    view(const view<value_type>& other) requires std::is_const_v<T> : data_(other.data()), shape_(other.shape()) {}
    view(const view&) = default;
    view& operator=(const view&) = default;

    T* data() const { return data_; }
    const fprnn::shape& shape() const { return shape_; }
    index size() const { return shape_.count(); }
    bool empty() const { return size() == 0; }

    T* begin() const { return data_; }
    T* end() const { return data_ + size(); }
    T& operator[](index i) const { return data_[i]; }
    T& operator()(index i, index j) const { return data_[i * shape_[1] + j]; }
    T& operator()(index i, index j, index k) const { return data_[(i * shape_[1] + j) * shape_[2] + k]; }

private:
    T* data_ = nullptr;
    fprnn::shape shape_{0};
};

namespace detail {
/// `count` elements as an allocation takes them; argument_error when their bytes are more than any machine
/// can address. what(): what they are of.
template <class T, class What>
std::size_t addressable(index count, std::string_view operation, What&& what) {
    constexpr index most = std::numeric_limits<std::ptrdiff_t>::max() / static_cast<index>(sizeof(T));
    require(count <= most, operation, [&] {
        return std::string(what()) + " needs more bytes than 64 bits can address, " + std::to_string(sizeof(T)) +
               " an element";
    });
    return static_cast<std::size_t>(count);
}
}  // namespace detail

/// Starts every array on a cache line, so that rows of tiles never share one by accident.
template <class T>
struct cache_line_allocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{64};

    cache_line_allocator() = default;
    template <class U>
    cache_line_allocator(const cache_line_allocator<U>&) {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(n * sizeof(T), alignment));
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, alignment); }
    friend bool operator==(cache_line_allocator, cache_line_allocator) { return true; }
};

template <class T>
using buffer = std::vector<T, cache_line_allocator<T>>;

/// An owning, contiguous, row-major array, zero when made. Sequences are [B,T,D], channels contiguous.
template <class T>
class tensor {
public:
    using value_type = T;

    tensor() = default;
    tensor(const tensor&) = default;
    tensor& operator=(const tensor&) = default;
    /// What has been moved from is empty, its shape too.
    tensor(tensor&& other) noexcept
        : data_(std::move(other.data_)), shape_(std::exchange(other.shape_, fprnn::shape{0})) {}
    tensor& operator=(tensor&& other) noexcept {
        data_ = std::move(other.data_);
        shape_ = std::exchange(other.shape_, fprnn::shape{0});
        return *this;
    }
    ~tensor() = default;
    explicit tensor(fprnn::shape extents) : data_(elements(extents)), shape_(extents) {}
    tensor(fprnn::shape extents, const std::vector<T>& values) : tensor(extents) {
        require(static_cast<index>(values.size()) == extents.count(), "tensor", [&] {
            return "shape " + extents.to_string() + " needs " + std::to_string(extents.count()) + " values, got " +
                   std::to_string(values.size());
        });
        std::copy(values.begin(), values.end(), data_.begin());
    }

    const fprnn::shape& shape() const { return shape_; }
    index size() const { return static_cast<index>(data_.size()); }
    bool empty() const { return data_.empty(); }
    T* data() { return data_.data(); }
    const T* data() const { return data_.data(); }
    T* begin() { return data(); }
    T* end() { return data() + size(); }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size(); }

    fprnn::view<T> view() { return {data(), shape_}; }
    fprnn::view<const T> view() const { return {data(), shape_}; }
    operator fprnn::view<T>() { return view(); }
    operator fprnn::view<const T>() const { return view(); }

    T& operator[](index i) { return data_[static_cast<std::size_t>(i)]; }
    const T& operator[](index i) const { return data_[static_cast<std::size_t>(i)]; }
    T& operator()(index i, index j) { return view()(i, j); }
    const T& operator()(index i, index j) const { return view()(i, j); }
    T& operator()(index i, index j, index k) { return view()(i, j, k); }
    const T& operator()(index i, index j, index k) const { return view()(i, j, k); }

    void fill(T value) { std::fill(data_.begin(), data_.end(), value); }
    /// Becomes a tensor of zeros of this shape, in the memory that it has where that suffices.
    void assign(fprnn::shape extents) {
        data_.assign(elements(extents), T(0));
        shape_ = extents;
    }

private:
    static std::size_t elements(const fprnn::shape& extents) {
        return detail::addressable<T>(extents.count(), "tensor", [&] { return extents.to_string(); });
    }

    buffer<T> data_;  // first: an assignment for which memory does not suffice leaves the shape as it is
    fprnn::shape shape_{0};
};

}  // namespace fprnn
