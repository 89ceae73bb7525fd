#pragma once

#include "blocks.hpp"

#include <fprnn/cuda.cuh>

namespace experiment {

/// FP-Mamba and FP-RNN with R reflections of either scale. gpu.cmake makes a source file of
/// gpu_reflections.cu.in for each R, so that they compile side by side: nvcc takes most of a minute for a
/// block.
template <int R>
blocks_on<fp::cuda::device> make_with_reflections(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

}  // namespace experiment
