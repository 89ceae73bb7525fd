#pragma once

#include "blocks.hpp"

#include <fprnn/cuda.cuh>

namespace state_tracking {

template <>
struct compiled<fp::cuda::device> {
    static constexpr auto reflections = gpu_reflections;
    static constexpr auto scales = gpu_scales;
};

template <>
blocks_on<fp::cuda::device> make_fp_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_fp_rnn(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::cuda::device> make_lstm(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

}  // namespace state_tracking
