#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/train/trainer.hpp>

#include <train/small_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace {

using fprnn::index;
using fprnn::training_options;
using fprnn::training_step;

const fprnn::word_problem& data = fprnn::testing::small_data;
template <class Block>
auto model_of(Block block) {
    return fprnn::testing::small_model(block, 1e-10);
}
training_options parts(index micro_batches, index steps = 1) {
    return {.batch = 7,
            .micro_batches = micro_batches,
            .length = 6,
            .steps = steps,
            .optimiser = {.learning_rate = 0.01},
            .warmup_steps = 0};
}

template <class Theta>
struct training {
    Theta theta;
    std::vector<training_step> steps;
};
template <class T, class Sample, class Model>
auto trained(const Model& model, const training_options& o, Sample sample) {
    training<fprnn::parameter_tree<T>> r{model.template init<T>(fprnn::seed{0}), {}};
    const auto result = fprnn::train(model, r.theta, o, sample, [&](const training_step& s) {
        r.steps.push_back(s);
        return true;
    });
    CHECK(result.end == fprnn::training_end::steps);
    return r;
}
template <class Training>
double largest_difference(const Training& a, const Training& b) {
    double most = 0;
    for (index i = 0; i < a.theta.size(); ++i)
        most = std::max(most, std::abs(static_cast<double>(a.theta.data()[i] - b.theta.data()[i])));
    return most;
}

void evenly(fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
    data(tokens, targets, first);
}
/// Answers are asked for where token and sequence say so, of some sequences none.
void unevenly(fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
    data(tokens, targets, first);
    for (index b = 0; b < targets.shape()[0]; ++b)
        for (index t = 0; t < targets.shape()[1]; ++t)
            if (t < static_cast<index>(first + static_cast<std::uint64_t>(b)) % 7)
                targets(b, t) = fprnn::ignored_target;
}

TEST_CASE("train: micro-batches have the gradient of the batch, also where answers are uneven") {
    for (const auto& sample : {+evenly, +unevenly}) {
        const auto whole = trained<double>(model_of(fprnn::models::fp_mamba<1>()), parts(1, 20), sample);
        for (const index n : {2, 3, 5, 7}) {
            CAPTURE(n);
            const auto split = trained<double>(model_of(fprnn::models::fp_mamba<1>()), parts(n, 20), sample);
            CHECK(largest_difference(whole, split) < 4e-15);
            for (std::size_t i = 0; i < whole.steps.size(); ++i) {
                CHECK(split.steps[i].gradient_norm == doctest::Approx(whole.steps[i].gradient_norm).epsilon(4e-15));
                CHECK(split.steps[i].loss == doctest::Approx(whole.steps[i].loss).epsilon(4e-15));
                CHECK(split.steps[i].sequences == whole.steps[i].sequences);
                CHECK(split.steps[i].token_accuracy == whole.steps[i].token_accuracy);
                CHECK(split.steps[i].sequence_accuracy == whole.steps[i].sequence_accuracy);
                CHECK(split.steps[i].iterations == whole.steps[i].iterations);
                CHECK(split.steps[i].adjoint_iterations == whole.steps[i].adjoint_iterations);
            }
        }
    }
}

TEST_CASE("train: micro-batches of windows go on from the carry of their rows") {
    const auto model = model_of(fprnn::models::lstm());
    training_options o = parts(1, 12);
    o.state_passing = fprnn::state_passing{.windows = 3, .from = 0.25, .ends_when_wrong = false};
    const auto whole = trained<double>(model, o, evenly);
    CHECK(whole.steps.back().sequences > whole.steps[2].sequences);
    for (const index n : {2, 3, 7}) {
        CAPTURE(n);
        o.micro_batches = n;
        const auto split = trained<double>(model, o, evenly);
        CHECK(largest_difference(whole, split) < 4e-15);
        for (std::size_t i = 0; i < whole.steps.size(); ++i) {
            CHECK(split.steps[i].loss == doctest::Approx(whole.steps[i].loss).epsilon(4e-15));
            CHECK(split.steps[i].sequences == whole.steps[i].sequences);
        }
    }
}

TEST_CASE("train: a training in micro-batches that is taken up again gives the same bits") {
    const auto model = model_of(fprnn::models::fp_mamba<1>());
    training_options o = parts(3, 9);
    o.state_passing = fprnn::state_passing{.windows = 2, .from = 0.2};
    fprnn::training_state<float> whole(model.init<float>(fprnn::seed{0}), o);
    std::optional<fprnn::training_state<float>> kept;
    fprnn::train(model, whole, o, evenly, [&](const training_step& s) {
        if (s.step == 5) kept = whole;
        return true;
    });
    fprnn::train(model, *kept, o, evenly, [](const training_step&) { return true; });
    CHECK(std::equal(whole.theta.begin(), whole.theta.end(), kept->theta.begin()));
}

TEST_CASE("train: a loss that is not finite in the last micro-batch ends the training with the parameters before") {
    const auto model = model_of(fprnn::models::lstm());
    int calls = 0;
    const auto spoilt = [&](fprnn::tape<float>& t, fprnn::view<const std::int32_t> tokens,
                            std::vector<fprnn::solution<float>>* how) {
        const fprnn::variable y = model(t, tokens, how);
        if (++calls < 9) return y;
        fprnn::tensor<float> value = t.value(y);
        std::fill(value.begin(), value.end(), std::numeric_limits<float>::quiet_NaN());
        return t.leaf(std::move(value));
    };
    auto theta = model.init<float>(fprnn::seed{0}), before = theta;
    const auto result = fprnn::train(spoilt, theta, parts(3, 9), evenly, [&](const training_step& s) {
        if (s.step < 2) before = theta;
        return true;
    });
    CHECK(result.end == fprnn::training_end::nonfinite);
    CHECK(result.message.starts_with("train: step 3: the loss is nan"));
    CHECK(result.steps == 1);
    CHECK(std::equal(theta.begin(), theta.end(), before.begin()));
}

TEST_CASE("train: micro-batches that a batch cannot have are refused") {
    const auto model = model_of(fprnn::models::lstm());
    auto theta = model.init<float>(fprnn::seed{0});
    const auto message_of = [&](index n) {
        try {
            fprnn::train(model, theta, parts(n), evenly, [](const training_step&) { return true; });
        } catch (const fprnn::argument_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message_of(0) == "train: micro_batches must be at least 1, got 0");
    CHECK(message_of(8) == "train: micro_batches must be at most batch = 7, got 8");
}

}  // namespace
