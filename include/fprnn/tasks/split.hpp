#pragma once

#include <fprnn/core/random.hpp>
#include <fprnn/core/tensor.hpp>

#include <cstdint>
#include <string>

namespace fprnn {

/// The parts of a task's data. Sequences that are made for one of them share no stream of random numbers with
/// those of the others, whatever the seeds. Equal sequences can still be drawn by chance, which matters where
/// there are not many.
enum class split { train, validation, test };

namespace detail {

inline const char* name_of(split part) {
    return part == split::train ? "training" : part == split::validation ? "validation" : "test";
}

/// Sequences of a part are numbered below this.
inline constexpr std::uint64_t sequences_of_a_split = std::uint64_t{1} << 62;

/// The random numbers of a sequence that is made: the highest bits of the stream's number tell the parts
/// apart, hence no pair of seeds can mix them.
inline random_stream stream_of(seed s, split part, std::uint64_t sequence) {
    const std::uint64_t bits = part == split::test ? 2 : part == split::validation ? 1 : 0;
    return {s, sequence | bits << 62};
}

/// What a sampler is called with: tokens and targets [B,T], and sequences from `first` on.
inline void require_rows(const char* task, view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) {
    require(tokens.shape().rank() == 2 && tokens.shape() == targets.shape(), task, [&] {
        return "tokens and targets must both be [B,T], got " + tokens.shape().to_string() + " and " +
               targets.shape().to_string();
    });
    require(first <= sequences_of_a_split - static_cast<std::uint64_t>(tokens.shape()[0]), task,
            [&] { return "there are 2^62 sequences, got first = " + std::to_string(first); });
}

}  // namespace detail

}  // namespace fprnn
