#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/tape/tape.hpp>
#include <fprnn/train/batch.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/ranks.hpp>
#include <fprnn/train/training_options.hpp>
#include <fprnn/train/windows.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fprnn::detail {

/// What a step is of.
struct step_plan {
    double done = 0;   ///< share of the training that is over
    index length = 0;  ///< tokens a sequence
    index batch = 0;
    index first = 0;       ///< number of the batch's first sequence, with windows of the first that begins
    bool goes_on = false;  ///< with windows, from the carry before
};

/// The gradient of a loss that is the mean over all that counts in a batch, of any model and data. The batch
/// is computed in micro-batches, by all ranks together if there are several: the bits depend on the number of
/// micro-batches and not on who computes which.
template <class T, class Backend, class X, class Batch>
class batch_gradient {
public:
    using solutions = fprnn::solutions<T, Backend, X>;
    struct calls {
        reader_of<Batch> read;
        std::function<variable(tape<T, Backend, X>&, const Batch&, solutions&)> model;
        /// The model from a carry, which becomes that after the batch; empty of a model that takes none.
        std::function<variable(tape<T, Backend, X>&, const Batch&, models::model_carry<T>&, solutions&)> model_from{};
        index most_tokens = std::numeric_limits<index>::max();  ///< of a sequence, all of its windows
    };

    /// All that is given is used by later calls. argument_error when the options cannot be those of the
    /// backend, the model or so many ranks.
    batch_gradient(const parameter_tree<T>& theta, const parameters_on<T, Backend>& there,
                   const training_options& options, Backend& backend, calls others, ranks* together);
    batch_gradient(const batch_gradient&) = delete;
    batch_gradient& operator=(const batch_gradient&) = delete;
    ~batch_gradient();

    /// Sequences that have ended give way to the next ones; returns how many of the plan's begin.
    index begin(const step_plan& plan, ongoing_sequences<T>& ongoing) const;
    /// Computes it, on the tape. Returns what was not finite, if anything was.
    std::optional<std::string> operator()(const step_plan& plan, ongoing_sequences<T>& ongoing);
    /// Rows go on to their next windows, as the answers say.
    void advance(ongoing_sequences<T>& ongoing) const;

    tape<T, Backend, X>& records() { return records_; }
    /// Of the whole batch.
    const typename Batch::outcome& outcome() const { return outcome_; }
    convergence_sums& forward() { return forward_; }
    convergence_sums& adjoint() { return adjoint_; }

private:
    /// Of micro-batches first … last − 1 the sum of what counts, times the gradient of its mean: the sum of
    /// their halves' sums, which is computed where `first` is.
    void sum_of(const step_plan& plan, ongoing_sequences<T>& ongoing, index first, index last, std::size_t level);
    rows_of_batch rows_of(const step_plan& plan, index micro_batch) const;
    /// Forward and backward of some sequences; the gradient is that of their mean.
    void part(const step_plan& plan, ongoing_sequences<T>& ongoing, rows_of_batch rows,
              typename Batch::outcome& outcome);
    /// From the sequences' carry, which becomes that after the windows.
    variable model_from_carry(ongoing_sequences<T>& ongoing, rows_of_batch rows);
    std::optional<std::string> nonfinite_forward(const step_plan& plan, const ongoing_sequences<T>& ongoing,
                                                 const typename Batch::outcome& outcome) const;
    /// The gradient, 0 of what is frozen.
    void back(variable loss);
    void add_convergence();
    void scale(index by, index over);
    /// What models, methods and data are shows in what they compute. Errors: with equal parameters a rank has
    /// another loss or gradient of the first sequences.
    void require_equal_gradients();
    /// All ranks learn what each has computed.
    void share(const step_plan& plan, ongoing_sequences<T>& ongoing);

    index rank() const { return together_ ? together_->rank() : 0; }
    index size() const { return together_ ? together_->size() : 1; }
    index owner(index micro_batch) const { return owner_of(micro_batch, options_.micro_batches, size()); }

