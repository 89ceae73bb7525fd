#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <fprnn/core/random.hpp>
#include <fprnn/core/tensor.hpp>
#include <fprnn/cuda/device.hpp>

#include <cstdio>

namespace gpu {

/// Normal numbers, as checks::random has them for tests that nvcc does not compile.
template <class T>
fprnn::tensor<T> random(const fprnn::shape& s, std::uint64_t stream, double deviation = 1, double mean = 0) {
    const fprnn::random_stream numbers({7}, stream);
    fprnn::tensor<T> x(s);
    for (fprnn::index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(mean + deviation * numbers.normal(i));
    return x;
}

}  // namespace gpu

/// Runs the tests on the first GPU. Without one it says so and ends with the code that ctest shows as skipped.
int main(int argc, char** argv) {
    try {
        const fprnn::cuda::device gpu;
    } catch (const std::exception& e) {
        std::printf("skipped: %s\n", e.what());
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
