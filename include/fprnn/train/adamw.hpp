#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/tape/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace fprnn {

struct adamw_options {
    double learning_rate = 3e-3;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.01;

    friend bool operator==(const adamw_options&, const adamw_options&) = default;
};

/// What AdamW does with every number in its step k.
template <class T>
struct adamw_step {
    T beta1, rest1, beta2, rest2, rate, root, epsilon;
    double decayed;  ///< 1 − η w

    /// Of a parameter x with gradient g; `keep` is `decayed` or 1.
    template <class X>
    FPRNN_BOTH void operator()(X keep, X g, X& m, X& v, X& x) const {
        using math::sqrt;
        m = X(beta1) * m + X(rest1) * g;
        v = X(beta2) * v + X(rest2) * g * g;
        x = keep * x - X(rate) * m / (sqrt(v) * X(root) + X(epsilon));
    }
    T keep(bool decay) const { return static_cast<T>(decay ? decayed : 1.0); }
};

/// AdamW on the flat array of a parameter_tree: for gradient g of step k = 1, 2, …
///
///     m ← β₁ m + (1−β₁) g,   v ← β₂ v + (1−β₂) g²,   m̂ = m/(1−β₁ᵏ),   v̂ = v/(1−β₂ᵏ),
///     θ ← θ − η w θ − η m̂ / (√v̂ + ε),
///
/// with w = weight_decay for entries with `decay`, otherwise 0. The decay is decoupled: it does not pass
/// through m and v. Source: Loshchilov and Hutter 2019, algorithm 2, with η on both terms as is usual.
///
/// A gradient with NaN or Inf spoils m and v for good: ask first_nonfinite before.
template <class T>
class adamw {
public:
    /// For trees of theta's layout; argument_error when an option is out of its range.
    explicit adamw(const parameter_tree<T>& theta, const adamw_options& options = {});

    const adamw_options& options() const { return options_; }

    /// Steps taken so far.
    std::int64_t steps() const { return steps_; }

    /// m and v, in the parameters' layout.
    const parameter_tree<T>& first_moment() const { return first_moment_; }
    const parameter_tree<T>& second_moment() const { return second_moment_; }

    /// Becomes what another optimiser was after `steps` steps; the options stay. argument_error, with nothing
    /// changed, when steps is negative or a moment has another layout.
    void restore(std::int64_t steps, const parameter_tree<T>& first_moment, const parameter_tree<T>& second_moment);

    /// One step with the options' learning rate.
    void step(parameter_tree<T>& theta, const parameter_tree<T>& gradient) {
        step(theta, gradient, options_.learning_rate);
    }

    /// One step in place. argument_error, with theta unchanged, when the learning rate is not a positive
    /// number or when a tree's names and shapes are not those that the optimiser was made for.
    void step(parameter_tree<T>& theta, const parameter_tree<T>& gradient, double learning_rate);

    /// Counts a step that somebody else takes, who has the moments, and says what it is; they come back by
    /// restore.
    adamw_step<T> next(double learning_rate);

private:
    static void require_option(const char* name, double value, bool ok, const char* range) {
        require(ok, "adamw",
                [&] { return std::string(name) + " must be " + range + ", got " + detail::number_text(value); });
    }

    static void require_rate(double rate) {
        require_option("learning_rate", rate, rate > 0 && math::is_finite(rate), "positive and finite");
    }

    void require_layout(const parameter_tree<T>& tree, const char* argument) const;

    adamw_options options_;
    parameter_tree<T> first_moment_;
    parameter_tree<T> second_moment_;
    std::int64_t steps_ = 0;
};

template <class T>
adamw<T>::adamw(const parameter_tree<T>& theta, const adamw_options& options)
    : options_(options), first_moment_(theta.zeros_like()), second_moment_(first_moment_) {
    require_rate(options.learning_rate);
    require_option("beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1, "in [0,1)");
    require_option("beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1, "in [0,1)");
    // In T, because an epsilon that rounds to 0 would make 0/0 of a parameter that has no gradient.
    require_option(
        "epsilon", options.epsilon,
        options.epsilon <= static_cast<double>(std::numeric_limits<T>::max()) && static_cast<T>(options.epsilon) > 0,
        "positive and finite in the parameters' type");
    require_option("weight_decay", options.weight_decay,
                   options.weight_decay >= 0 && math::is_finite(options.weight_decay), "at least 0 and finite");
}

template <class T>
void adamw<T>::restore(std::int64_t steps, const parameter_tree<T>& first_moment,
                       const parameter_tree<T>& second_moment) {
    require(steps >= 0, "adamw", [&] { return "steps must be at least 0, got " + std::to_string(steps); });
    require_layout(first_moment, "first_moment");
    require_layout(second_moment, "second_moment");
    steps_ = steps;
    // The numbers alone: which entries decay is said by the parameters that the optimiser was made for.
    std::copy(first_moment.begin(), first_moment.end(), first_moment_.begin());
    std::copy(second_moment.begin(), second_moment.end(), second_moment_.begin());
}

template <class T>
void adamw<T>::step(parameter_tree<T>& theta, const parameter_tree<T>& gradient, double learning_rate) {
    require_rate(learning_rate);
    require_layout(theta, "theta");
    require_layout(gradient, "gradient");
    const adamw_step<T> update = next(learning_rate);
    for (const auto& e : first_moment_.entries()) {
        const T keep = update.keep(e.decay);
        T* x = theta.data() + e.offset;
        const T* g = gradient.data() + e.offset;
        T* m = first_moment_.data() + e.offset;
        T* v = second_moment_.data() + e.offset;
        const index n = e.shape.count();
        for (index i = 0; i < n; ++i) update(keep, g[i], m[i], v[i], x[i]);
    }
}

template <class T>
adamw_step<T> adamw<T>::next(double learning_rate) {
    require_rate(learning_rate);
    const auto k = static_cast<double>(++steps_);
    return {static_cast<T>(options_.beta1),
            static_cast<T>(1 - options_.beta1),
            static_cast<T>(options_.beta2),
            static_cast<T>(1 - options_.beta2),
            static_cast<T>(learning_rate / (1 - std::pow(options_.beta1, k))),
            static_cast<T>(1 / std::sqrt(1 - std::pow(options_.beta2, k))),
            static_cast<T>(options_.epsilon),
            1 - learning_rate * options_.weight_decay};
}

template <class T>
void adamw<T>::require_layout(const parameter_tree<T>& tree, const char* argument) const {
    const auto &entries = tree.entries(), &layout = first_moment_.entries();
    require(entries.size() == layout.size(), "adamw", [&] {
        return std::string(argument) + " has " + std::to_string(entries.size()) + " parameters, expected " +
               std::to_string(layout.size());
    });
    for (std::size_t i = 0; i < layout.size(); ++i)
        require(entries[i].name == layout[i].name && entries[i].shape == layout[i].shape, "adamw", [&] {
            return std::string(argument) + "'s parameter " + std::to_string(i) + " is " + entries[i].name + " " +
                   entries[i].shape.to_string() + ", expected " + layout[i].name + " " + layout[i].shape.to_string();
        });
}

}  // namespace fprnn
