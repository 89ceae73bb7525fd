#pragma once

#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

/// Results of a GPU against the host's, before they are timed.
namespace gpu_bench {

using fprnn::index;
using fprnn::shape;
namespace cuda = fprnn::cuda;

inline constexpr index all_tokens = std::numeric_limits<index>::max();

namespace detail {

template <class Read>
fprnn::tensor<float> ends(const shape& s, index tokens, const Read& read) {
    const bool sequences = s.rank() == 3;
    const index part = sequences ? std::min(tokens, s[1]) : 1, channels = s[s.rank() - 1];
    fprnn::tensor<float> x(sequences ? shape{2, part, channels} : shape{2, channels});
    const index n = part * channels, last = s.count() - s.count() / s[0];
    for (const index k : {0, 1}) read(k * last, n, x.data() + k * n);
    return x;
}

}  // namespace detail

/// The first and the last row, or of the first and the last sequence the first tokens, all unless told: [2,D]
/// of x [B,D], [2,T,D] of [B,T,D].
template <class T>
fprnn::tensor<float> ends(const fprnn::tensor<T>& x, index tokens = all_tokens) {
    return detail::ends(x.shape(), tokens, [&](index first, index n, float* to) {
        for (index i = 0; i < n; ++i) to[i] = static_cast<float>(x[first + i]);
    });
}
template <class T>
fprnn::tensor<float> ends(const cuda::tensor<T>& x, index tokens = all_tokens) {
    return detail::ends(x.shape(), tokens, [&](index first, index n, float* to) {
        fprnn::tensor<T> here({n});
        cuda::check(cudaMemcpyAsync(here.data(), x.data() + first, static_cast<std::size_t>(n) * sizeof(T),
                                    cudaMemcpyDeviceToHost, x.where()->stream()),
                    "cudaMemcpyAsync");
        x.where()->synchronize();
        for (index i = 0; i < n; ++i) to[i] = static_cast<float>(here[i]);
    });
}

/// Prints the largest difference over the largest number of what is expected; where results are stored as
/// Stored = bf16, of what rounding to that cannot explain. Errors: a difference above `most`, NaN, other
/// shapes.
template <class Stored = float>
void near(const std::string& what, const fprnn::tensor<float>& got, const fprnn::tensor<float>& expected, double most) {
    constexpr double rounding = std::is_same_v<Stored, cuda::bf16> ? 1.0 / 256 : 0;
    double largest = 0, difference = got.shape() == expected.shape() ? 0 : std::numeric_limits<double>::quiet_NaN();
    for (index i = 0; i < expected.size() && !std::isnan(difference); ++i) {
        const double right = expected[i], off = std::abs(double(got[i]) - right) - rounding * std::abs(right);
        difference = std::isnan(off) ? off : std::max(difference, off);
        largest = std::max(largest, std::abs(right));
    }
    if (difference > 0) difference /= largest;
    std::printf("%s: %.1e from the host's\n", what.c_str(), difference);
    std::fflush(stdout);
    if (!(difference <= most)) throw std::runtime_error(what + ": wrong result");
}

}  // namespace gpu_bench
