#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/models/recorded.hpp>
#include <fprnn/train/ranks.hpp>
#include <fprnn/train/sampler.hpp>

#include <cstdint>
#include <functional>
#include <type_traits>

namespace fprnn::detail {

// A disjunction of constraints: data that take tokens and classes are not tried with anything else.
template <class Sample, class T>
concept reads_tokens = sampler<Sample> || sampler_of<Sample, std::int32_t, T>;
template <class Sample, class T>
concept asks_for_classes = sampler<Sample> || sampler_of<Sample, T, std::int32_t>;
template <class Sample, class T>
concept sampler_for = reads_tokens<Sample, T> || asks_for_classes<Sample, T> || sampler_of<Sample, T, T>;

/// What a sampler asks for, with parameters of type T.
template <class T, class Sample>
struct sampled {
    static constexpr bool is_sampled = sampler_for<Sample, T>;
    using input = std::conditional_t<reads_tokens<Sample, T>, std::int32_t, T>;
    using target = std::conditional_t<asks_for_classes<Sample, T>, std::int32_t, T>;
};

/// Sequences and what a model is to answer, with parameters of type T; their loss is the mean square where
/// targets are real numbers, otherwise the cross-entropy.
template <class T, class Input, class Target>
struct batch {
    static constexpr bool has_tokens = std::is_same_v<Input, std::int32_t>;
    static constexpr bool has_classes = std::is_same_v<Target, std::int32_t>;
    using outcome = std::conditional_t<has_classes, cross_entropy_result<T>, mean_square_result>;

    tensor<Input> inputs;    ///< [B,T] or [B,T,sample.inputs()]
    tensor<Target> targets;  ///< [B,T] or [B,T,sample.outputs()]

    /// The sequences from `first` on, in the memory that is there.
    template <class Sample>
    void read(Sample& sample, index sequences, index length, std::uint64_t first) {
        shape in{sequences, length}, out{sequences, length};
        if constexpr (!has_tokens) {
            static_assert(
                requires { sample.inputs(); },
                "data of real inputs say how many numbers a token has: index inputs() const");
            in = {sequences, length, sample.inputs()};
        }
        if constexpr (!has_classes) {
            static_assert(
                requires { sample.outputs(); },
                "data of real targets say how many numbers a token has: index outputs() const");
            out = {sequences, length, sample.outputs()};
        }
        if (inputs.shape() != in) inputs.assign(in);
        if (targets.shape() != out) targets.assign(out);
        sample(inputs.view(), targets.view(), first);
    }
    /// With labels that are smoothed, where there are any.
    template <class Backend, class X>
    variable loss(tape<T, Backend, X>& t, variable outputs, outcome& result, double smoothing) const {
        if constexpr (has_classes)
            return cross_entropy(t, outputs, targets.view(), &result, smoothing);
        else
            return mean_square(t, outputs, targets.view(), &result);
    }
    /// The same without a tape.
    template <class X, class Backend, class Array>
    void measure(const Array& outputs, Backend& backend, outcome& result) const {
        if constexpr (has_classes)
            detail::cross_entropy(outputs.view(), targets.view(), view<X>{}, backend, result);
        else
            detail::mean_square(outputs.view(), targets.view(), view<X>{}, backend, result);
    }
    /// Tokens, or numbers, of which a loss is the mean.
    static index counted(const outcome& result) {
        if constexpr (has_classes)
            return result.tokens;
        else
            return result.numbers;
    }
    static void put(packed& to, const outcome& part) {
        to.put(part.sequences).put(counted(part));
        if constexpr (has_classes) to.put(part.answers);
    }
    static outcome get(packed& from) {
        outcome part;
        part.sequences = from.get_vector<double>();
        const auto n = from.get<index>();
        if constexpr (has_classes) {
            part.tokens = n;
            part.answers = from.get_vector<answer>();
        } else {
            part.numbers = n;
        }
        return part;
    }
    static void clear(outcome& all) {
        all.sequences.clear();
        if constexpr (has_classes) {
            all.answers.clear();
            all.tokens = 0;
        } else {
            all.numbers = 0;
        }
    }
    /// Of the sequences that follow. The loss becomes that of all of them, with the bits of one outcome of
    /// all.
    static void append(outcome& all, const outcome& part) {
        all.sequences.insert(all.sequences.end(), part.sequences.begin(), part.sequences.end());
        if constexpr (has_classes) {
            all.answers.insert(all.answers.end(), part.answers.begin(), part.answers.end());
            all.tokens += part.tokens;
        } else {
            all.numbers += part.numbers;
        }
        all.loss = 0;
        for (const double of_sequence : all.sequences) all.loss += of_sequence;
        if (counted(all)) all.loss /= static_cast<double>(counted(all));
    }
};

template <class T, class Sample>
using batch_of = batch<T, typename sampled<T, Sample>::input, typename sampled<T, Sample>::target>;

/// What reads a batch of any data: fills it with so many sequences of a length, from `first` on.
template <class Batch>
using reader_of = std::function<void(Batch&, index sequences, index length, std::uint64_t first)>;

}  // namespace fprnn::detail
