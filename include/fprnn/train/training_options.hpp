#pragma once

#include <fprnn/train/adamw.hpp>
#include <fprnn/train/schedule.hpp>
#include <fprnn/train/state_passing.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fprnn {

struct training_options {
    index batch = 128;  ///< sequences a step
    /// Parts of a batch, one computed after the other, whose gradients are added pairwise, in an order that
    /// is the same wherever they were computed: a step needs memory for the sequences of one. On the CPU.
    index micro_batches = 1;
    index length = 16;  ///< tokens a sequence
    /// Tokens of the first sequences; `length` or more: no curriculum. They grow by half, up to `length`,
    /// whenever `lengthen_at` of them are without a mistake, and are `length` after `full_length_at` of the
    /// training in any case. A step has as many tokens at any length. Real targets are never without a
    /// mistake: with them it is the second alone that lengthens.
    index first_length = std::numeric_limits<index>::max();
    double lengthen_at = 0.5;      ///< share of sequences, averaged over about ten steps
    double full_length_at = 0.75;  ///< share of the training, in [0,1]
    index steps = 3000;
    double time_limit = std::numeric_limits<double>::infinity();  ///< seconds of training, without those of observe
    adamw_options optimiser{};
    std::optional<index> warmup_steps{};        ///< none: 200, or half of the steps where they are fewer than 400
    fprnn::decay decay = fprnn::decay::cosine;  ///< to almost 0 at the last step
    double max_norm = 1;  ///< of the gradient, all parameters together; a longer one is scaled to it
    /// Share ε of a label, in [0,1), that all classes have equally (label smoothing), so that logits have a
    /// best size instead of growing for as long as answers are right. The loss of a step is that of these
    /// labels, evaluate's is not. Real targets have none.
    double label_smoothing = 0;
    /// Parameters that stay as they are, by name, "embedding", or by what their names begin with, "blocks.0"
    /// for "blocks.0.norm.weight". The gradient's norm is that of the others.
    std::vector<std::string> frozen{};
    /// Windows that go on from the carry before, once sequences have their full length; none: all sequences
    /// begin and end in one step. On the CPU, of a model that is callable as model(tape, inputs, carry,
    /// &how), carry being a models::model_carry<T>&.
    std::optional<fprnn::state_passing> state_passing{};

    bool is_frozen(std::string_view parameter) const {
        return std::any_of(frozen.begin(), frozen.end(), [&](const std::string& name) {
            return parameter.starts_with(name) && (parameter.size() == name.size() || parameter[name.size()] == '.');
        });
    }

    /// The share of the training that is over after so many steps and seconds, in [0,1]: by the steps, or by
    /// the clock where that is ahead. The clock counts from a tenth of its limit on, so that a slow start
    /// does not move a run that has time enough.
    double share_over(index steps_taken, double seconds) const {
        constexpr double slack = 0.1;
        const double by_steps = static_cast<double>(steps_taken) / static_cast<double>(steps);
        return std::clamp((seconds / time_limit - slack) / (1 - slack), by_steps, 1.0);
    }

    /// Whether a step goes on with the windows of its sequences, when such a share of the training is over
    /// and sequences are that long.
    bool goes_on(double done, index tokens) const {
        return state_passing && tokens == length && done >= state_passing->from;
    }

    /// The steps in which the learning rate rises.
    index warmup() const { return warmup_steps.value_or(std::min<index>(200, steps / 2)); }

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
        (void)checked_product(batch, length, "train: batch * length");
        at_least("micro_batches", micro_batches, 1);
        require(micro_batches <= batch, "train", [&] {
            return "micro_batches must be at most batch = " + std::to_string(batch) + ", got " +
                   std::to_string(micro_batches);
        });
        at_least("first_length", first_length, 1);
        require(lengthen_at >= 0 && lengthen_at < 1, "train",
                [&] { return "lengthen_at must be in [0,1), got " + detail::number_text(lengthen_at); });
        require(full_length_at >= 0 && full_length_at <= 1, "train",
                [&] { return "full_length_at must be in [0,1], got " + detail::number_text(full_length_at); });
        at_least("steps", steps, 1);
        at_least("warmup_steps", warmup(), 0);
        require(warmup() <= steps, "train", [&] {
            return "warmup_steps must be at most steps = " + std::to_string(steps) + ", got " +
                   std::to_string(warmup());
        });
        require(time_limit > 0, "train",
                [&] { return "time_limit must be positive, got " + detail::number_text(time_limit); });
        require(max_norm > 0, "train",
                [&] { return "max_norm must be positive, got " + detail::number_text(max_norm); });
        require(label_smoothing >= 0 && label_smoothing < 1, "train",
                [&] { return "label_smoothing must be in [0,1), got " + detail::number_text(label_smoothing); });
        if (state_passing) state_passing->validate(batch, length);
    }
};

}  // namespace fprnn
