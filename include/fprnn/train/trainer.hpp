#pragma once

#include <fprnn/train/training_run.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace fprnn {

namespace detail {
template <class X, class T, class Model, class Sample, class Observe, backend_for<T> Backend>
training_result train(const Model& model, parameter_tree<T>& trained, training_memory<T>& remembered,
                      const training_options& options, Sample&& sample, Observe&& observe, Backend backend,
                      ranks* together = nullptr) {
    static_assert(may_store<X, T, Backend>(), "train: the backend does not store sequences as sequences_as says");
    static_assert(sampled<T, std::remove_reference_t<Sample>>::is_sampled,
                  "train: sample must be callable as sample(fprnn::view<std::int32_t> tokens, "
                  "fprnn::view<std::int32_t> targets, std::uint64_t first), see fprnn/train/sampler.hpp");
    static_assert(
        std::is_invocable_r_v<bool, Observe&, const training_step&>,
        "train: observe must be callable as observe(const fprnn::training_step&) and return whether to go on");
    using data_of = batch_of<T, std::remove_reference_t<Sample>>;
    using run = training_run<T, Backend, X, data_of>;
    using inputs_view = decltype(std::declval<const data_of&>().inputs.view());
    constexpr bool can_go_on = host_memory_backend<Backend, T> &&
                               std::is_invocable_r_v<variable, const Model&, tape<T, Backend, X>&, inputs_view,
                                                     models::model_carry<T>&, typename run::solutions*>;
    typename run::gradient::calls calls{
        .read = [&](data_of& data, index sequences, index length,
                    std::uint64_t first) { data.read(sample, sequences, length, first); },
        .model = [&](tape<T, Backend, X>& t, const data_of& data, typename run::solutions& how) -> variable {
            return model(t, data.inputs.view(), &how);
        }};
    if constexpr (can_go_on)
        calls.model_from = [&](tape<T, Backend, X>& t, const data_of& data, models::model_carry<T>& carry,
                               typename run::solutions& how) -> variable {
            return model(t, data.inputs.view(), carry, &how);
        };
    if constexpr (requires { model.most_tokens(); }) calls.most_tokens = model.most_tokens();
    const auto refer = [&observe](const training_step& step) -> bool { return observe(step); };
    return run(trained, remembered, options, backend, std::move(calls), refer, together)();
}
}  // namespace detail

/// Trains `theta` in place: AdamW on clipped gradients, warm-up and decay. The schedule follows the steps, or
/// the clock where that is ahead, so that the rate also falls to its end when time is short; what observe
/// takes is not counted. A run is reproducible to the bit as long as its time stays behind: (time/time_limit
/// − 0.1)/0.9 < step/steps.
///
/// model(tape, tokens, &how) gives logits [batch,tokens,V], of real inputs model(tape, inputs, &how);
/// sample(tokens, targets, first) fills both [batch,tokens] with the sequences first, first + 1, …, with
/// options.state_passing one whole sequence at a time, see sampler; observe(training_step) returns whether to
/// go on.
///
/// Tape and `how` are the same for all steps: after the first step of a length, steps allocate nothing,
/// unless model, sample or observe do, or the adjoint is `unrolled` or `truncated`, or windows go on. A model
/// resizes `how` and does not append.
///
/// Numbers that are not finite end the training, and theta is what it was when the loss, and the states that
/// windows go on from, were last finite.
///
/// On a backend with memory of its own theta stays there until the training ends, well or with numbers that
/// are not finite; an observer that wants it earlier calls the step's fetch(). After an exception theta is
/// what was fetched last.
///
/// Errors: options out of their range, a token or target out of its own. What model, sample and observe throw
/// passes through.
template <class T, class Model, class Sample, class Observe, backend_for<T> Backend = default_backend, class X = T>
training_result train(const Model& model, parameter_tree<T>& theta, const training_options& options, Sample&& sample,
                      Observe&& observe, Backend backend = Backend{}, sequences_as<X> = {}) {
    options.validate();  // before a memory is made of them
    training_memory<T> memory(theta, options);
    return detail::train<X>(model, theta, memory, options, sample, observe, backend);
}

/// Goes on from `state`, in place: with equal options, the run is to the bit the one that was never
/// interrupted. Whenever observe is called, and when anything throws, the state is that of the last whole
/// step, on a backend with memory of its own of the last that was fetched, so that an observer can copy or
/// save it:
///
///     training_state<float> state(model.init<float>(seed{0}), options);
///     train(model, state, options, data, [&](const training_step& s) {
///         if (s.step % 1000 == 0) s.fetch(), save_checkpoint(folder, state, configuration);
///         return true;
///     });
///
/// argument_error when the state cannot be one of these options; std::bad_alloc when there is no memory.
template <class T, class Model, class Sample, class Observe, backend_for<T> Backend = default_backend, class X = T>
training_result train(const Model& model, training_state<T>& state, const training_options& options, Sample&& sample,
                      Observe&& observe, Backend backend = Backend{}, sequences_as<X> = {}) {
    return detail::train<X>(model, state.theta, state, options, sample, observe, backend);
}

}  // namespace fprnn
