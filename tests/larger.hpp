#pragma once

#include <cmath>

namespace fprnn::testing {

/// The larger one; NaN when one of them is. std::max forgets a NaN, and so does `if (!(b <= a)) a = b` when a
/// number follows.
inline double larger(double a, double b) { return a < b || std::isnan(b) ? b : a; }

}  // namespace fprnn::testing
