#pragma once

#include <fprnn/io/checkpoint_format.hpp>
#include <fprnn/mpi/agree.hpp>
#include <fprnn/mpi/world.hpp>
#include <fprnn/train/trainer.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace fprnn::mpi {

namespace detail {

/// All that ranks have to agree on beside the model, whose parameters say what it is.
inline nlohmann::ordered_json agreement(const training_options& o) {
    using fprnn::detail::number_text;
    nlohmann::ordered_json j{{"batch", o.batch},
                             {"micro_batches", o.micro_batches},
                             {"length", o.length},
                             {"first_length", o.first_length},
                             {"lengthen_at", number_text(o.lengthen_at)},
                             {"full_length_at", number_text(o.full_length_at)},
                             {"steps", o.steps},
                             {"time_limit", number_text(o.time_limit)},
                             {"learning_rate", number_text(o.optimiser.learning_rate)},
                             {"beta1", number_text(o.optimiser.beta1)},
                             {"beta2", number_text(o.optimiser.beta2)},
                             {"epsilon", number_text(o.optimiser.epsilon)},
                             {"weight_decay", number_text(o.optimiser.weight_decay)},
                             {"warmup_steps", o.warmup()},
                             {"decay", static_cast<int>(o.decay)},
                             {"max_norm", number_text(o.max_norm)},
                             {"label_smoothing", number_text(o.label_smoothing)},
                             {"frozen", o.frozen}};
    if (o.state_passing) {
        j["windows"] = o.state_passing->windows;
        j["windows_from"] = number_text(o.state_passing->from);
        j["ends_when_wrong"] = o.state_passing->ends_when_wrong;
    }
    return j;
}

/// All ranks go on from the state of rank 0.
template <class T, class Batch, class Sample>
void take_state_of_rank_0(ranks& all, training_state<T>& state, const training_options& options, Sample& sample) {
    nlohmann::ordered_json configuration;
    std::string bytes;
    agree(all, "train", message_of([&] {
              options.validate();
              configuration = agreement(options);
              Batch first;
              first.read(sample, 1, options.length, 0);
              configuration["first_sequence"] =
                  fprnn::detail::checksum(first.inputs) ^ (fprnn::detail::checksum(first.targets) << 1);
              if (all.rank() == 0) bytes = encode_checkpoint(state, configuration);
          }));
    auto size = static_cast<std::uint64_t>(bytes.size());
    all.broadcast(std::as_writable_bytes(std::span(&size, 1)));
    bytes.resize(size);
    all.broadcast(std::as_writable_bytes(std::span(bytes)));
    agree(all, "train", message_of([&] {
              if (all.rank() > 0) decode_checkpoint(std::move(bytes), "rank 0's state", state, configuration);
          }));
}

}  // namespace detail

/// fprnn::train by all ranks together, with the bits of one of them that has equal options: a step's
/// micro_batches are shared out, consecutive ones to a rank, and their gradients are added in one order,
/// whoever has computed them. All ranks make this call, with equal models, options and data; the state is
/// rank 0's, from which all go on, and is the same everywhere afterwards but for its `seconds`. Rank 0
/// observes, so that it alone prints and saves; a checkpoint of it is one of a training on any number of
/// ranks.
///
///     fprnn::mpi::run([&](fprnn::mpi::world& all) {
///         training_state<float> state(model.init<float>(seed{0}), options);
///         if (all.rank() == 0) load_latest_checkpoint(folder, state, configuration);
///         fprnn::mpi::train(all, model, state, options, data, observe);
///         …
///
/// Errors: as of train; argument_error on all ranks where one has other options, a model of other parameters,
/// or another loss or gradient of the first four sequences; more ranks than micro-batches. What one rank
/// alone throws ends in world::fail.
template <class T, class Model, class Sample, class Observe, host_memory_backend<T> Backend = default_backend>
training_result train(ranks& all, const Model& model, training_state<T>& state, const training_options& options,
                      Sample&& sample, Observe&& observe, Backend backend = Backend{}) {
    detail::take_state_of_rank_0<T, fprnn::detail::batch_of<T, std::remove_reference_t<Sample>>>(all, state, options,
                                                                                                 sample);
    return fprnn::detail::train<T>(model, state.theta, state, options, sample, observe, backend, &all);
}

/// fprnn::evaluate by all ranks together: all have the result of one of them.
/// Errors: as of evaluate; argument_error on all ranks where one asks for something else or has other
/// parameters.
template <class T, class Model, class Sample, host_memory_backend<T> Backend = default_backend>
evaluation evaluate(ranks& all, const Model& model, const parameter_tree<T>& theta, index length, index sequences,
                    Sample&& sample, Backend backend = Backend{}) {
    detail::agree_on(all, "evaluate",
                     "length " + std::to_string(length) + ", sequences " + std::to_string(sequences) +
                         ", parameters with checksum " + std::to_string(fprnn::detail::checksum(theta)));
    return fprnn::detail::evaluate<T>(model, theta, length, sequences, sample, backend, &all);
}

}  // namespace fprnn::mpi
