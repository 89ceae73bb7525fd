#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/tape/parameters.hpp>
#include <fprnn/tape/reusable.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fprnn {

/// A value on a tape.
struct variable {
    std::size_t id = 0;
};

/// Reverse mode, one record per mathematical operation. A tape belongs to the parameters that it was made for and knows no
/// operation by name: operations compute their value plainly and push one callback. It serves one step, or a loop:
///
///     tape<float> t(theta);
///     for (…) {
///         t.clear();
///         const variable loss = …;
///         optimiser.step(theta, t.gradient(loss));
///     }
///
/// where every step finds the memory of the one before: records of the same operations and shapes allocate nothing.
template <class T, backend_for<T> Backend = default_backend>
class tape {
public:
    /// `theta` must outlive the tape and keep its values until the gradient has been taken.
    explicit tape(const parameter_tree<T>& theta, Backend backend = Backend{})
        : theta_(theta), gradient_(theta.zeros_like()), backend_(std::move(backend)) {}
    tape(const tape&) = delete;
    tape& operator=(const tape&) = delete;

    const parameter_tree<T>& parameters() const { return theta_; }
    Backend& backend() { return backend_; }

    /// Forgets values, records and cotangents, and keeps their memory.
    void clear() {
        for (std::size_t i = 0; i < used_; ++i) {
            place& p = places_[i];
            p.bar.assign({0});
            if (p.back) p.forget(p.callback);
            p.back = nullptr;
        }
        used_ = records_ = 0;
        std::fill(gradient_.begin(), gradient_.end(), T(0));
    }

    /// A value that no operation made.
    variable leaf(tensor<T> value) {
        place& p = next();
        p.value = std::move(value);
        return {used_++};
    }
    /// The value of an operation; back(tape, self) reads bar(self) and adds to the bars of its operands and parameters.
    template <std::invocable<tape&, variable> Back>
    variable record(tensor<T> value, Back back) {
        place& p = next();
        p.callback.template as<std::optional<Back>>().emplace(std::move(back));
        p.back = [](reusable& callback, tape& t, variable self) { (*callback.as<std::optional<Back>>())(t, self); };
        p.forget = [](reusable& callback) { callback.as<std::optional<Back>>().reset(); };
        p.value = std::move(value);
        ++records_;
        return {used_++};
    }
    /// A tensor of zeros for the next value.
    tensor<T> make(shape extents) {
        tensor<T> value = std::move(next().value);
        value.assign(extents);
        return value;
    }
    /// What the next record keeps for its way back: a K, the one that stood here before clear() when that was a K, too. It
    /// stays where it is until a record that keeps something else stands here.
    template <class K>
    K& keep() {
        return next().kept.template as<K>();
    }

    const tensor<T>& value(variable v) const { return places_[v.id].value; }
    /// The cotangent of v, zero until something is added.
    tensor<T>& bar(variable v) {
        place& p = places_[v.id];
        if (p.bar.shape() != p.value.shape()) p.bar.assign(p.value.shape());
        return p.bar;
    }
    /// The cotangents of the parameters, to add to.
    parameter_tree<T>& parameter_bars() { return gradient_; }
    std::size_t records() const { return records_; }

    /// The gradient of a loss, a tensor of one number, with respect to the parameters; bar() then has that of every
    /// value. Called once: the records are spent.
    const parameter_tree<T>& gradient(variable loss) {
        require(value(loss).size() == 1, "tape.gradient",
                [&] { return "the loss must be one number, got " + value(loss).shape().to_string(); });
        bar(loss)[0] = T(1);
        for (std::size_t i = used_; i-- > 0;) {
            place& p = places_[i];
            if (!p.back) continue;
            p.back(p.callback, *this, {i});
            p.forget(p.callback);
            p.back = nullptr;
            --records_;
        }
        return gradient_;
    }

private:
    struct place {
        tensor<T> value;
        tensor<T> bar;
        reusable kept;
        reusable callback;
        void (*back)(reusable& callback, tape&, variable) = nullptr;  ///< null where nothing is recorded
        void (*forget)(reusable& callback) = nullptr;
    };

    place& next() {
        if (used_ == places_.size()) places_.emplace_back();
        return places_[used_];
    }

    const parameter_tree<T>& theta_;
    parameter_tree<T> gradient_;
    Backend backend_;
    std::vector<place> places_;  ///< of this step the first used_
    std::size_t used_ = 0;
    std::size_t records_ = 0;
};

}  // namespace fprnn
