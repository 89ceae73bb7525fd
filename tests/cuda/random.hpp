#pragma once

#include <fprnn/core/random.hpp>
#include <fprnn/core/tensor.hpp>

#include <complex>

namespace gpu {

/// Normal numbers, as checks::random has them for tests that nvcc does not compile; of complex ones `mean` is
/// real.
template <class T>
fprnn::tensor<T> random(const fprnn::shape& s, std::uint64_t stream, double deviation = 1, double mean = 0) {
    const fprnn::random_stream numbers({7}, stream);
    fprnn::tensor<T> x(s);
    for (fprnn::index i = 0; i < x.size(); ++i)
        if constexpr (requires { x[i].imag(); })
            x[i] = static_cast<T>(
                std::complex(mean + deviation * numbers.normal(2 * i), deviation * numbers.normal(2 * i + 1)));
        else
            x[i] = static_cast<T>(mean + deviation * numbers.normal(i));
    return x;
}

}  // namespace gpu
