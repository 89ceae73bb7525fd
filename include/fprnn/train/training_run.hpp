#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/train/batch.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/training_state.hpp>
#include <fprnn/train/training_step.hpp>
#include <fprnn/train/update.hpp>
#include <fprnn/train/windows.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fprnn::detail {

/// A training of any model on any data. What it asks of them are functions, so that it is compiled once for a
/// number type, a backend and a kind of batch. Whatever throws, parameters and memory are those of the last
/// whole step, on a backend with memory of its own of the last that was fetched.
template <class T, class Backend, class X, class Batch>
class training_run {
public:
    using solutions = fprnn::solutions<T, Backend, X>;
    struct calls {
        reader_of<Batch> read;
        std::function<variable(tape<T, Backend, X>&, const Batch&, solutions&)> model;
        std::function<bool(const training_step&)> observe;  ///< whether to go on
        /// The model from a carry, which becomes that after the batch; empty of a model that takes none.
        std::function<variable(tape<T, Backend, X>&, const Batch&, models::model_carry<T>&, solutions&)> model_from{};
    };

    /// All that is given is used until the training ends. With state_passing the first sequence is asked for.
    /// argument_error when options or memory are out of their range, or a model that takes no carry is to go on.
    training_run(parameter_tree<T>& trained, training_memory<T>& remembered, const training_options& options,
                 Backend& backend, calls others);
    training_run(const training_run&) = delete;
    training_run& operator=(const training_run&) = delete;
    ~training_run();

    /// To be called once.
    training_result operator()();

private:
    using clock = std::chrono::steady_clock;

    /// What the next step does.
    struct plan {
        double done = 0;   ///< share of the training that is over
        index length = 0;  ///< tokens a sequence
        index batch = 0;
        bool goes_on = false;  ///< with windows, from the carry before
    };
    plan next() const;
    /// Forward, backward, update. Returns what was not finite, if anything was; restore_last_good has to follow.
    std::optional<std::string> step(const plan& p);
    /// Which sequences the step is of; returns how many of them begin.
    index begin(const plan& p);
    /// The gradient of the mean over all that counts in the batch.
    std::optional<std::string> gradient(const plan& p);
    /// Of micro-batches first … last − 1 the sum of what counts, times the gradient of its mean: the sum of
    /// their halves' sums, so that its order is not that of the computation.
    std::optional<std::string> sum_of(const plan& p, index first, index last, std::size_t level);
    rows_of_batch rows_of(const plan& p, index micro_batch) const;
    /// Forward and backward of some sequences; the gradient is that of their mean.
    std::optional<std::string> part(const plan& p, rows_of_batch rows, typename Batch::outcome& outcome);
    void read(const plan& p, rows_of_batch rows);
    /// From the sequences' carry, which becomes that after the windows.
    variable model_from_carry(rows_of_batch rows);
    std::optional<std::string> nonfinite_forward(const plan& p, const typename Batch::outcome& outcome);
    /// The gradient, 0 of what is frozen.
    void back(variable loss);
    void add_convergence();
    void scale_gradient(index by, index over);
    /// What there is to say of the step, on its batch and before its update.
    void measure(const plan& p, index begun);
    void advance_windows(const plan& p);
    /// Clips the gradient and changes the parameters; `last_good` becomes what they were.
    std::optional<std::string> update();
    /// The step is whole: memory_ becomes that after it.
    void commit(const plan& p);
    /// Whether the training goes on; the time that observe takes is not the training's.
    bool observe();

    training_result finish(training_end end);
    /// Ends with the parameters whose loss was finite.
    training_result restore_last_good(const std::string& what);
    training_result end_with(training_end end, std::string message = {});

    double seconds() const { return seconds_before_ + std::chrono::duration<double>(clock::now() - start_).count(); }
    index last_step() const { return learning_rate_.total_steps - 1; }
    double learning_rate(double done) const;

    const training_options& options_;
    Backend& backend_;
    calls calls_;
    updates_on<T, Backend> updates_;
    parameter_tree<T>& theta_ = updates_.theta;
    training_memory<T>& memory_ = updates_.memory;
    learning_rate_schedule learning_rate_;

    // What a step needs, kept from step to step: after the first of a length, steps ask for no memory.
    tape<T, Backend, X> records_;
    Batch data_;
    typename Batch::outcome outcome_, of_part_;
    std::vector<parameter_tree<T>> first_halves_;  ///< of each level of sum_of
    models::model_carry<T> carry_of_part_;
    windows_of<T, Batch> windows_;
    ongoing_sequences<T> ongoing_;  ///< of the step that is taken; memory_ has that of the step before
    solutions how_;
    training_step step_;
    convergence_sums forward_, adjoint_;
    std::vector<const convergence*> adjoints_;

