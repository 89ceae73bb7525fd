#pragma once

#include <fprnn/core/host_device.hpp>

namespace fprnn::cuda {

/// std::complex, whose functions are the host's alone, where kernels compute: the same two numbers in memory.
/// A product is the textbook's, which makes NaN of what is infinite.
template <class T>
struct alignas(2 * sizeof(T)) complex {
    T re, im;

    FPRNN_BOTH constexpr complex(T real = 0, T imaginary = 0) : re(real), im(imaginary) {}

    FPRNN_BOTH friend constexpr complex operator+(complex x, complex y) { return {x.re + y.re, x.im + y.im}; }
    FPRNN_BOTH friend constexpr complex operator*(complex x, complex y) {
        return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
    }
    FPRNN_BOTH friend constexpr complex conjugate(complex x) { return {x.re, -x.im}; }
};

}  // namespace fprnn::cuda
