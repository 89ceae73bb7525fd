#pragma once

#include <fprnn/train/batch_gradient.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/ranks.hpp>
#include <fprnn/train/training_state.hpp>
#include <fprnn/train/training_step.hpp>
#include <fprnn/train/update.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace fprnn::detail {

/// A training of any model on any data. What it asks of them are functions, so that it is compiled once for a
/// number type, a backend and a kind of batch. Whatever throws, parameters and memory are those of the last
/// whole step, on a backend with memory of its own of the last that was fetched.
template <class T, class Backend, class X, class Batch>
class training_run {
public:
    using solutions = fprnn::solutions<T, Backend, X>;
    using gradient = batch_gradient<T, Backend, X, Batch>;
    using observer = std::function<bool(const training_step&)>;  ///< returns whether to go on

    /// All that is given is used until the training ends. With state_passing the first sequence is asked for.
    /// argument_error when options or memory are out of their range, or a model that takes no carry is to go
    /// on. Of ranks that train together, which have equal parameters, memory and options, rank 0 observes,
    /// and its clock is the training's.
    training_run(parameter_tree<T>& trained, training_memory<T>& remembered, const training_options& options,
                 Backend& backend, typename gradient::calls others, observer observe, ranks* together = nullptr);
    training_run(const training_run&) = delete;
    training_run& operator=(const training_run&) = delete;
    ~training_run();

    /// To be called once.
    training_result operator()();

private:
    using clock = std::chrono::steady_clock;

    /// After so many seconds.
    step_plan next(double now) const;
    /// Forward, backward, update. Returns what was not finite, if anything was; restore_last_good has to
    /// follow.
    std::optional<std::string> step(const step_plan& p);
    /// What there is to say of the step, on its batch and before its update.
    void measure(const step_plan& p, index begun);
    /// Clips the gradient and changes the parameters; `last_good` becomes what they were.
    std::optional<std::string> update();
    /// The step is whole: memory_ becomes that after it.
    void commit(const step_plan& p);
    /// Whether the training goes on; the time that observe takes is not the training's.
    bool observe();

    training_result finish(training_end end);
    /// Ends with the parameters whose loss was finite.
    training_result restore_last_good(const std::string& what);
    training_result end_with(training_end end, std::string message = {});

