#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/train/training_options.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace fprnn {

/// What a training remembers beside its parameters.
template <class T>
struct training_memory {
    adamw<T> optimiser;
    parameter_tree<T> last_good;  ///< whose loss was finite; the parameters go back to them when one is not
    index last_good_steps = 0;    ///< updates that these have seen
    index steps = 0;              ///< updates so far
    index sequences = 0;          ///< seen so far; the next step's data begin there
    index length = 0;             ///< tokens of the next sequences
    double learnt = 0;            ///< share of sequences without a mistake, averaged over about ten steps
    double seconds = 0;           ///< spent so far, by all processes that have trained

    training_memory(const parameter_tree<T>& theta, const training_options& options)
        : optimiser(theta, options.optimiser),
          last_good(theta),
          length(std::min(options.first_length, options.length)) {}

    /// argument_error when a training with these options cannot be here.
    void validate(const training_options& options) const {
        const auto within = [](const char* name, index value, index least, index most) {
            require(value >= least && value <= most, "train", [&] {
                return std::string("the state's ") + name + " must be in [" + std::to_string(least) + "," +
                       std::to_string(most) + "], got " + std::to_string(value);
            });
        };
        within("steps", steps, 0, options.steps);
        within("last_good_steps", last_good_steps, 0, steps);
        within("sequences", sequences, 0, std::numeric_limits<index>::max());
        within("length", length, 1, options.length);
        require(learnt >= 0 && learnt <= 1, "train",
                [&] { return "the state's learnt must be in [0,1], got " + detail::number_text(learnt); });
        require(seconds >= 0 && math::is_finite(seconds), "train",
                [&] { return "the state's seconds must be at least 0, got " + detail::number_text(seconds); });
        require(optimiser.steps() == steps, "train", [&] {
            return "the state's optimiser has taken " + std::to_string(optimiser.steps()) + " steps, expected " +
                   std::to_string(steps) + "; a training that ended with numbers that are not finite cannot go on";
        });
        require(optimiser.options() == options.optimiser, "train",
                [] { return "the state was made with other options of the optimiser"; });
    }
};

/// All that the rest of a training depends on, beside model, data and options: a copy of it, trained on, gives the same bits
/// as the training that was copied. It is a value, and io/checkpoint.hpp writes it to a file.
template <class T>
struct training_state : training_memory<T> {
    parameter_tree<T> theta;

    /// The beginning.
    training_state(parameter_tree<T> parameters, const training_options& options)
        : training_memory<T>(parameters, options), theta(std::move(parameters)) {}
};

}  // namespace fprnn
