#pragma once

#include "distance.hpp"
#include "random.hpp"

#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <type_traits>

/// Layers whose sequences are stored as bf16 against layers of float on the CPU, wherever the kernels of the device run.
namespace bf16_layers {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// Half a unit of bf16's last place, at the largest number.
inline constexpr double rounding = 1.0 / 256;

template <class Expression>
void check_equivalent(Expression expression, const fprnn::chunked& schedule, const fprnn::adjoint& method,
                      const shape& s) {
    CAPTURE(schedule.length);
    CAPTURE(method.index());
    const fprnn::layer layer(expression, schedule, method);
    const fprnn::dims size{.d_in = s[2], .d_inner = 8, .d_state = 4};
    const auto theta = fprnn::init<float>(layer, size, fprnn::seed{4});
    const auto x = cuda::round_to_bf16(gpu::random<float>(s, 1)), y_bar = cuda::round_to_bf16(gpu::random<float>(s, 3));
    const auto wide_x = cuda::to_float(x), wide_y_bar = cuda::to_float(y_bar);

    fprnn::default_backend cpu;
    typename decltype(layer)::template record<float> kept;
    const auto expected = layer.template run<float>(size, theta.data(), wide_x.view(), {}, cpu, &kept);
    tensor<float> x_bar(s), theta_bar({theta.size()});
    layer.template back<float>(kept, wide_x.view(), wide_y_bar.view(), x_bar.view(), theta_bar.data(), cpu);
    const auto then = layer(theta, wide_x, expected.carry);

    cuda::device gpu;
    const auto parameters = gpu.copy(theta);
    const auto gpu_x = gpu.copy(x), gpu_y_bar = gpu.copy(y_bar);
    const auto sol = layer(parameters, gpu_x, gpu);
    const auto later = layer(parameters, gpu_x, sol.carry, gpu);
    static_assert(std::is_same_v<decltype(sol.value), cuda::tensor<cuda::bf16>>);
    static_assert(std::is_same_v<decltype(sol.carry), cuda::tensor<float>>);
    auto gpu_x_bar = gpu.copy(tensor<cuda::bf16>(s));
    auto gpu_theta_bar = gpu.copy(tensor<float>({theta.size()}));
    typename decltype(layer)::template record<float, cuda::device> gpu_kept;
    (void)layer.template run<float, cuda::device, cuda::bf16>(size, parameters.data(), gpu_x.view(), {}, gpu,
                                                              &gpu_kept);
    layer.template back<float, cuda::device, cuda::bf16>(gpu_kept, gpu_x.view(), gpu_y_bar.view(), gpu_x_bar.view(),
                                                         gpu_theta_bar.data(), gpu);

    const auto here = [](const cuda::tensor<cuda::bf16>& y) { return cuda::to_float(cuda::copy_to_host(y)); };
    CHECK(gpu::distance(here(sol.value), expected.value) <= rounding);
    CHECK(gpu::distance(here(later.value), then.value) <= rounding);
    CHECK(gpu::distance(here(gpu_x_bar), x_bar) <= rounding);
    // Nothing of these is rounded to bf16.
    CHECK(gpu::distance(cuda::copy_to_host(sol.carry), expected.carry) <= 1e-4);
    CHECK(gpu::distance(cuda::copy_to_host(gpu_theta_bar), theta_bar) <= 1e-4);
    CHECK(sol.all_converged() == expected.all_converged());
}

inline void check_all() {
    for (const index C : {index(1), index(3), fprnn::whole_sequence})
        for (const fprnn::adjoint& method : {fprnn::adjoint(fprnn::implicit{.tolerance = 1e-6}),
                                             fprnn::adjoint(fprnn::one_step{}), fprnn::adjoint(fprnn::unrolled{})}) {
            const fprnn::chunked schedule{.length = C, .tolerance = 1e-5, .ell_max = 200};
            check_equivalent(fprnn::models::fp_rnn<2>(), schedule, method, {3, 10, 4});
            check_equivalent(fprnn::models::fp_mamba<1>(), schedule, method, {3, 10, 4});
        }
}

}  // namespace bf16_layers
