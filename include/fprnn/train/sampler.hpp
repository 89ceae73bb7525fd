#pragma once

#include <fprnn/ops/cross_entropy.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace fprnn {

/// Data, as train and evaluate ask for them: sample(tokens, targets, first) overwrites row b of tokens and
/// targets, both [B,T], with sequence first + b.
///
///     tokens     in [0, vocabulary)
///     targets    in [0, classes), or ignored_target where no answer is asked for
///
/// Every number has to be written: the arrays hold those of the call before. B and T differ from call to
/// call; first is 0, B, … in evaluate and goes on through a training. Where row b is a function of first + b
/// alone, as it should be, a training that is taken up again sees the sequences that it would have seen.
/// Where windows go on (state_passing), B is 1, T all tokens of a sequence, and a training that is taken up
/// again asks for earlier ones, too. Called by one thread at a time; what it throws ends the training or the
/// evaluation, with the state of the last whole step.
///
/// Either may be real numbers of the parameters' type instead, on the CPU: inputs [B,T,sample.inputs()], for
/// a model of such inputs, and targets [B,T,sample.outputs()], whose loss is the mean square and where NaN
/// asks for no answer.
template <class Sample, class Input, class Target>
concept sampler_of = std::invocable<Sample&, view<Input>, view<Target>, std::uint64_t>;
template <class Sample>
concept sampler = sampler_of<Sample, std::int32_t, std::int32_t>;

namespace detail {
template <class Sample>
struct last_token_of {
    Sample sample;

    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) {
        sample(tokens, targets, first);
        leave_the_last(targets);
    }
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets,
                    std::uint64_t first) const requires sampler<const Sample> {
        sample(tokens, targets, first);
        leave_the_last(targets);
    }

private:
    static void leave_the_last(view<std::int32_t> targets) {
        for (index b = 0; b < targets.shape()[0]; ++b) {
            bool found = false;
            for (index t = targets.shape()[1]; t-- > 0;) {
                if (found) targets(b, t) = ignored_target;
                found = found || targets(b, t) != ignored_target;
            }
        }
    }
};
}  // namespace detail

/// A sampler that asks for one answer a sequence, the last one that `sample` asks for: where rows are padded
/// behind their ends, that is the target of the last token before the padding.
template <sampler Sample>
auto last_token(Sample sample) {
    return detail::last_token_of<Sample>{std::move(sample)};
}

}  // namespace fprnn
