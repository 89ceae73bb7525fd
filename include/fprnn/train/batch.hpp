#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/models/recorded.hpp>
#include <fprnn/train/sampler.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace fprnn::detail {

// A disjunction of constraints: data that take tokens and classes are not tried with anything else.
template <class Sample, class T>
concept reads_tokens = sampler<Sample> || sampler_of<Sample, std::int32_t, T>;
template <class Sample, class T>
concept asks_for_classes = sampler<Sample> || sampler_of<Sample, T, std::int32_t>;
template <class Sample, class T>
concept sampler_for = reads_tokens<Sample, T> || asks_for_classes<Sample, T> || sampler_of<Sample, T, T>;

/// Of data that are given to train and evaluate with parameters of type T: what a batch holds, and its loss,
/// which is the mean square where targets are real numbers, otherwise the cross-entropy.
template <class T, class Sample>
struct batch {
    static constexpr bool is_sampled = sampler_for<Sample, T>;
    static constexpr bool has_tokens = reads_tokens<Sample, T>, has_classes = asks_for_classes<Sample, T>;
    using input = std::conditional_t<has_tokens, std::int32_t, T>;
    using target = std::conditional_t<has_classes, std::int32_t, T>;
    using outcome = std::conditional_t<has_classes, cross_entropy_result<T>, mean_square_result>;

    tensor<input> inputs;    ///< [B,T] or [B,T,sample.inputs()]
    tensor<target> targets;  ///< [B,T] or [B,T,sample.outputs()]

    /// The sequences from `first` on, in the memory that is there.
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
    template <class Backend, class X>
    variable loss(tape<T, Backend, X>& t, variable outputs, outcome& result) const {
        if constexpr (has_classes)
            return cross_entropy(t, outputs, targets.view(), &result);
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
};

}  // namespace fprnn::detail
