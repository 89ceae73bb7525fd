#pragma once

#include <fprnn/cuda/tensor.hpp>
#include <fprnn/tape/parameters.hpp>

#include <string_view>
#include <utility>

namespace fprnn::cuda {

/// A layer's parameters on a device.
template <class T>
struct layer_parameters {
    using value_type = T;

    dims widths;
    fprnn::layer_parameters<T> layout;  ///< names and shapes; its numbers are the host's
    tensor<T> values;

    const T* data() const { return values.data(); }
};

template <class T>
layer_parameters<T> device::copy(const fprnn::layer_parameters<T>& theta) const {
    return {theta.widths, theta, cuda::copy(*this, view<const T>{theta.data(), {theta.size()}})};
}

}  // namespace fprnn::cuda
