#pragma once

#include <fprnn/core/tensor.hpp>
#include <fprnn/cuda/device.hpp>

#include <cuda_bf16.h>

#include <algorithm>

namespace fprnn::cuda {

/// How sequences may be stored whose numbers are float: 8 bits of precision, the range of float.
using bf16 = __nv_bfloat16;

namespace detail {
template <>
struct computed_in<bf16> {
    using type = float;
};

template <class To, class From>
fprnn::tensor<To> converted(const fprnn::tensor<From>& x) {
    fprnn::tensor<To> y(x.shape());
    std::transform(x.begin(), x.end(), y.begin(), [](From number) { return static_cast<To>(number); });
    return y;
}
}  // namespace detail

/// Every number rounded to the nearest, on the host: gpu.copy(round_to_bf16(x)).
inline fprnn::tensor<bf16> round_to_bf16(const fprnn::tensor<float>& x) { return detail::converted<bf16>(x); }
inline fprnn::tensor<float> to_float(const fprnn::tensor<bf16>& x) { return detail::converted<float>(x); }

}  // namespace fprnn::cuda
