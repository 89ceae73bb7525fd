#pragma once

#include <fprnn/models/recorded.hpp>
#include <fprnn/train/adamw.hpp>
#include <fprnn/train/clip.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/finite.hpp>
#include <fprnn/train/schedule.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fprnn {

struct training_options {
    index batch = 128;  ///< sequences a step
    index length = 16;  ///< tokens a sequence
    /// Tokens of the first sequences; `length` or more: no curriculum. They grow by half, up to `length`, whenever
    /// `lengthen_at` of them are without a mistake, and are `length` after `full_length_at` of the training in any case. A
    /// step has as many tokens at any length.
    index first_length = std::numeric_limits<index>::max();
    double lengthen_at = 0.5;      ///< share of sequences, averaged over about ten steps
    double full_length_at = 0.75;  ///< share of the training, in [0,1]
    index steps = 3000;
    double time_limit = std::numeric_limits<double>::infinity();  ///< seconds
    adamw_options optimiser{};
    index warmup_steps = 200;
    fprnn::decay decay = fprnn::decay::cosine;  ///< to almost 0 at the last step
    double max_norm = 1;                        ///< of the gradient

    /// argument_error when a member is out of its range; adamw checks its own.
    void validate() const {
        const auto at_least = [](const char* name, index value, index least) {
            require(value >= least, "train", [&] {
                return std::string(name) + " must be at least " + std::to_string(least) + ", got " +
                       std::to_string(value);
            });
        };
        at_least("batch", batch, 1);
        at_least("length", length, 1);
        at_least("first_length", first_length, 1);
        require(lengthen_at >= 0 && lengthen_at < 1, "train",
                [&] { return "lengthen_at must be in [0,1), got " + std::to_string(lengthen_at); });
        require(full_length_at >= 0 && full_length_at <= 1, "train",
                [&] { return "full_length_at must be in [0,1], got " + std::to_string(full_length_at); });
        at_least("steps", steps, 1);
        at_least("warmup_steps", warmup_steps, 0);
        require(warmup_steps <= steps, "train", [&] {
            return "warmup_steps must be at most steps = " + std::to_string(steps) + ", got " +
                   std::to_string(warmup_steps);
        });
        require(time_limit > 0, "train",
                [&] { return "time_limit must be positive, got " + std::to_string(time_limit); });
        require(max_norm > 0, "train", [&] { return "max_norm must be positive, got " + std::to_string(max_norm); });
    }
};

/// What one step measured, on its batch and before its update.
struct training_step {
    index step = 0;                           ///< counted from 1
    index length = 0;                         ///< tokens a sequence
    index sequences = 0;                      ///< that the training has seen, this step's among them
    double loss = 0;                          ///< nats per token
    double token_accuracy = 0;                ///< share of tokens, in [0,1]
    double sequence_accuracy = 0;             ///< share of sequences without a mistake, in [0,1]
    std::optional<double> iterations{};       ///< median over sequences and layers; none without a fixed point
    std::optional<double> share_converged{};  ///< of the tokens
    double learning_rate = 0;
    double gradient_norm = 0;  ///< before clipping
    double seconds = 0;        ///< since training began
    double done = 0;           ///< share of the training that is over, by steps or by time, in [0,1]
};

enum class training_end {
    steps,       ///< all of them
    time_limit,  ///< the time ran out
    stopped,     ///< the observer said so
    nonfinite,   ///< the loss, a gradient or a parameter was not finite
};

struct training_result {
    training_end end = training_end::steps;
    index steps = 0;  ///< updates that the parameters have seen
    double seconds = 0;
    std::string message;  ///< names step and parameter when something was not finite
};

