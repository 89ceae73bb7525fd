#pragma once

#include "distance.hpp"
#include "random.hpp"

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

/// Layers on cuda::device against layers on the CPU, wherever the kernels of the device run.
namespace layers {

using fprnn::adjoint;
using fprnn::chunked;
using fprnn::dims;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// What a layer and its adjoint give.
struct outcome {
    fprnn::convergence forward, back;
    tensor<double> value, carry, x_bar, theta_bar;
};

inline tensor<double> there(const fprnn::default_backend&, const tensor<double>& x) { return x; }
inline cuda::tensor<double> there(const cuda::device& gpu, const tensor<double>& x) { return gpu.copy(x); }
inline tensor<double> here(const tensor<double>& x) { return x; }
inline tensor<double> here(const cuda::tensor<double>& x) { return cuda::copy_to_host(x); }

template <class Layer, class Backend>
outcome differentiate(const Layer& layer, const fprnn::layer_parameters<double>& theta, const tensor<double>& x,
                      const tensor<double>& carry, const tensor<double>& y_bar, Backend backend) {
    const auto parameters = there(backend, tensor<double>({theta.size()}, {theta.begin(), theta.end()}));
    const auto input = there(backend, x), start = there(backend, carry), bar = there(backend, y_bar);
    auto x_bar = there(backend, tensor<double>(x.shape()));
    auto theta_bar = there(backend, tensor<double>({theta.size()}));
    typename Layer::template record<double, Backend> kept;
    const auto solution =
        layer.template run<double>(theta.widths, parameters.data(), input.view(), start.view(), backend, &kept);
    layer.template back<double>(kept, input.view(), bar.view(), x_bar.view(), theta_bar.data(), backend);
    return {solution,       *kept.adjoint_convergence, here(solution.value), here(solution.carry), here(x_bar),
            here(theta_bar)};
}

/// The largest difference, relative to the largest number. Kernels that run on the host differ by the order of sums: 5.1e-15
/// measured. On a GPU, where a threshold may be reached an iteration sooner, what is asked of backends.
#ifdef __CUDACC__
inline constexpr double most = 1e-10;
inline constexpr int most_iterations = 1;
#else
inline constexpr double most = 1e-14;
inline constexpr int most_iterations = 0;
#endif

inline bool nearly(const std::vector<int>& a, const std::vector<int>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](int x, int y) { return std::abs(x - y) <= most_iterations; });
}

template <class Expression>
void check_equivalent(Expression expression, const chunked& schedule, const adjoint& method, const shape& s,
                      index d_inner = 6, index d_state = 3, double apart = most) {
    CAPTURE(s.to_string());
    CAPTURE(schedule.length);
    CAPTURE(method.index());
    const fprnn::layer layer(expression, schedule, method);
    const dims size{.d_in = s[2], .d_inner = d_inner, .d_state = d_state, .d_out = 5};
    const auto theta = fprnn::init<double>(layer, size, fprnn::seed{4});
    const auto x = gpu::random<double>(s, 1);
    const auto carry = gpu::random<double>({s[0], layer.carry_width(size)}, 2, 0.3);
    const auto y_bar = gpu::random<double>({s[0], s[1], layer.output_width(size)}, 3);
    const auto expected = differentiate(layer, theta, x, carry, y_bar, fprnn::default_backend());
    const auto got = differentiate(layer, theta, x, carry, y_bar, cuda::device());
    CHECK(gpu::distance(got.value, expected.value) <= apart);
    CHECK(gpu::distance(got.carry, expected.carry) <= apart);
    CHECK(gpu::distance(got.x_bar, expected.x_bar) <= apart);
    CHECK(gpu::distance(got.theta_bar, expected.theta_bar) <= apart);
    CHECK(got.forward.status == expected.forward.status);
    CHECK(nearly(got.forward.iterations, expected.forward.iterations));
    CHECK(got.forward.tokens_converged == expected.forward.tokens_converged);
    CHECK(got.back.status == expected.back.status);
}

/// Every schedule with every adjoint.
template <class Expression>
void check_all(Expression expression, const shape& s) {
    for (const index C : {index(1), index(2), fprnn::whole_sequence})
        for (const adjoint& method :
             {adjoint(fprnn::implicit{.tolerance = 1e-13}), adjoint(fprnn::one_step{}), adjoint(fprnn::unrolled{})})
            check_equivalent(expression, {.length = C, .tolerance = 1e-12, .ell_max = 200}, method, s);
}

}  // namespace layers
