#pragma once

#include "blocks.hpp"

#include <fprnn/cuda.cuh>

namespace state_tracking {

template <>
struct compiled<fp::cuda::device> {
    static constexpr auto reflections = gpu_reflections;
    static constexpr auto scales = gpu_scales;
};

}  // namespace state_tracking