/// Trains `theta` in place: AdamW on clipped gradients, warm-up and decay. The schedule follows the steps, or
/// the clock where that is ahead, so that the rate also falls to its end when time is short. A run is reproducible to the
/// bit as long as its time stays behind: (time/time_limit − 0.1)/0.9 < step/steps.
///
/// model(tape, tokens, &how) gives logits [batch,tokens,V]; sample(tokens, targets, first) fills both [batch,tokens] with
/// the sequences first, first + 1, …; observe(training_step) returns whether to go on.
///
/// Numbers that are not finite end the training, and theta is what it was when the loss was last finite.
template <class T, class Model, class Sample, class Observe, backend_for<T> Backend = eigen>
training_result train(const Model& model, parameter_tree<T>& theta, const training_options& options, Sample&& sample,
                      Observe&& observe, Backend backend = Backend{}) {
    options.validate();
    adamw<T> optimiser(theta, options.optimiser);
    const learning_rate_schedule rate{.peak = options.optimiser.learning_rate,
                                      .warmup_steps = options.warmup_steps,
                                      .total_steps = options.steps + 1,  // adamw refuses a rate of 0
                                      .decay = options.decay};
    index length = std::min(options.first_length, options.length), sequences = 0;
    double learnt = 0;
    tensor<std::int32_t> tokens, targets;
    parameter_tree<T> last_good = theta;
    index last_good_steps = 0;

    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    training_result result;
    const auto finish = [&](training_end end, std::string message = {}) {
        result.end = end;
        result.message = std::move(message);
        result.seconds = seconds();
        return result;
    };
    const auto not_finite = [&](const std::string& what) {
        theta = last_good;
        const index step = std::exchange(result.steps, last_good_steps) + 1;
        return finish(training_end::nonfinite, "train: step " + std::to_string(step) + ": " + what);
    };

    // The clock counts from a tenth of its limit on, so that a slow start does not move a run that has time enough.
    constexpr double slack = 0.1;
    const auto share_over = [&] {
        const double by_steps = static_cast<double>(result.steps) / static_cast<double>(options.steps);
        return std::clamp((seconds() / options.time_limit - slack) / (1 - slack), by_steps, 1.0);
    };

    while (result.steps < options.steps) {
        if (seconds() >= options.time_limit && result.steps > 0) return finish(training_end::time_limit);
        const double done = share_over();
        if (done >= options.full_length_at) length = options.length;
        const index batch = std::max<index>(1, options.batch * options.length / length);
        if (tokens.shape() != shape{batch, length}) {
            tokens = tensor<std::int32_t>({batch, length});
            targets = tensor<std::int32_t>({batch, length});
        }
        sample(tokens.view(), targets.view(), static_cast<std::uint64_t>(sequences));
        sequences += batch;
        tape<T, Backend> records(theta, backend);
        std::vector<solution<T>> how;
        cross_entropy_result<T> outcome;
        const variable logits = model(records, std::as_const(tokens).view(), &how);
        const variable loss = cross_entropy(records, logits, std::as_const(targets).view(), &outcome);
        if (!std::isfinite(outcome.loss)) {
            const auto [name, value] = largest_parameter(theta);
            // Back to the parameters whose loss was finite; these already gave one that is not.
            return not_finite("the loss is " + std::to_string(outcome.loss) + "; the largest parameter is '" + name +
                              "' with " + std::to_string(value));
        }
        last_good = theta;
        last_good_steps = result.steps;

        parameter_tree<T> gradient = records.gradient(loss);
        if (const auto name = first_nonfinite(gradient))
            return not_finite("the gradient of parameter '" + *name + "' is not finite");

        const accuracies shares = measure_accuracy(outcome.correct, batch, length);
        training_step step{.step = result.steps + 1,
                           .length = length,
                           .sequences = sequences,
                           .loss = outcome.loss,
                           .token_accuracy = shares.token,
                           .sequence_accuracy = shares.sequence,
                           .learning_rate = rate(std::llround(done * static_cast<double>(options.steps)))};
        step.gradient_norm = clip_by_global_norm(gradient, options.max_norm);
        if (const auto c = summarise(how, length)) {
            step.iterations = c->median_iterations;
            step.share_converged = c->share_converged;
        }
        optimiser.step(theta, gradient, step.learning_rate);
        if (const auto name = first_nonfinite(theta))
            return not_finite("parameter '" + *name + "' is not finite after the update");
        learnt += 0.1 * (shares.sequence - learnt);
        if (length < options.length && learnt > options.lengthen_at) {
            length = std::min(options.length, length + std::max<index>(1, length / 2));
            learnt = 0;
        }
        ++result.steps;
        step.seconds = seconds();
        step.done = share_over();
        if (!observe(std::as_const(step))) return finish(training_end::stopped);
    }
    return finish(training_end::steps);
}

}  // namespace fprnn