    const parameter_tree<T>& theta_;
    const training_options& options_;
    Backend& backend_;
    calls calls_;
    ranks* together_;

    // What a step needs, kept from step to step: after the first of a length, steps ask for no memory.
    tape<T, Backend, X> records_;
    windows_of<T, Batch> windows_;
    Batch data_;
    typename Batch::outcome outcome_, of_part_;
    std::vector<parameter_tree<T>> first_halves_;  ///< of each level of sum_of
    models::model_carry<T> carry_of_part_;
    solutions how_;
    convergence_sums forward_, adjoint_;
    std::vector<const convergence*> adjoints_;
    std::optional<std::string> nonfinite_;
};

template <class T, class Backend, class X, class Batch>
batch_gradient<T, Backend, X, Batch>::batch_gradient(const parameter_tree<T>& theta,
                                                     const parameters_on<T, Backend>& there,
                                                     const training_options& options, Backend& backend, calls others,
                                                     ranks* together)
    : theta_(theta),
      options_(options),
      backend_(backend),
      calls_(std::move(others)),
      together_(together),
      records_(theta, there, backend),
      windows_(options.state_passing.value_or(state_passing{}), options.batch, options.length),
      first_halves_(std::bit_width(static_cast<std::size_t>(options.micro_batches - 1)), theta.zeros_like()) {
    require(options.micro_batches == 1 || host_memory_backend<Backend, T>, "train",
            [] { return std::string("micro_batches must be 1 on a backend with memory of its own"); });
    require(options.micro_batches >= size(), "train", [&] {
        return "micro_batches must be at least the number of ranks = " + std::to_string(size()) + ", got " +
               std::to_string(options.micro_batches);
    });
    require(calls_.model_from || !options.state_passing, "train", [] {
        return std::string(
            "state_passing needs the CPU and a model that is callable as model(tape, inputs, carry, &how)");
    });
    if (options.state_passing) {
        const index windows = options.state_passing->windows;
        require(windows * options.length <= calls_.most_tokens, "train", [&] {
            return "state_passing: a sequence must have at most " + std::to_string(calls_.most_tokens) +
                   " tokens, the context of the model's attention, got " + std::to_string(windows) + " windows of " +
                   std::to_string(options.length);
        });
        windows_.try_first(calls_.read);
    }
    if (size() > 1) require_equal_gradients();
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::require_equal_gradients() {
    const auto squares = [](const parameter_tree<T>& tree) {
        double sum = 0;
        for (const T x : tree) sum += static_cast<double>(x) * static_cast<double>(x);
        return sum;
    };
    double mine[] = {squares(theta_), 0, 0};
    ongoing_sequences<T> none;
    for (index b = 0; b < std::min<index>(options_.batch, 4); ++b) {  // in the memory of one
        part({.length = options_.length, .batch = 1, .first = b}, none, {0, 1}, of_part_);
        mine[1] += static_cast<double>(of_part_.loss);
        mine[2] += squares(records_.parameter_bars());
    }
    const auto all = together_->gather(std::as_bytes(std::span<const double>(mine)));
    constexpr auto of_parameters = static_cast<std::ptrdiff_t>(sizeof(double));
    // Other parameters are refused by the step that they are used in.
    for (std::size_t r = 1; r < all.size(); ++r)
        require(!std::equal(all[0].begin(), all[0].begin() + of_parameters, all[r].begin()) || all[r] == all[0],
                "train", [&] {
                    return "rank " + std::to_string(r) +
                           " has another loss or gradient of the first sequences than rank 0: models, schedules, "
                           "adjoints and data must be equal";
                });
}

// What is not inline is in fprnn::compiled.
template <class T, class Backend, class X, class Batch>
batch_gradient<T, Backend, X, Batch>::~batch_gradient() = default;

template <class T, class Backend, class X, class Batch>
index batch_gradient<T, Backend, X, Batch>::begin(const step_plan& plan, ongoing_sequences<T>& ongoing) const {
    return plan.goes_on ? windows_.begin(ongoing, plan.first) : plan.batch;
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> batch_gradient<T, Backend, X, Batch>::operator()(const step_plan& plan,
                                                                            ongoing_sequences<T>& ongoing) {
    forward_.clear();
    adjoint_.clear();
    nonfinite_.reset();
    if (options_.micro_batches == 1) {
        part(plan, ongoing, {0, plan.batch}, outcome_);
        return nonfinite_;
    }
    Batch::clear(outcome_);
    sum_of(plan, ongoing, 0, options_.micro_batches, 0);
    if (size() > 1) share(plan, ongoing);
    scale(1, Batch::counted(outcome_));
    return nonfinite_;
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::sum_of(const step_plan& plan, ongoing_sequences<T>& ongoing, index first,
                                                  index last, std::size_t level) {
    const share_of_rank mine = share_of(options_.micro_batches, size(), rank());
    if (last <= mine.first || first >= mine.last) return;
    if (last - first == 1) {
        if (nonfinite_) return;
        part(plan, ongoing, rows_of(plan, first), of_part_);
        Batch::append(outcome_, of_part_);
        scale(Batch::counted(of_part_), 1);
        return;
    }
    const index middle = first + (last - first) / 2, left = owner(first), right = owner(middle);
    parameter_tree<T>&sum = records_.parameter_bars(), &other = first_halves_[level];
    const auto add = [](T of_left, T of_right) { return of_left + of_right; };

    sum_of(plan, ongoing, first, middle, level + 1);
    if (left == right && left == rank()) std::copy(sum.begin(), sum.end(), other.begin());
    sum_of(plan, ongoing, middle, last, level + 1);
    if (left == right && left == rank()) {
        std::transform(other.begin(), other.end(), sum.begin(), sum.begin(), add);
    } else if (left == rank()) {
        together_->receive(bytes_of(other), right);
        std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), add);
    } else if (right == rank()) {
        together_->send(std::as_bytes(std::span(sum.begin(), sum.end())), left);
    }
}

template <class T, class Backend, class X, class Batch>
rows_of_batch batch_gradient<T, Backend, X, Batch>::rows_of(const step_plan& plan, index micro_batch) const {
    const auto [first, last] = share_of(plan.batch, options_.micro_batches, micro_batch);
    return {first, last - first};
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::part(const step_plan& plan, ongoing_sequences<T>& ongoing,
                                                rows_of_batch rows, typename Batch::outcome& outcome) {
    if (plan.goes_on)
        windows_.read(calls_.read, ongoing, rows, data_);
    else
        calls_.read(data_, rows.count, plan.length, static_cast<std::uint64_t>(plan.first + rows.first));
    records_.clear();
    const variable outputs = plan.goes_on ? model_from_carry(ongoing, rows) : calls_.model(records_, data_, how_);
    const variable loss = data_.loss(records_, outputs, outcome, options_.label_smoothing);
    nonfinite_ = nonfinite_forward(plan, ongoing, outcome);
    if (nonfinite_) return;
    back(loss);
    add_convergence();
}

template <class T, class Backend, class X, class Batch>
variable batch_gradient<T, Backend, X, Batch>::model_from_carry(ongoing_sequences<T>& ongoing, rows_of_batch rows) {
    if (options_.micro_batches == 1) return calls_.model_from(records_, data_, ongoing.carry, how_);
    ongoing.carry_of(rows, carry_of_part_);
    const variable outputs = calls_.model_from(records_, data_, carry_of_part_, how_);
    ongoing.set_carry_of(rows, carry_of_part_);
    return outputs;
}

template <class T, class Backend, class X, class Batch>
std::optional<std::string> batch_gradient<T, Backend, X, Batch>::nonfinite_forward(
    const step_plan& plan, const ongoing_sequences<T>& ongoing, const typename Batch::outcome& outcome) const {
    if (!math::is_finite(outcome.loss)) return "the loss is " + number_text(outcome.loss);
    if (!plan.goes_on) return std::nullopt;
    ongoing.validate_carry(plan.batch);
    for (const tensor<T>& c : ongoing.carry.blocks)
        if (!std::all_of(c.begin(), c.end(), [](T x) { return math::is_finite(x); }))
            return "a state that the next windows go on from is not finite";
    return std::nullopt;
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::back(variable loss) {
    records_.back(loss);
    for (const auto& e : theta_.entries())
        if (options_.is_frozen(e.name)) backend_.fill(e.shape.count(), records_.parameter_bar_data() + e.offset, T(0));
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::add_convergence() {
    forward_.add(how_);
    adjoints_.clear();
    for (const auto& s : how_)
        if (s.adjoint) adjoints_.push_back(s.adjoint.get());
    adjoint_.add(adjoints_);
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::scale(index by, index over) {
    if (by == over || over == 0) return;
    const T factor = static_cast<T>(by) / static_cast<T>(over);
    for (T& g : records_.parameter_bars()) g *= factor;
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::share(const step_plan& plan, ongoing_sequences<T>& ongoing) {
    parameter_tree<T>& sum = records_.parameter_bars();
    together_->broadcast(std::as_writable_bytes(std::span(sum.begin(), sum.end())));

    const auto rows_of_rank = [&](index r) {
        const auto [first, last] = share_of(options_.micro_batches, size(), r);  // one at least
        const rows_of_batch begin = rows_of(plan, first), end = rows_of(plan, last - 1);
        return rows_of_batch{begin.first, end.first + end.count - begin.first};
    };
    packed mine;
    mine.put(checksum(theta_)).put(std::string_view(nonfinite_ ? *nonfinite_ : std::string()));
    Batch::put(mine, outcome_);
    forward_.put(mine);
    adjoint_.put(mine);
    if (plan.goes_on) {
        ongoing.carry_of(rows_of_rank(rank()), carry_of_part_);
        mine.put(carry_of_part_.blocks.size());
        for (const tensor<T>& block : carry_of_part_.blocks) mine.put(std::vector<T>(block.begin(), block.end()));
    }
    auto all = together_->gather(mine.bytes());

    Batch::clear(outcome_);
    forward_.clear();
    adjoint_.clear();
    nonfinite_.reset();
    std::uint64_t of_rank_0 = 0;
    for (index r = 0; r < size(); ++r) {
        packed one(std::move(all[static_cast<std::size_t>(r)]));
        const auto parameters = one.get<std::uint64_t>();
        if (r == 0) of_rank_0 = parameters;
        require(parameters == of_rank_0, "train", [&] {
            return "rank " + std::to_string(r) +
                   " has other parameters than rank 0: its processor or its program computes other bits";
        });
        if (auto what = one.get_text(); !what.empty() && !nonfinite_) nonfinite_ = std::move(what);
        Batch::append(outcome_, Batch::get(one));
        forward_.add(one);
        adjoint_.add(one);
        if (!plan.goes_on) continue;
        const rows_of_batch rows = rows_of_rank(r);
        carry_of_part_.blocks.resize(one.get<std::size_t>());
        for (tensor<T>& block : carry_of_part_.blocks) {
            const auto numbers = one.template get_vector<T>();
            block.assign({rows.count, static_cast<index>(numbers.size()) / rows.count});
            std::copy(numbers.begin(), numbers.end(), block.begin());
        }
        ongoing.set_carry_of(rows, carry_of_part_);
    }
}

template <class T, class Backend, class X, class Batch>
void batch_gradient<T, Backend, X, Batch>::advance(ongoing_sequences<T>& ongoing) const {
    windows_.advance(ongoing, [&](index b) {
        if constexpr (Batch::has_classes) {
            const auto length = static_cast<index>(outcome_.answers.size() / ongoing.left.size());
            const auto row = outcome_.answers.begin() + b * length;
            return std::find(row, row + length, answer::wrong) != row + length;
        }
        return false;
    });
}

}  // namespace fprnn::detail
