#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include "random.hpp"

#include <doctest/doctest.h>

#include <fprnn/cuda/device.hpp>

#include <cstdio>
#include <exception>

/// Runs the tests on the first GPU. Without one, or without its driver, it says so and ends with the code
/// that ctest shows as skipped; a GPU that does not work is a failure.
int main(int argc, char** argv) {
    try {
        const fprnn::cuda::device gpu;
    } catch (const fprnn::cuda::error& e) {
        const bool none = e.code() == cudaErrorNoDevice || e.code() == cudaErrorInsufficientDriver;
        std::printf("%s: %s\n", none ? "skipped" : "failed", e.what());
        return none ? 77 : 1;
    } catch (const std::exception& e) {
        std::printf("failed: %s\n", e.what());
        return 1;
    }
    return doctest::Context(argc, argv).run();
}
