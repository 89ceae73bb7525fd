#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/models/model_carry.hpp>

#include <string>
#include <vector>

namespace fprnn {

/// Training in windows that go on: a step trains the next window of each of its sequences, from the carry that
/// the window before ended with, so that states are met in training which no short sequence leads to.
/// Gradients end where a window begins (truncated back-propagation through time). A sequence is `windows` ·
/// `training_options::length` tokens long, and when it ends, another takes its row. Data are asked for one
/// sequence at a time, of all its tokens, the inputs and targets of a window being tokens of these.
/// Source: Buitrago and Gu 2025, arXiv 2507.02782.
struct state_passing {
    index windows = 64;
    double from = 0.5;  ///< share of the training, in [0,1], before which sequences are one window, from the beginning
    /// A sequence also ends with a window that has a wrong answer: where the state already stands for something
    /// else, what follows cannot be answered. Not for data of which no window is ever without a mistake, such
    /// as text.
    bool ends_when_wrong = true;

    /// argument_error when a member is out of its range, or a sequence of windows of `length` tokens.
    void validate(index length) const;
};

inline void state_passing::validate(index length) const {
    require(windows >= 1, "train",
            [&] { return "state_passing.windows must be at least 1, got " + std::to_string(windows); });
    require(from >= 0 && from <= 1, "train",
            [&] { return "state_passing.from must be in [0,1], got " + detail::number_text(from); });
    (void)checked_product(windows, length, "train: state_passing.windows * length");
}

/// The sequences of a batch that goes on.
template <class T>
struct ongoing_sequences {
    std::vector<index> sequence;   ///< of each row: its number among the data
    std::vector<index> window;     ///< of each row: its next one, 0 where another sequence begins
    models::model_carry<T> carry;  ///< in which the windows before ended
};

}  // namespace fprnn
