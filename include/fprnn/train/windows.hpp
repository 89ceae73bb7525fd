#pragma once

#include <fprnn/train/batch.hpp>
#include <fprnn/train/state_passing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fprnn::detail {

/// The windows that a batch of ongoing sequences is at. Of each row it holds the whole sequence, which is
/// asked for when it is not the one that is held, so that a training that is taken up again finds the same.
template <class T, class Batch>
class windows_of {
public:
    windows_of(const state_passing& how, index rows, index length) : how_(how), rows_(rows), length_(length) {}

    /// Where a row's sequence has ended, the next one begins, numbered from `first` on, with a carry of
    /// zeros; their number is returned.
    index begin(ongoing_sequences<T>& rows, index first) const {
        const auto n = static_cast<std::size_t>(rows_);
        const bool are_first = rows.left.empty();
        rows.sequence.resize(n);
        rows.window.resize(n);
        rows.left.resize(n);
        index begun = 0;
        for (std::size_t b = 0; b < n; ++b) {
            if (rows.left[b] > 0) continue;
            // how_.windows · (b + 1) / rows_, rounded up, without a product that may be too large.
            const auto place = static_cast<index>(b) + 1;
            rows.left[b] = are_first ? how_.windows / rows_ * place + (how_.windows % rows_ * place + rows_ - 1) / rows_
                                     : how_.windows;
            rows.window[b] = 0;
            rows.sequence[b] = first + begun++;
            for (auto& carry : rows.carry.blocks) {
                const index width = carry.shape()[1];
                std::fill_n(carry.data() + static_cast<index>(b) * width, width, T(0));
            }
        }
        return begun;
    }
    /// The batch becomes the windows of `part`'s rows.
    void read(const reader_of<Batch>& reader, const ongoing_sequences<T>& rows, rows_of_batch part, Batch& window) {
        held_.resize(static_cast<std::size_t>(rows_), -1);
        whole_.resize(static_cast<std::size_t>(rows_));
        for (index b = part.first; b < part.first + part.count; ++b) {
            const auto row = static_cast<std::size_t>(b);
            if (held_[row] != rows.sequence[row]) read_whole(reader, row, rows.sequence[row]);
        }
        copy(rows, part, &Batch::inputs, window);
        copy(rows, part, &Batch::targets, window);
    }
    /// Asks for the first sequence, so that what the data refuse is known before anything is trained.
    void try_first(const reader_of<Batch>& reader) {
        held_.resize(1, -1);
        whole_.resize(1);
        read_whole(reader, 0, 0);
    }
    /// Each row goes on to its next window, or has ended. is_wrong(b): whether an answer in its window is
    /// wrong.
    template <class IsWrong>
    void advance(ongoing_sequences<T>& rows, const IsWrong& is_wrong) const {
        for (std::size_t b = 0; b < rows.window.size(); ++b) {
            ++rows.window[b];
            --rows.left[b];
            if (how_.ends_when_wrong && is_wrong(static_cast<index>(b))) rows.left[b] = 0;
        }
    }

private:
    void read_whole(const reader_of<Batch>& reader, std::size_t row, index sequence) {
        held_[row] = -1;  // also when this throws
        reader(whole_[row], 1, how_.windows * length_, static_cast<std::uint64_t>(sequence));
        held_[row] = sequence;
    }
    template <class Member>
    void copy(const ongoing_sequences<T>& rows, rows_of_batch part, Member member, Batch& window) const {
        auto& to = window.*member;
        shape extents = (whole_[static_cast<std::size_t>(part.first)].*member).shape();
        const index of_token = extents.count() / (how_.windows * length_);
        extents = extents.rank() == 2 ? shape{part.count, length_} : shape{part.count, length_, of_token};
        if (to.shape() != extents) to.assign(extents);
        const index n = length_ * of_token;
        for (index b = 0; b < part.count; ++b) {
            const auto row = static_cast<std::size_t>(part.first + b);
            std::copy_n((whole_[row].*member).data() + rows.window[row] * n, n, to.data() + b * n);
        }
    }

    state_passing how_;
    index rows_, length_;
    std::vector<index> held_;   ///< numbers of the sequences in whole_, -1 of none
    std::vector<Batch> whole_;  ///< [1, windows · length]
};

}  // namespace fprnn::detail
