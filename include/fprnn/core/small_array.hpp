#pragma once

#include <fprnn/core/host_device.hpp>

#include <cstddef>

namespace fprnn {

/// N values side by side. Code that is FPRNN_BOTH may call no member of std::array.
template <class T, std::size_t N>
struct small_array {
    T values[N];

    FPRNN_BOTH constexpr T& operator[](std::size_t i) { return values[i]; }
    FPRNN_BOTH constexpr const T& operator[](std::size_t i) const { return values[i]; }
};

template <class T, class... Rest>
small_array(T, Rest...) -> small_array<T, 1 + sizeof...(Rest)>;

}  // namespace fprnn
