#pragma once

#include "random.hpp"

#include <fprnn/cuda/train.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

/// Models that are trained and evaluated on cuda::device against the same on the CPU, wherever the kernels of
/// the device run.
namespace models {

using fprnn::index;

/// What some steps of training leave, and an evaluation after them.
struct outcome {
    fprnn::parameter_tree<double> theta;
    std::vector<double> losses, norms;
    fprnn::evaluation evaluation;
};

template <class Backend>
outcome train(index steps, Backend backend, int layers = 2, index length = 5) {
    const fprnn::word_problem data{.group = fprnn::finite_group("S3"), .seed = {3}};
    const fprnn::models::sequence_model model(
        fprnn::models::fp_mamba<2>(),
        {.vocabulary = 6, .classes = 6, .d_model = 5, .d_inner = 6, .d_state = 3, .layers = layers},
        {.length = 1, .tolerance = 1e-11, .ell_max = 100}, fprnn::implicit{.tolerance = 1e-12});
    outcome o{model.template init<double>({1}), {}, {}, {}};
    const fprnn::training_options options{.batch = 5, .length = length, .steps = steps, .warmup_steps = 1};
    fprnn::train(
        model, o.theta, options, data,
        [&](const fprnn::training_step& s) {
            o.losses.push_back(s.loss);
            o.norms.push_back(s.gradient_norm);
            return true;
        },
        backend);
    o.evaluation = fprnn::evaluate(model, o.theta, 4, 7, data, backend);
    return o;
}

inline void check_equivalent(index steps, double most, int layers = 2, index length = 5) {
    const outcome expected = train(steps, fprnn::default_backend(), layers, length),
                  got = train(steps, fprnn::cuda::device(), layers, length);
    REQUIRE(got.losses.size() == static_cast<std::size_t>(steps));
    for (std::size_t i = 0; i < got.losses.size(); ++i) {
        CHECK(std::abs(got.losses[i] - expected.losses[i]) <= most * expected.losses[i]);
        CHECK(std::abs(got.norms[i] - expected.norms[i]) <= most * expected.norms[i]);
    }
    for (index i = 0; i < got.theta.size(); ++i)
        CHECK(std::abs(got.theta.data()[i] - expected.theta.data()[i]) <= most);
    CHECK(got.evaluation.answers == expected.evaluation.answers);
    REQUIRE(got.evaluation.convergence);
    CHECK(std::abs(got.evaluation.convergence->median_iterations -
                   expected.evaluation.convergence->median_iterations) <= 1);
}

}  // namespace models
