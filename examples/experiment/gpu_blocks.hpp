#pragma once

#include "blocks.hpp"

#include <fprnn/cuda.cuh>

namespace experiment {

template <>
blocks_on<fp::cuda::device> make_fp_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_fp_mamba2(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_delta_product(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_fp_rnn(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_lstm(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

/// FP-Mamba and FP-RNN with R reflections of either scale. gpu.cmake makes a source file of gpu_reflections.cu.in for each R,
/// so that they compile side by side: nvcc takes most of a minute for a block.
template <int R>
blocks_on<fp::cuda::device> make_with_reflections(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

}  // namespace experiment