    /// What rank 0 has, of those that train together.
    template <class N>
    N of_rank_0(N value) const {
        if (together_) together_->broadcast(std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
    double seconds() const { return seconds_before_ + std::chrono::duration<double>(clock::now() - start_).count(); }
    index last_step() const { return learning_rate_.total_steps - 1; }
    double learning_rate(double done) const;

    const training_options& options_;
    updates_on<T, Backend> updates_;
    parameter_tree<T>& theta_ = updates_.theta;
    training_memory<T>& memory_ = updates_.memory;
    learning_rate_schedule learning_rate_;
    gradient gradient_;
    observer observe_;
    ranks* together_;

    ongoing_sequences<T> ongoing_;  ///< of the step that is taken; memory_ has that of the step before
    training_step step_;

    double seconds_before_;
    clock::time_point start_{};  ///< when training began, without the time of observe
};

template <class T, class Backend, class X, class Batch>
training_run<T, Backend, X, Batch>::training_run(parameter_tree<T>& trained, training_memory<T>& remembered,
                                                 const training_options& options, Backend& backend,
                                                 typename gradient::calls others, observer observe, ranks* together)
    : options_((options.validate(), remembered.validate(options), options)),
      updates_(backend, trained, remembered),
      gradient_(theta_, updates_.there, options, backend, std::move(others), together),
      observe_(std::move(observe)),
      together_(together),
      seconds_before_(remembered.seconds) {
    const index last = std::min(options.steps, std::numeric_limits<index>::max() - 1);
    learning_rate_ = {.peak = options.optimiser.learning_rate,
                      .warmup_steps = std::min(options.warmup(), last),
                      .total_steps = last + 1,  // adamw refuses a rate of 0
                      .decay = options.decay};
}

// What is not inline is in fprnn::compiled.
template <class T, class Backend, class X, class Batch>
training_run<T, Backend, X, Batch>::~training_run() = default;

template <class T, class Backend, class X, class Batch>
training_result training_run<T, Backend, X, Batch>::operator()() {
    start_ = clock::now();
    while (memory_.steps < options_.steps) {
        const double now = of_rank_0(seconds());
        if (now >= options_.time_limit && memory_.steps > 0) return finish(training_end::time_limit);
        if (const auto what = step(next(now))) return restore_last_good(*what);
        if (!observe()) return finish(training_end::stopped);
    }
    return finish(training_end::steps);
}

template <class T, class Backend, class X, class Batch>
step_plan training_run<T, Backend, X, Batch>::next(double now) const {
    const double done = options_.share_over(memory_.steps, now);
    const index length = done >= options_.full_length_at ? options_.length : memory_.length;
    const index batch = std::max<index>(1, options_.batch * options_.length / length);
    return {done, length, batch, memory_.sequences, options_.goes_on(done, length)};
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::step(const step_plan& p) {
    require(memory_.sequences <= std::numeric_limits<index>::max() - p.batch, "train", [&] {
        return "the data have 2^63 - 1 sequences, and " + std::to_string(memory_.sequences) + " have been seen";
    });
    if (p.goes_on) ongoing_ = memory_.ongoing;
    const index begun = gradient_.begin(p, ongoing_);
    if (const auto what = gradient_(p, ongoing_)) {
        updates_.fetch();
        const auto [name, value] = largest_parameter(theta_);
        return *what + "; the largest parameter is '" + name + "' with " + number_text(value);
    }
    measure(p, begun);
    if (p.goes_on) gradient_.advance(ongoing_);
    // From here to observe nothing throws on the host, so what is remembered there is always a whole step.
    if (auto what = update()) return what;
    commit(p);
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::measure(const step_plan& p, index begun) {
    const auto& outcome = gradient_.outcome();
    accuracies shares;
    if constexpr (Batch::has_classes) shares = measure_accuracy(outcome.answers, p.batch, p.length);
    step_ = {.step = memory_.steps + 1,
             .length = p.length,
             .sequences = memory_.sequences + begun,
             .loss = outcome.loss,
             .token_accuracy = shares.token,
             .sequence_accuracy = shares.sequence,
             .learning_rate = learning_rate(p.done)};
    if (const auto c = gradient_.forward().summary(p.length)) {
        step_.iterations = c->median_iterations;
        step_.share_converged = c->share_converged;
    }
    if (const auto c = gradient_.adjoint().summary(p.length)) {
        step_.adjoint_iterations = c->median_iterations;
        step_.adjoint_share_converged = c->share_converged;
    }
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::update() {
    updates_.remember();
    memory_.last_good_steps = memory_.steps;
    if (const auto name = updates_.measure(gradient_.records(), options_.max_norm, step_.gradient_norm))
        return "the gradient of parameter '" + *name + "' is not finite";
    if (const auto name = updates_.step(gradient_.records(), step_.learning_rate))
        return "parameter '" + *name + "' is not finite after the update";
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::commit(const step_plan& p) {
    memory_.steps = step_.step;
    memory_.sequences = step_.sequences;
    if (p.goes_on) std::swap(memory_.ongoing, ongoing_);
    memory_.length = p.length;
    memory_.learnt += 0.1 * (step_.sequence_accuracy - memory_.learnt);
    if (memory_.learnt > options_.lengthen_at && options_.length > p.length) {
        memory_.length = std::min(options_.length, p.length + std::max<index>(1, p.length / 2));
        memory_.learnt = 0;
    }
    step_.seconds = memory_.seconds = seconds();
    step_.done = options_.share_over(memory_.steps, memory_.seconds);
}

template <class T, class Backend, class X, class Batch>
bool training_run<T, Backend, X, Batch>::observe() {
    step_.fetch = [this] {
        updates_.fetch();
        updates_.hand_over();
    };
    const clock::time_point paused = clock::now();
    const bool goes_on = together_ && together_->rank() > 0 ? true : observe_(std::as_const(step_));
    start_ += clock::now() - paused;
    return of_rank_0(goes_on);
}

template <class T, class Backend, class X, class Batch>
double training_run<T, Backend, X, Batch>::learning_rate(double done) const {
    // All of the largest number of steps would be more than an integer holds.
    return learning_rate_(done < 1
                              ? std::min<index>(last_step(), std::llround(done * static_cast<double>(options_.steps)))
                              : last_step());
}

template <class T, class Backend, class X, class Batch>
training_result training_run<T, Backend, X, Batch>::end_with(training_end end, std::string message) {
    memory_.seconds = seconds();
    updates_.hand_over();
    return {end, memory_.steps, memory_.seconds, std::move(message)};
}

template <class T, class Backend, class X, class Batch>
training_result training_run<T, Backend, X, Batch>::finish(training_end end) {
    updates_.fetch();
    return end_with(end);
}

template <class T, class Backend, class X, class Batch>
training_result training_run<T, Backend, X, Batch>::restore_last_good(const std::string& what) {
    std::string message = "train: step " + std::to_string(memory_.steps + 1) + ": " + what;
    updates_.fetch();
    // Not the parameters as they are: where the loss was not finite, these already gave one that is not.
    theta_ = memory_.last_good;
    memory_.steps = memory_.last_good_steps;
    return end_with(training_end::nonfinite, std::move(message));
}

}  // namespace fprnn::detail
