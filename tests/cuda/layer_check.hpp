#pragma once

#include "distance.hpp"
#include "random.hpp"

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>
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
template <class T>
struct outcome_of {
    fprnn::convergence forward, back;
    tensor<T> value, carry, x_bar, theta_bar;
};
using outcome = outcome_of<double>;

template <class T>
tensor<T> there(const fprnn::default_backend&, const tensor<T>& x) {
    return x;
}
template <class T>
cuda::tensor<T> there(const cuda::device& gpu, const tensor<T>& x) {
    return gpu.copy(x);
}
template <class T>
tensor<T> here(const tensor<T>& x) {
    return x;
}
template <class T>
tensor<T> here(const cuda::tensor<T>& x) {
    return cuda::copy_to_host(x);
}

template <class Layer, class T, class Backend>
outcome_of<T> differentiate(const Layer& layer, const fprnn::layer_parameters<T>& theta, const tensor<T>& x,
                            const tensor<T>& carry, const tensor<T>& y_bar, Backend backend) {
    const auto parameters = there(backend, tensor<T>({theta.size()}, {theta.begin(), theta.end()}));
    const auto input = there(backend, x), start = there(backend, carry), bar = there(backend, y_bar);
    auto x_bar = there(backend, tensor<T>(x.shape()));
    auto theta_bar = there(backend, tensor<T>({theta.size()}));
    typename Layer::template record<T, Backend> kept;
    const auto solution =
        layer.template run<T>(theta.widths, parameters.data(), input.view(), start.view(), backend, &kept);
    layer.template back<T>(kept, input.view(), bar.view(), x_bar.view(), theta_bar.data(), backend);
    return {solution,       *kept.adjoint_convergence, here(solution.value), here(solution.carry), here(x_bar),
            here(theta_bar)};
}

/// The largest difference, relative to the largest number, and of iterations. Kernels that run on the host
/// differ by the order of sums: 1.3e-14 measured in double, and in float 2.7e-6, or 2.4e-5 where `unrolled`
/// goes back through an iteration more. On a GPU what is asked of backends. A threshold of 1e-12 may be
/// reached an iteration sooner.
#ifdef __CUDACC__
template <class T>
inline constexpr double most_of = std::is_same_v<T, double> ? 1e-10 : 1e-4;
template <class T>
inline constexpr int most_iterations = std::is_same_v<T, double> ? 1 : 2;
#else
template <class T>
inline constexpr double most_of = std::is_same_v<T, double> ? 3e-14 : 1e-4;
template <class T>
inline constexpr int most_iterations = 1;
#endif
inline constexpr double most = most_of<double>;

/// Thresholds of the iteration and of the adjoint that numbers of this type reach.
template <class T>
inline constexpr double tolerance = std::is_same_v<T, double> ? 1e-12 : 1e-6;
template <class T>
inline constexpr double adjoint_tolerance = std::is_same_v<T, double> ? 1e-13 : 1e-6;

template <class T = double>
bool nearly(const std::vector<int>& a, const std::vector<int>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](int x, int y) { return std::abs(x - y) <= most_iterations<T>; });
}

template <class T = double, class Expression>
void check_equivalent(Expression expression, const chunked& schedule, const adjoint& method, const shape& s,
                      index d_inner = 7, index d_state = 3, double apart = most_of<T>) {
    CAPTURE(s.to_string());
    CAPTURE(schedule.length);
    CAPTURE(method.index());
    const fprnn::layer layer(expression, schedule, method);
    const dims size{.d_in = s[2], .d_inner = d_inner, .d_state = d_state, .d_out = 5};
    const auto theta = fprnn::init<T>(layer, size, fprnn::seed{4});
    const auto x = gpu::random<T>(s, 1);
    const auto carry = gpu::random<T>({s[0], layer.carry_width(size)}, 2, 0.3);
    const auto y_bar = gpu::random<T>({s[0], s[1], layer.output_width(size)}, 3);
    const auto expected = differentiate(layer, theta, x, carry, y_bar, fprnn::default_backend());
    const auto got = differentiate(layer, theta, x, carry, y_bar, cuda::device());
    CHECK(gpu::distance(got.value, expected.value) <= apart);
    CHECK(gpu::distance(got.carry, expected.carry) <= apart);
    CHECK(gpu::distance(got.x_bar, expected.x_bar) <= apart);
    CHECK(gpu::distance(got.theta_bar, expected.theta_bar) <= apart);
    CHECK(got.forward.status == expected.forward.status);
    CHECK(nearly<T>(got.forward.iterations, expected.forward.iterations));
    CHECK(got.forward.tokens_converged == expected.forward.tokens_converged);
    CHECK(got.back.status == expected.back.status);
    if (schedule.length == 1) CHECK(nearly<T>(got.back.iterations, expected.back.iterations));
}

/// Every schedule with every adjoint.
template <class T = double, class Expression>
void check_all(Expression expression, const shape& s) {
    for (const index C : {index(1), index(2), fprnn::whole_sequence})
        for (const adjoint& method :
             {adjoint(fprnn::implicit{.tolerance = adjoint_tolerance<T>}), adjoint(fprnn::one_step{}),
              adjoint(fprnn::unrolled{}), adjoint(fprnn::truncated{2}), adjoint(fprnn::neumann{3})})
            check_equivalent<T>(expression, {.length = C, .tolerance = tolerance<T>, .ell_max = 200}, method, s);
}

}  // namespace layers
