#pragma once

#include "gpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

template <int R>
experiment::blocks_on<fprnn::cuda::device> experiment::make_with_reflections(const architecture& a,
                                                                             fp::chunked schedule,
                                                                             fp::adjoint adjoint) {
    const auto of_scale = [&](auto paper, auto authors) {
        return a.reflection_scale == 1 ? make<fp::cuda::device>(paper, a, schedule, adjoint)
                                       : make<fp::cuda::device>(authors, a, schedule, adjoint);
    };
    return a.kind == architecture::block::fp_mamba
               ? of_scale(fp::models::fp_mamba<R, 1>(), fp::models::fp_mamba<R, 2>())
               : of_scale(fp::models::fp_rnn<R, 1>(), fp::models::fp_rnn<R, 2>());
}