    double seconds_before_;
    clock::time_point start_{};  ///< when training began, without the time of observe
};

template <class T, class Backend, class X, class Batch>
training_run<T, Backend, X, Batch>::training_run(parameter_tree<T>& trained, training_memory<T>& remembered,
                                                 const training_options& options, Backend& backend, calls others)
    : options_((options.validate(), remembered.validate(options), options)),
      backend_(backend),
      calls_(std::move(others)),
      updates_(backend, trained, remembered),
      records_(theta_, updates_.there, backend),
      first_halves_(std::bit_width(static_cast<std::size_t>(options.micro_batches - 1)), trained.zeros_like()),
      windows_(options.state_passing.value_or(state_passing{}), options.batch, options.length),
      seconds_before_(remembered.seconds) {
    const index last = std::min(options.steps, std::numeric_limits<index>::max() - 1);
    learning_rate_ = {.peak = options.optimiser.learning_rate,
                      .warmup_steps = std::min(options.warmup(), last),
                      .total_steps = last + 1,  // adamw refuses a rate of 0
                      .decay = options.decay};
    require(options.micro_batches == 1 || host_memory_backend<Backend, T>, "train",
            [] { return std::string("micro_batches must be 1 on a backend with memory of its own"); });
    require(calls_.model_from || !options.state_passing, "train", [] {
        return std::string(
            "state_passing needs the CPU and a model that is callable as model(tape, inputs, carry, &how)");
    });
    if (options.state_passing) windows_.try_first(calls_.read);
}

// What is not inline is in fprnn::compiled.
template <class T, class Backend, class X, class Batch>
training_run<T, Backend, X, Batch>::~training_run() = default;

template <class T, class Backend, class X, class Batch>
training_result training_run<T, Backend, X, Batch>::operator()() {
    start_ = clock::now();
    while (memory_.steps < options_.steps) {
        if (seconds() >= options_.time_limit && memory_.steps > 0) return finish(training_end::time_limit);
        if (const auto what = step(next())) return restore_last_good(*what);
        if (!observe()) return finish(training_end::stopped);
    }
    return finish(training_end::steps);
}

