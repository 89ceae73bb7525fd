#pragma once

#include <fprnn/operations/frame.hpp>

namespace fprnn::operations {

/// x_t, whose rows the engine fills.
template <class T, class Backend>
struct input final : operation<T, Backend> {};

/// y_t^{ℓ−1}, whose rows the engine fills.
template <class T, class Backend>
struct previous final : operation<T, Backend> {
    constexpr bool keeps_values() const override { return true; }
};

/// A vector among the parameters; its cotangent is the gradient.
template <class T, class Backend>
struct parameter final : operation<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    void begin(frame& f, slot s, const T*) const override {
        f.nodes[s].value = const_cast<T*>(f.parameters_of(s));
        if (f.phase == pass::backward) f.nodes[s].bar = f.gradient_of(s);
    }
};

/// y* stands where f stood when its last chunk was solved; only its cotangent is its own.
template <class T, class Backend>
struct fixed_point final : operation<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    void begin(frame& f, slot s, const T*) const override { f.nodes[s].value = f.nodes[f.graph.operand(s, 0)].value; }
};

}  // namespace fprnn::operations
