#pragma once

#include "blocks.hpp"

#include <fprnn/compiled.hpp>

namespace experiment {

template <>
blocks_on<fp::eigen> make_fp_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::eigen> make_fp_mamba2(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::eigen> make_delta_product(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::eigen> make_fp_rnn(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::eigen> make_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
template <>
blocks_on<fp::eigen> make_lstm(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

}  // namespace experiment