template <class T, class Backend, class X, class Batch>
auto training_run<T, Backend, X, Batch>::next() const -> plan {
    const double done = options_.share_over(memory_.steps, seconds());
    const index length = done >= options_.full_length_at ? options_.length : memory_.length;
    const index batch = std::max<index>(1, options_.batch * options_.length / length);
    return {done, length, batch, options_.goes_on(done, length)};
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::step(const plan& p) {
    const index begun = begin(p);
    if (auto what = gradient(p)) return what;
    measure(p, begun);
    if (p.goes_on) advance_windows(p);
    // From here to observe nothing throws on the host, so what is remembered there is always a whole step.
    if (auto what = update()) return what;
    commit(p);
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
index training_run<T, Backend, X, Batch>::begin(const plan& p) {
    require(memory_.sequences <= std::numeric_limits<index>::max() - p.batch, "train", [&] {
        return "the data have 2^63 - 1 sequences, and " + std::to_string(memory_.sequences) + " have been seen";
    });
    if (!p.goes_on) return p.batch;
    ongoing_ = memory_.ongoing;
    return windows_.begin(ongoing_, memory_.sequences);
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::gradient(const plan& p) {
    forward_.clear();
    adjoint_.clear();
    if (options_.micro_batches == 1) return part(p, {0, p.batch}, outcome_);
    Batch::clear(outcome_);
    if (auto what = sum_of(p, 0, options_.micro_batches, 0)) return what;
    scale_gradient(1, Batch::counted(outcome_));
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::sum_of(const plan& p, index first, index last,
                                                                      std::size_t level) {
    if (last - first == 1) {
        if (auto what = part(p, rows_of(p, first), of_part_)) return what;
        Batch::append(outcome_, of_part_);
        scale_gradient(Batch::counted(of_part_), 1);
        return std::nullopt;
    }
    const index middle = first + (last - first) / 2;
    if (auto what = sum_of(p, first, middle, level + 1)) return what;
    parameter_tree<T>& sum = first_halves_[level];
    std::copy(records_.parameter_bars().begin(), records_.parameter_bars().end(), sum.begin());
    if (auto what = sum_of(p, middle, last, level + 1)) return what;
    std::transform(sum.begin(), sum.end(), records_.parameter_bars().begin(), records_.parameter_bars().begin(),
                   [](T left, T right) { return left + right; });
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
rows_of_batch training_run<T, Backend, X, Batch>::rows_of(const plan& p, index micro_batch) const {
    // batch · micro_batch / micro_batches, rounded down, without a product that may be too large.
    const auto begins_at = [&](index m) {
        const index n = options_.micro_batches;
        return p.batch / n * m + p.batch % n * m / n;
    };
    return {begins_at(micro_batch), begins_at(micro_batch + 1) - begins_at(micro_batch)};
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::part(const plan& p, rows_of_batch rows,
                                                                    typename Batch::outcome& outcome) {
    read(p, rows);
    records_.clear();
    const variable outputs = p.goes_on ? model_from_carry(rows) : calls_.model(records_, data_, how_);
    const variable loss = data_.loss(records_, outputs, outcome, options_.label_smoothing);
    if (auto what = nonfinite_forward(p, outcome)) return what;
    back(loss);
    add_convergence();
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::read(const plan& p, rows_of_batch rows) {
    if (p.goes_on)
        windows_.read(calls_.read, ongoing_, rows, data_);
    else
        calls_.read(data_, rows.count, p.length, static_cast<std::uint64_t>(memory_.sequences + rows.first));
}

template <class T, class Backend, class X, class Batch>
variable training_run<T, Backend, X, Batch>::model_from_carry(rows_of_batch rows) {
    if (options_.micro_batches == 1) return calls_.model_from(records_, data_, ongoing_.carry, how_);
    ongoing_.carry_of(rows, carry_of_part_);
    const variable outputs = calls_.model_from(records_, data_, carry_of_part_, how_);
    ongoing_.set_carry_of(rows, carry_of_part_);
    return outputs;
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::nonfinite_forward(
    const plan& p, const typename Batch::outcome& outcome) {
    if (!math::is_finite(outcome.loss)) {
        updates_.fetch();
        const auto [name, value] = largest_parameter(theta_);
        return "the loss is " + number_text(outcome.loss) + "; the largest parameter is '" + name + "' with " +
               number_text(value);
    }
    if (!p.goes_on) return std::nullopt;
    ongoing_.validate_carry(p.batch);
    for (const tensor<T>& c : ongoing_.carry.blocks)
        if (!std::all_of(c.begin(), c.end(), [](T x) { return math::is_finite(x); }))
            return "a state that the next windows go on from is not finite";
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::back(variable loss) {
    records_.back(loss);
    for (const auto& e : theta_.entries())
        if (options_.is_frozen(e.name)) backend_.fill(e.shape.count(), records_.parameter_bar_data() + e.offset, T(0));
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::add_convergence() {
    forward_.add(how_);
    adjoints_.clear();
    for (const auto& s : how_)
        if (s.adjoint) adjoints_.push_back(s.adjoint.get());
    adjoint_.add(adjoints_);
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::scale_gradient(index by, index over) {
    if (by == over || over == 0) return;
    const T scale = static_cast<T>(by) / static_cast<T>(over);
    for (T& g : records_.parameter_bars()) g *= scale;
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::measure(const plan& p, index begun) {
    accuracies shares;
    if constexpr (Batch::has_classes) shares = measure_accuracy(outcome_.answers, p.batch, p.length);
    step_ = {.step = memory_.steps + 1,
             .length = p.length,
             .sequences = memory_.sequences + begun,
             .loss = outcome_.loss,
             .token_accuracy = shares.token,
             .sequence_accuracy = shares.sequence,
             .learning_rate = learning_rate(p.done)};
    if (const auto c = forward_.summary(p.length)) {
        step_.iterations = c->median_iterations;
        step_.share_converged = c->share_converged;
    }
    if (const auto c = adjoint_.summary(p.length)) {
        step_.adjoint_iterations = c->median_iterations;
        step_.adjoint_share_converged = c->share_converged;
    }
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::advance_windows(const plan& p) {
    windows_.advance(ongoing_, [&](index b) {
        if constexpr (Batch::has_classes) {
            const auto row = outcome_.answers.begin() + b * p.length;
            return std::find(row, row + p.length, answer::wrong) != row + p.length;
        }
        return false;
    });
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> training_run<T, Backend, X, Batch>::update() {
    updates_.remember();
    memory_.last_good_steps = memory_.steps;
    if (const auto name = updates_.measure(records_, options_.max_norm, step_.gradient_norm))
        return "the gradient of parameter '" + *name + "' is not finite";
    if (const auto name = updates_.step(records_, step_.learning_rate))
        return "parameter '" + *name + "' is not finite after the update";
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
void training_run<T, Backend, X, Batch>::commit(const plan& p) {
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
    const bool goes_on = calls_.observe(std::as_const(step_));
    start_ += clock::now() - paused;
    return goes_on;
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
