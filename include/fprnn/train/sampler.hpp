#pragma once

#include <fprnn/core/tensor.hpp>

#include <concepts>
#include <cstdint>

namespace fprnn {

/// Data, as train and evaluate ask for them: sample(tokens, targets, first) overwrites row b of tokens and targets, both [B,T],
/// with sequence first + b.
///
///     tokens     in [0, vocabulary)
///     targets    in [0, classes), or ignored_target where no answer is asked for
///
/// Every number has to be written: the arrays hold those of the call before. B and T differ from call to call; first is 0, B, … in
/// evaluate and goes on through a training. Where row b is a function of first + b alone, as it should be, a training that is
/// taken up again sees the sequences that it would have seen. Called by one thread at a time; what it throws ends the training
/// or the evaluation, with the state of the last whole step.
template <class Sample>
concept sampler = std::invocable<Sample&, view<std::int32_t>, view<std::int32_t>, std::uint64_t>;

template <class Sample>
inline constexpr bool is_sampler = sampler<Sample>;  // a concept in a static_assert would list all that it requires

}  // namespace fprnn
