#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/tape/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace fprnn {

/// The name of the first parameter, in the tree's order, that holds a NaN or an Inf; none when all numbers
/// are finite.
template <class T>
std::optional<std::string> first_nonfinite(const parameter_tree<T>& tree) {
    for (const auto& e : tree.entries()) {
        const T* values = tree.data() + e.offset;
        if (!std::all_of(values, values + e.shape.count(), [](T x) { return math::is_finite(x); })) return e.name;
    }
    return std::nullopt;
}

/// The parameter with the largest number in magnitude, and that number: where to look when a loss is not
/// finite and every parameter still is. An empty tree gives "" and 0; NaN counts as largest.
template <class T>
std::pair<std::string, double> largest_parameter(const parameter_tree<T>& tree) {
    std::pair<std::string, double> largest{"", 0.0};
    for (const auto& e : tree.entries())
        for (index i = 0; i < e.shape.count(); ++i) {
            const auto x = static_cast<double>(tree.data()[e.offset + i]);
            if (math::is_nan(x)) return {e.name, x};
            if (largest.first.empty() || std::abs(x) > std::abs(largest.second)) largest = {e.name, x};
        }
    return largest;
}

}  // namespace fprnn
