#pragma once

#include <fprnn/core/tensor.hpp>

#include <algorithm>
#include <cmath>

namespace gpu {

/// The largest difference between two tensors of one shape, relative to the largest number of `b`; NaN when
/// one is.
template <class T>
double distance(const fprnn::tensor<T>& a, const fprnn::tensor<T>& b) {
    if (a.shape() != b.shape()) return NAN;
    double largest = 0, difference = 0;
    for (fprnn::index i = 0; i < a.size(); ++i) {
        const double d = a[i] == b[i] ? 0.0 : std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        if (std::isnan(d)) return d;
        difference = std::max(difference, d);
        largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    }
    return difference == 0 ? 0 : difference / largest;
}

}  // namespace gpu
