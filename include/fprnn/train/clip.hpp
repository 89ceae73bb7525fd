#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/tape/parameters.hpp>

#include <cmath>
#include <string>

namespace fprnn {

/// ‖tree‖₂ over all its parameters, summed in double from the first number to the last. It is NaN or Inf when
/// a number is, and Inf when a square leaves the range of double.
template <class T>
double global_norm(const parameter_tree<T>& tree) {
    double sum = 0;
    for (const T x : tree) sum += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(sum);
}

/// Scales the tree in place by max_norm/‖tree‖₂ when its norm is larger, and returns the norm it had before.
/// A tree whose norm is not finite is left as it is: scaling would only hide where the NaN came from.
/// argument_error unless max_norm is positive; infinity only measures. Source: Pascanu et al. 2013.
template <class T>
double clip_by_global_norm(parameter_tree<T>& tree, double max_norm) {
    require(max_norm > 0, "clip_by_global_norm",
            [&] { return "max_norm must be positive, got " + detail::number_text(max_norm); });
    const double norm = global_norm(tree);
    if (norm > max_norm && math::is_finite(norm)) {
        const double scale = max_norm / norm;
        for (T& x : tree) x = static_cast<T>(scale * static_cast<double>(x));
    }
    return norm;
}

}  // namespace fprnn
