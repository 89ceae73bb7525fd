#pragma once

#include <fprnn/tape/parameters_on.hpp>
#include <fprnn/tape/tape.hpp>
#include <fprnn/train/clip.hpp>
#include <fprnn/train/finite.hpp>
#include <fprnn/train/training_state.hpp>

#include <optional>
#include <string>

namespace fprnn::detail {

/// What a training's steps do with parameters and their gradient, in the host's memory. A backend with memory
/// of its own specialises it.
template <class T, class Backend>
class updates_on {
    static_assert(host_memory_backend<Backend, T>, "a backend with memory of its own specialises detail::updates_on");

public:
    parameter_tree<T>& theta;
    training_memory<T>& memory;
    const parameters_on<T, Backend> there;

    updates_on(Backend& on, parameter_tree<T>& theta_, training_memory<T>& memory_)
        : theta(theta_), memory(memory_), there(on, theta_) {}

    void remember() { memory.last_good = theta; }
    /// The norm of the tape's gradient, which is clipped; the name of a parameter instead whose gradient is
    /// not finite.
    template <class X>
    std::optional<std::string> measure(tape<T, Backend, X>& t, double max_norm, double& norm) {
        if (auto name = first_nonfinite(t.parameter_bars())) return name;
        norm = clip_by_global_norm(t.parameter_bars(), max_norm);
        return std::nullopt;
    }
    /// The name of a parameter that is not finite afterwards.
    template <class X>
    std::optional<std::string> step(tape<T, Backend, X>& t, double learning_rate) {
        memory.optimiser.step(theta, t.parameter_bars(), learning_rate);
        return first_nonfinite(theta);
    }
    /// The numbers as they are now come to `theta` and `memory`; what these have is the training's.
    static void fetch() {}
    static void hand_over() {}
};

}  // namespace fprnn::detail
