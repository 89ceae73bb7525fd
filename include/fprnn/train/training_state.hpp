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
    parameter_tree<T> last_good;     ///< whose loss was finite; the parameters go back to them when one is not
    index last_good_steps = 0;       ///< updates that these have seen
    index steps = 0;                 ///< updates so far
    index sequences = 0;             ///< seen so far; the next step's data begin there
    index length = 0;                ///< tokens of the next sequences
    double learnt = 0;               ///< share of sequences without a mistake, averaged over about ten steps
    double seconds = 0;              ///< spent so far, by all processes that have trained
    ongoing_sequences<T> ongoing{};  ///< of options.state_passing, once windows go on

    /// argument_error when options.frozen has a name of no parameter, or the names of all.
    training_memory(const parameter_tree<T>& theta, const training_options& options);

    /// argument_error when a training with these options cannot be here.
    void validate(const training_options& options) const;

private:
    void validate_ongoing(const training_options& options) const;
    void validate_frozen(const training_options& options) const;
    static void require_names(const parameter_tree<T>& theta, const training_options& options);
    /// The parameters, of which those that are frozen do not decay: AdamW leaves what neither decays nor has
    /// a gradient as it is.
    static parameter_tree<T> moving(parameter_tree<T> theta, const training_options& options);
};

/// All that the rest of a training depends on, beside model, data and options: a copy of it, trained on,
/// gives the same bits as the training that was copied. It is a value, and io/checkpoint.hpp writes it to a
/// file.
template <class T>
struct training_state : training_memory<T> {
    parameter_tree<T> theta;

    /// The beginning.
    training_state(parameter_tree<T> parameters, const training_options& options)
        : training_memory<T>(parameters, options), theta(std::move(parameters)) {}
};

template <class T>
training_memory<T>::training_memory(const parameter_tree<T>& theta, const training_options& options)
    : optimiser(moving(theta, options), options.optimiser),
      last_good(theta),
      length(std::min(options.first_length, options.length)) {}

template <class T>
void training_memory<T>::validate(const training_options& options) const {
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
            [&] { return "the state's seconds must be at least 0 and finite, got " + detail::number_text(seconds); });
    validate_ongoing(options);
    require(optimiser.steps() == steps, "train", [&] {
        return "the state's optimiser has taken " + std::to_string(optimiser.steps()) + " steps, expected " +
               std::to_string(steps) + "; a training that ended with numbers that are not finite cannot go on";
    });
    for (const auto& [name, option] :
         {std::pair("learning_rate", &adamw_options::learning_rate), std::pair("beta1", &adamw_options::beta1),
          std::pair("beta2", &adamw_options::beta2), std::pair("epsilon", &adamw_options::epsilon),
          std::pair("weight_decay", &adamw_options::weight_decay)})
        require(optimiser.options().*option == options.optimiser.*option, "train", [&, n = name, o = option] {
            return std::string("the optimiser's ") + n + " must be that of the state, " +
                   detail::number_text(optimiser.options().*o) + ", got " + detail::number_text(options.optimiser.*o);
        });
    validate_frozen(options);
}

/// Frozen parameters have moved in no step: AdamW goes on with what its moments are.
template <class T>
void training_memory<T>::validate_frozen(const training_options& options) const {
    require_names(last_good, options);
    const auto &all = last_good.entries(), &moments = optimiser.first_moment().entries();
    const auto is_zero = [](T x) { return x == T(0); };
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool frozen = options.is_frozen(all[i].name);
        const T* first = optimiser.first_moment().data() + moments[i].offset;
        require(moments[i].decay == (all[i].decay && !frozen) &&
                    (!frozen || std::all_of(first, first + moments[i].shape.count(), is_zero)),
                "train", [&] { return "the state was made with other frozen parameters: '" + all[i].name + "'"; });
    }
}

template <class T>
void training_memory<T>::validate_ongoing(const training_options& options) const {
    const auto rows = static_cast<index>(ongoing.left.size());
    require(rows == 0 || (options.state_passing && rows == options.batch), "train", [&] {
        return "the state's sequences go on in " + std::to_string(rows) + " rows, expected " +
               (options.state_passing ? std::to_string(options.batch) + ", the batch" : "none");
    });
    if (options.state_passing) ongoing.validate(options.state_passing->windows, sequences);
}

template <class T>
parameter_tree<T> training_memory<T>::moving(parameter_tree<T> theta, const training_options& options) {
    require_names(theta, options);
    const auto entries = theta.entries();
    for (const auto& e : entries)
        if (options.is_frozen(e.name)) theta.set_decay(e.name, false);
    return theta;
}

template <class T>
void training_memory<T>::require_names(const parameter_tree<T>& theta, const training_options& options) {
    const auto& entries = theta.entries();
    for (const std::string& name : options.frozen) {
        const auto names = [&](const auto& e) { return training_options{.frozen = {name}}.is_frozen(e.name); };
        require(std::any_of(entries.begin(), entries.end(), names), "train",
                [&] { return "frozen: expected parameters or beginnings of their names, got '" + name + "'"; });
    }
    const auto is_frozen = [&](const auto& e) { return options.is_frozen(e.name); };
    require(options.frozen.empty() || !std::all_of(entries.begin(), entries.end(), is_frozen), "train",
            [] { return "frozen: expected to leave a parameter that is trained, got all of them"; });
}

}  // namespace fprnn
