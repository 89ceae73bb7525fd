#pragma once

#include "world.hpp"

#include <larger.hpp>

#include <fprnn/tape/tape.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace fprnn::testing {

/// ⟨y, with⟩ as a variable.
template <class T>
variable product(tape<T>& t, variable y, const tensor<T>& with) {
    tensor<T> sum({1});
    for (index i = 0; i < with.size(); ++i) sum[0] += t.value(y)[i] * with[i];
    return t.record(std::move(sum), [y, with](tape<T>& tp, variable self) {
        const T g = tp.bar(self)[0];
        auto& bar = tp.bar(y);
        for (index i = 0; i < with.size(); ++i) bar[i] += g * with[i];
    });
}
inline tensor<double> tokens_of(const tensor<double>& x, index first, index last) {
    const index B = x.shape()[0], D = x.shape()[2];
    tensor<double> piece({B, last - first, D});
    for (index b = 0; b < B; ++b)
        std::copy_n(&x(b, 0, 0) + first * D, (last - first) * D, piece.data() + b * (last - first) * D);
    return piece;
}
inline double largest_difference(std::span<const double> a, std::span<const double> b) {
    REQUIRE(a.size() == b.size());
    double most = 0, largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        most = larger(most, std::abs(a[i] - b[i]));
        largest = larger(largest, std::abs(b[i]));
    }
    return largest > 0 ? most / largest : most;
}

/// Tokens of a sequence that is cut into pieces, 3 on each rank and two more on the first.
struct cut {
    index tokens = 3 * all_ranks().size() + 2;
    index first = all_ranks().rank() == 0 ? 0 : 3 * all_ranks().rank() + 2;
    index last = 3 * (all_ranks().rank() + 1) + 2;
};
inline std::span<const double> all_of(const auto& numbers) {
    return std::span<const double>(numbers.begin(), numbers.end());
}

}  // namespace fprnn::testing
