#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/train/batch.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/training_state.hpp>
#include <fprnn/train/update.hpp>
#include <fprnn/train/windows.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn {

/// What one step measured, on its batch and before its update.
struct training_step {
    index step = 0;                ///< counted from 1
    index length = 0;              ///< tokens a sequence
    index sequences = 0;           ///< that the training has seen, or begun, this step's among them
    double loss = 0;               ///< nats per token, or the mean square of real targets
    double token_accuracy = 0;     ///< share of tokens, in [0,1]; 0 of real targets
    double sequence_accuracy = 0;  ///< share of sequences, or windows, without a mistake, in [0,1]; 0 of real targets
    std::optional<double> iterations{};       ///< median over sequences and layers; none without a fixed point
    std::optional<double> share_converged{};  ///< of the tokens
    /// Of the adjoint's solves; none without a fixed point, and none where no equation is solved: `implicit`
    /// alone solves one. A token that is solved directly counts as one iteration.
    std::optional<double> adjoint_iterations{};
    std::optional<double> adjoint_share_converged{};
    double learning_rate = 0;
    double gradient_norm = 0;  ///< before clipping
    double seconds = 0;        ///< of training so far
    double done = 0;           ///< share of the training that is over, by steps or by time, in [0,1]
    /// Brings parameters and state here, as they are after this step, from a backend with memory of its own.
    /// Elsewhere they are. To be called while the step is observed.
    std::function<void()> fetch{};
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

namespace detail {
template <class X, class T, class Model, class Sample, class Observe, backend_for<T> Backend>
training_result train(const Model& model, parameter_tree<T>& trained, training_memory<T>& remembered,
                      const training_options& options, Sample&& sample, Observe&& observe, Backend backend) {
    static_assert(may_store<X, T, Backend>(), "train: the backend does not store sequences as sequences_as says");
    using batch_of = batch<T, std::remove_reference_t<Sample>>;
    static_assert(batch_of::is_sampled,
                  "train: sample must be callable as sample(fprnn::view<std::int32_t> tokens, "
                  "fprnn::view<std::int32_t> targets, std::uint64_t first), see fprnn/train/sampler.hpp");
    static_assert(
        std::is_invocable_r_v<bool, Observe&, const training_step&>,
        "train: observe must be callable as observe(const fprnn::training_step&) and return whether to go on");
    options.validate();
    remembered.validate(options);
    updates_on<T, Backend> updates(backend, trained, remembered);
    parameter_tree<T>& theta = updates.theta;
    training_memory<T>& memory = updates.memory;
    constexpr index largest = std::numeric_limits<index>::max();
    const index last_step = std::min(options.steps, largest - 1);
    const learning_rate_schedule rate{.peak = options.optimiser.learning_rate,
                                      .warmup_steps = std::min(options.warmup(), last_step),
                                      .total_steps = last_step + 1,  // adamw refuses a rate of 0
                                      .decay = options.decay};
    const auto step_at = [&](double done) {
        // All of the largest number of steps would be more than an integer holds.
        return done < 1 ? std::min<index>(last_step, std::llround(done * static_cast<double>(options.steps)))
                        : last_step;
    };
    constexpr bool can_go_on =
        host_memory_backend<Backend, T> &&
        std::is_invocable_r_v<variable, const Model&, tape<T, Backend, X>&,
                              decltype(std::as_const(std::declval<batch_of&>().inputs).view()), models::model_carry<T>&,
                              std::vector<solution<T, array_of<X, Backend>, array_of<T, Backend>>>*>;
    require(can_go_on || !options.state_passing, "train", [] {
        return std::string(
            "state_passing needs the CPU and a model that is callable as model(tape, inputs, carry, &how)");
    });
    // What a step needs, kept from step to step: after the first of a length, steps ask for no memory.
    batch_of data;
    windows_of<T, std::remove_reference_t<Sample>> windows(options.state_passing.value_or(state_passing{}),
                                                           options.batch, options.length);
    if (options.state_passing) windows.try_sample(sample);
    ongoing_sequences<T> ongoing;
    tape<T, Backend, X> records(theta, updates.there, backend);
    std::vector<solution<T, typename Backend::template array<X>, typename Backend::template array<T>>> how;
    typename batch_of::outcome outcome;
    summary_scratch scratch;
    std::vector<const convergence*> adjoints;

    using clock = std::chrono::steady_clock;
    clock::time_point start = clock::now();
    const auto seconds = [&, before = memory.seconds] {
        return before + std::chrono::duration<double>(clock::now() - start).count();
    };
    const auto end_with = [&](training_end end, std::string message = {}) {
        memory.seconds = seconds();
        updates.hand_over();
        return training_result{end, memory.steps, memory.seconds, std::move(message)};
    };
    const auto finish = [&](training_end end) {
        updates.fetch();
        return end_with(end);
    };
    const auto not_finite = [&](const std::string& what) {
        std::string message = "train: step " + std::to_string(memory.steps + 1) + ": " + what;
        updates.fetch();
        theta = memory.last_good;
        memory.steps = memory.last_good_steps;
        return end_with(training_end::nonfinite, std::move(message));
    };

    while (memory.steps < options.steps) {
        if (seconds() >= options.time_limit && memory.steps > 0) return finish(training_end::time_limit);
        const double done = options.share_over(memory.steps, seconds());
        const index length = done >= options.full_length_at ? options.length : memory.length;
        const index batch = std::max<index>(1, options.batch * options.length / length);
        require(memory.sequences <= largest - batch, "train", [&] {
            return "the data have 2^63 - 1 sequences, and " + std::to_string(memory.sequences) + " have been seen";
        });
        const bool windowed = options.goes_on(done, length);
        index begun = batch;
        if (windowed) {
            ongoing = memory.ongoing;
            begun = windows.read(sample, ongoing, memory.sequences, data);
        } else {
            data.read(sample, batch, length, static_cast<std::uint64_t>(memory.sequences));
        }
        records.clear();
        const variable outputs = [&] {
            if constexpr (can_go_on)
                if (windowed) return model(records, std::as_const(data.inputs).view(), ongoing.carry, &how);
            return model(records, std::as_const(data.inputs).view(), &how);
        }();
        const variable loss = data.loss(records, outputs, outcome);
        if (!math::is_finite(outcome.loss)) {
            updates.fetch();
            const auto [name, value] = largest_parameter(theta);
            // Back to the parameters whose loss was finite; these already gave one that is not.
            return not_finite("the loss is " + detail::number_text(outcome.loss) + "; the largest parameter is '" +
                              name + "' with " + detail::number_text(value));
        }
        if (windowed) {
            ongoing.validate_carry(batch);
            for (const tensor<T>& c : ongoing.carry.blocks)
                if (!std::all_of(c.begin(), c.end(), [](T x) { return math::is_finite(x); }))
                    return not_finite("a state that the next windows go on from is not finite");
        }
        records.back(loss);
        for (const auto& e : theta.entries())
            if (options.is_frozen(e.name)) backend.fill(e.shape.count(), records.parameter_bar_data() + e.offset, T(0));
        accuracies shares;
        if constexpr (batch_of::has_classes) shares = measure_accuracy(outcome.answers, batch, length);
        training_step step{.step = memory.steps + 1,
                           .length = length,
                           .sequences = memory.sequences + begun,
                           .loss = outcome.loss,
                           .token_accuracy = shares.token,
                           .sequence_accuracy = shares.sequence,
                           .learning_rate = rate(step_at(done))};
        if (windowed)
            windows.advance(ongoing, [&](index b) {
                if constexpr (batch_of::has_classes) {
                    const auto row = outcome.answers.begin() + b * length;
                    return std::find(row, row + length, answer::wrong) != row + length;
                }
                return false;
            });
        if (const auto c = summarise(how, length, scratch)) {
            step.iterations = c->median_iterations;
            step.share_converged = c->share_converged;
        }
        adjoints.clear();
        for (const auto& s : how)
            if (s.adjoint) adjoints.push_back(s.adjoint.get());
        if (const auto c = summarise(adjoints, length, scratch)) {
            step.adjoint_iterations = c->median_iterations;
            step.adjoint_share_converged = c->share_converged;
        }
        // From here to observe nothing throws on the host, so what is remembered there is always a whole
        // step.
        updates.remember();
        memory.last_good_steps = memory.steps;
        if (const auto name = updates.measure(records, options.max_norm, step.gradient_norm))
            return not_finite("the gradient of parameter '" + *name + "' is not finite");
        if (const auto name = updates.step(records, step.learning_rate))
            return not_finite("parameter '" + *name + "' is not finite after the update");
        memory.steps = step.step;
        memory.sequences = step.sequences;
        if (windowed) std::swap(memory.ongoing, ongoing);
        memory.length = length;
        memory.learnt += 0.1 * (shares.sequence - memory.learnt);
        if (length < options.length && memory.learnt > options.lengthen_at) {
            memory.length = std::min(options.length, length + std::max<index>(1, length / 2));
            memory.learnt = 0;
        }
        step.seconds = memory.seconds = seconds();
        step.done = options.share_over(memory.steps, memory.seconds);
        step.fetch = [&updates] {
            updates.fetch();
            updates.hand_over();
        };
        const clock::time_point paused = clock::now();
        const bool goes_on = observe(std::as_const(step));
        start += clock::now() - paused;
        if (!goes_on) return finish(training_end::stopped);
    }
    return finish(training_end::steps);
}
}  // namespace detail

/// Trains `theta` in place: AdamW on clipped gradients, warm-up and decay. The schedule follows the steps, or
/// the clock where that is ahead, so that the rate also falls to its end when time is short; what observe
/// takes is not counted. A run is reproducible to the bit as long as its time stays behind: (time/time_limit − 0.1)/0.9 < step/steps.
///
/// model(tape, tokens, &how) gives logits [batch,tokens,V], of real inputs model(tape, inputs, &how);
/// sample(tokens, targets, first) fills both [batch,tokens] with the sequences first, first + 1, …, with
/// options.state_passing one whole sequence at a time, see sampler; observe(training_step) returns whether to
/// go on.
///
/// Tape and `how` are the same for all steps: after the first step of a length, steps allocate nothing,
/// unless model, sample or observe do, or the adjoint is `unrolled` or `truncated`, or windows go on. A model
/// resizes `how` and does not append.
///
/// Numbers that are not finite end the training, and theta is what it was when the loss was last finite.
///
/// On a backend with memory of its own theta stays there until the training ends, well or with numbers that
/// are not finite; an observer that wants it earlier calls the step's fetch(). After an exception theta is
/// what was fetched last.
template <class T, class Model, class Sample, class Observe, backend_for<T> Backend = default_backend, class X = T>
training_result train(const Model& model, parameter_tree<T>& theta, const training_options& options, Sample&& sample,
                      Observe&& observe, Backend backend = Backend{}, sequences_as<X> = {}) {
    options.validate();
    training_memory<T> memory(theta, options);
    return detail::train<X>(model, theta, memory, options, sample, observe, backend);
}

/// Goes on from `state`, in place: with equal options, the run is to the bit the one that was never
/// interrupted. Whenever observe is called, and when anything throws, the state is that of the last whole
/// step, on a backend with memory of its own of the last that was fetched, so that an observer can copy or
/// save it:
///
///     training_state<float> state(model.init<float>(seed{0}), options);
///     train(model, state, options, data, [&](const training_step& s) {
///         if (s.step % 1000 == 0) s.fetch(), save_checkpoint(folder, state, configuration);
///         return true;
///     });
///
/// argument_error when the state cannot be one of these options; std::bad_alloc when there is no memory.
template <class T, class Model, class Sample, class Observe, backend_for<T> Backend = default_backend, class X = T>
training_result train(const Model& model, training_state<T>& state, const training_options& options, Sample&& sample,
                      Observe&& observe, Backend backend = Backend{}, sequences_as<X> = {}) {
    return detail::train<X>(model, state.theta, state, options, sample, observe, backend);
}

}  // namespace fprnn
