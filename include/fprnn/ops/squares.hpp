#pragma once

#include <fprnn/backend/reference.hpp>

#include <limits>

namespace fprnn::kernel {

/// Sums of squares of a row, and what a norm does where they leave the range of T: it takes `scale` times the
/// row instead, a power of two, so that digits do not change. Squares that underflow do not count beside ε =
/// 1e-5. Adjoints lose what a slope 1/σ below the smallest normal number sends back, and the plain sum raises
/// the overflow flag.
template <class T>
struct squares {
    static constexpr T scale = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1p-80 : 0x1p-600);

    static constexpr T least = std::numeric_limits<T>::min();  ///< in place of ε, where the row may be constant
    static constexpr T most = std::numeric_limits<T>::max() / T(256);  ///< 1/most is a normal number

    FPRNN_BOTH static bool in_range(T sum) { return sum <= most; }

    /// Σ x², where x(lane) is a row.
    template <class Team, class X>
    FPRNN_BOTH static T sum(index D, const X& x) {
        return Team::template sum<1>(D, [&](auto lane) {
            const auto v = x(lane);
            return small_array{v * v};
        })[0];
    }
};

}  // namespace fprnn::kernel
