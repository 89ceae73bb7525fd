#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include "random.hpp"

#include <doctest/doctest.h>

#include <fprnn/cuda/device.hpp>

#include <cstdio>

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
