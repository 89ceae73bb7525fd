#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/models/model_carry.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace fprnn {

/// Training in windows that go on: a step trains the next window of each of its sequences, from the carry
/// that the window before ended with, so that states are met in training which no short sequence leads to.
/// Gradients end where a window begins (truncated back-propagation through time). A sequence is `windows` ·
/// `training_options::length` tokens long, and when it ends, another takes its row. Data are asked for one
/// sequence at a time, of all its tokens, and held: `batch` · `windows` · `length` tokens with their targets.
/// The first sequence of a row has fewer windows, by its place in the batch, so that rows end at different
/// times. Every window needs answers: one without any has no gradient. A model with attention needs room for
/// a whole sequence (model_dims::context). Source: Buitrago and Gu 2025, arXiv 2507.02782.
struct state_passing {
    index windows = 64;
    /// Share of the training, in [0,1], before which sequences are one window, from the beginning; so are
    /// those of a curriculum as long as they are shorter than `length`.
    double from = 0.5;
    /// A sequence also ends with a window that has a wrong answer: where the state already stands for
    /// something else, what follows cannot be answered. Not for data of which no window is ever without a
    /// mistake, such as text; real targets have no wrong answers.
    bool ends_when_wrong = true;

    /// argument_error when a member is out of its range, or a batch of such sequences has too many tokens.
    void validate(index batch, index length) const;
};

inline void state_passing::validate(index batch, index length) const {
    require(windows >= 1, "train",
            [&] { return "state_passing.windows must be at least 1, got " + std::to_string(windows); });
    require(from >= 0 && from <= 1, "train",
            [&] { return "state_passing.from must be in [0,1], got " + detail::number_text(from); });
    (void)checked_product(checked_product(batch, length, "train: batch * length"), windows,
                          "train: batch * length * state_passing.windows");
}

namespace detail {
/// Consecutive sequences of a batch.
struct rows_of_batch {
    index first = 0, count = 0;
};
}  // namespace detail

/// The sequences of a batch that goes on.
template <class T>
struct ongoing_sequences {
    std::vector<index> sequence;   ///< of each row: its number among the data
    std::vector<index> window;     ///< of each row: the next one of its sequence, counted from 0
    std::vector<index> left;       ///< of each row: windows still to come, 0 where another sequence begins
    models::model_carry<T> carry;  ///< in which the windows before ended

    /// The carry of some rows; none where there is none yet.
    void carry_of(detail::rows_of_batch rows, models::model_carry<T>& part) const {
        part.blocks.resize(carry.blocks.size());
        for (std::size_t i = 0; i < part.blocks.size(); ++i) {
            const index width = carry.blocks[i].shape()[1];
            part.blocks[i].assign({rows.count, width});
            std::copy_n(carry.blocks[i].data() + rows.first * width, rows.count * width, part.blocks[i].data());
        }
    }
    void set_carry_of(detail::rows_of_batch rows, const models::model_carry<T>& part) {
        const bool is_first = carry.blocks.empty();
        carry.blocks.resize(part.blocks.size());
        for (std::size_t i = 0; i < part.blocks.size(); ++i) {
            const index width = part.blocks[i].shape()[1];
            if (is_first) carry.blocks[i].assign({static_cast<index>(left.size()), width});
            std::copy_n(part.blocks[i].data(), rows.count * width, carry.blocks[i].data() + rows.first * width);
        }
    }

    /// argument_error unless all of it is of the same rows, of sequences of so many windows, of which so many
    /// have begun.
    void validate(index windows, index begun) const;
    /// argument_error unless the carry is [rows, numbers] in every block.
    void validate_carry(index rows) const {
        for (const tensor<T>& c : carry.blocks)
            require(c.shape().rank() == 2 && c.shape()[0] == rows, "train", [&] {
                return "the carry that windows go on from must be [" + std::to_string(rows) +
                       ",numbers] in every block, got " + c.shape().to_string();
            });
    }
};

template <class T>
void ongoing_sequences<T>::validate(index windows, index begun) const {
    const auto refuse_unless = [](bool holds, const char* name, const std::string& expected, auto got) {
        require(holds, "train", [&] {
            return std::string("the state's ongoing ") + name + " must be " + expected + ", got " + std::to_string(got);
        });
    };
    const std::string as_left = "of as many rows as left, " + std::to_string(left.size());
    refuse_unless(sequence.size() == left.size(), "sequence", as_left, sequence.size());
    refuse_unless(window.size() == left.size(), "window", as_left, window.size());
    for (std::size_t b = 0; b < left.size(); ++b) {
        const auto within = [&](const char* name, index value, index most) {
            refuse_unless(value >= 0 && value <= most, name, "in [0," + std::to_string(most) + "]", value);
        };
        within("sequence", sequence[b], begun - 1);
        within("window", window[b], windows);
        within("left", left[b], windows - window[b]);
        refuse_unless(left[b] == 0 || !carry.blocks.empty(), "carry", "there where windows are left", 0);
    }
    validate_carry(static_cast<index>(left.size()));
}

}  // namespace fprnn
