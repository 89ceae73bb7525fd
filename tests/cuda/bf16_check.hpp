#pragma once

#include "distance.hpp"
#include "random.hpp"

#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/cuda/train.hpp>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

/// Layers whose sequences are stored as bf16 against layers of float on the CPU, wherever the kernels of the
/// device run.
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

/// What a model's loss is, and its gradient, where sequences between the layers are stored as X.
template <class X, class Backend>
std::pair<double, tensor<float>> loss_and_gradient(Backend backend, index B, index T) {
    const fprnn::models::sequence_model model(
        fprnn::models::fp_rnn<2>(),
        {.vocabulary = 6, .classes = 6, .d_model = 8, .d_inner = 8, .d_state = 4, .layers = 2},
        {.length = 1, .tolerance = 1e-5, .ell_max = 200}, fprnn::implicit{.tolerance = 1e-6});
    const auto theta = model.template init<float>(fprnn::seed{1});
    tensor<std::int32_t> tokens({B, T}), targets({B, T});
    const fprnn::word_problem data{.group = fprnn::finite_group("S3"), .seed = {3}};
    data(tokens.view(), targets.view(), 0);
    fprnn::tape<float, Backend, X> records(theta, backend);
    fprnn::cross_entropy_result<float> outcome;
    const auto logits = model(records, std::as_const(tokens).view());
    const auto loss = cross_entropy(records, logits, std::as_const(targets).view(), &outcome);
    const auto& gradient = records.gradient(loss);
    tensor<float> all({gradient.size()});
    std::copy(gradient.begin(), gradient.end(), all.begin());
    return {outcome.loss, all};
}

/// Of fewer tokens a larger part is rounding: 2.6e-3 measured of 10, 1.4e-3 of 35.
inline void check_gradient(index B, index T, double most) {
    const auto [expected_loss, expected] = loss_and_gradient<float>(fprnn::default_backend(), B, T);
    const auto [loss, gradient] = loss_and_gradient<cuda::bf16>(cuda::device(), B, T);
    CHECK(std::abs(loss - expected_loss) <= 5e-4 * expected_loss);
    CHECK(gpu::distance(gradient, expected) <= most);
}

/// What some steps of training come to.
struct outcome {
    std::vector<double> losses;
    fprnn::evaluation trained;
    tensor<float> logits;  ///< of some tokens, in two calls, the second from the first's carry on
};
template <class X, class Backend, class CopyBack>
outcome train(Backend backend, const CopyBack& copy_back) {
    const fprnn::models::sequence_model model(fprnn::models::fp_rnn<2>(),
                                              {.vocabulary = 3, .classes = 3, .d_model = 8, .d_inner = 8, .d_state = 4},
                                              {.length = 1, .tolerance = 1e-5, .ell_max = 200});
    const fprnn::word_problem data{.group = fprnn::finite_group("Z3"), .seed = {3}};
    auto theta = model.template init<float>(fprnn::seed{1});
    outcome all;
    const auto observe = [&](const fprnn::training_step& s) {
        all.losses.push_back(s.loss);
        return true;
    };
    const fprnn::sequences_as<X> stored;
    fprnn::train(model, theta, {.batch = 16, .length = 3, .steps = 25, .optimiser = {.learning_rate = 0.02}}, data,
                 observe, backend, stored);
    // What was trained in float, so that both evaluate the same parameters.
    auto same = model.template init<float>(fprnn::seed{1});
    fprnn::train(model, same, {.batch = 16, .length = 3, .steps = 150, .optimiser = {.learning_rate = 0.02}}, data,
                 [](const fprnn::training_step&) { return true; });
    all.trained = fprnn::evaluate(model, same, 4, 40, data, backend, stored);
    fprnn::models::model_carry<float, fprnn::array_of<float, Backend>> carry;
    const tensor<std::int32_t> tokens({1, 3}, {2, 0, 1});
    (void)model.evaluate(same, tokens.view(), carry, nullptr, backend, stored);
    all.logits = copy_back(model.evaluate(same, tokens.view(), carry, nullptr, backend, stored));
    return all;
}

inline void check_training() {
    check_gradient(5, 7, 2e-3);
    const outcome wide = train<float>(fprnn::default_backend(), [](const tensor<float>&x) { return x; }),
                  narrow = train<cuda::bf16>(
                      cuda::device(), [](const cuda::tensor<cuda::bf16>&x) { return cuda::to_float(copy_to_host(x)); });
    REQUIRE(narrow.losses.size() == wide.losses.size());
    CHECK(wide.losses.back() < 0.65 * wide.losses.front());
    for (std::size_t i = 0; i < wide.losses.size(); ++i)
        CHECK(std::abs(narrow.losses[i] - wide.losses[i]) <= 2e-3 * wide.losses.front());
    CHECK(wide.trained.accuracy.token > 0.9);
    CHECK(std::abs(narrow.trained.accuracy.token - wide.trained.accuracy.token) <= 0.01);  // of 160 tokens
    CHECK(narrow.trained.convergence->share_converged == wide.trained.convergence->share_converged);
    CHECK(gpu::distance(narrow.logits, wide.logits) <= rounding);
    CHECK(gpu::distance(narrow.logits, wide.logits) > 0);
}

}  // namespace bf16_layers
