#pragma once

#include <fprnn/operations/frame.hpp>

namespace fprnn::operations {

/// x_t, whose rows the engine fills.
template <class T, class Backend>
struct input : operation_on<T, Backend> {};

/// y_t^{ℓ−1}, whose rows the engine fills.
template <class T, class Backend>
struct previous : operation_on<T, Backend> {
    static constexpr bool keeps_values = true;
};

/// A vector among the parameters; its cotangent is the gradient.
template <class T, class Backend>
struct parameter : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void begin(frame& f, slot s, const T*) const {
        f.nodes[s].value = const_cast<T*>(f.parameters_of(s));
        if (f.phase == pass::backward) f.nodes[s].bar = f.gradient_of(s);
    }
};

/// y* stands where f stood when its last chunk was solved; only its cotangent is its own.
template <class T, class Backend>
struct fixed_point : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    void begin(frame& f, slot s, const T*) const { f.nodes[s].value = f.nodes[f.graph.operand(s, 0)].value; }
};

}  // namespace fprnn::operations
