#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/tape/parameters.hpp>
#include <fprnn/tape/parameters_on.hpp>
#include <fprnn/tape/reusable.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <deque>
#include <optional>
#include <type_traits>
#include <utility>

namespace fprnn {

/// A value on a tape.
struct variable {
    std::size_t id = 0;
};

/// Reverse mode, one record per mathematical operation. A tape belongs to the parameters that it was made for
/// and knows no operation by name: operations compute their value plainly and push one callback. It serves
/// one step, or a loop:
///
///     tape<float> t(theta);
///     for (…) {
///         t.clear();
///         const variable loss = …;
///         optimiser.step(theta, t.gradient(loss));
///     }
///
/// where every step finds the memory of the one before: on the host, records of the same operations and
/// shapes allocate nothing.
///
/// Values and their cotangents are stored as X, by default as what parameters are, T.
template <class T, backend_for<T> Backend = default_backend, class X = T>
class tape {
    static_assert(may_store<X, T, Backend>(), "tape: the backend does not store sequences of T as X");

public:
    /// What values and cotangents are in.
    using array = typename Backend::template array<X>;

    /// `theta` must outlive the tape and keep its values until the gradient has been taken; a backend with
    /// memory of its own has a copy, made here and by clear().
    explicit tape(const parameter_tree<T>& theta, Backend backend = Backend{})
        : theta_(theta), backend_(std::move(backend)), gradient_(backend_, theta) {
        there_ = &own_.emplace(backend_, theta);
        gradient_.clear(backend_);
    }
    /// With theta's numbers as somebody else keeps them up to date where the backend works with them.
    tape(const parameter_tree<T>& theta, const parameters_on<T, Backend>& there, Backend backend)
        : theta_(theta), backend_(std::move(backend)), gradient_(backend_, theta), there_(&there) {
        there.require_here("tape", backend_);
        gradient_.clear(backend_);
    }
    tape(const parameter_tree<T>&&, Backend = Backend{}) = delete;  // which would not outlive it
    tape(const parameter_tree<T>&&, const parameters_on<T, Backend>&, Backend) = delete;
    tape(const tape&) = delete;
    tape& operator=(const tape&) = delete;

    const parameter_tree<T>& parameters() const { return theta_; }
    Backend& backend() { return backend_; }

    /// Forgets values, records and cotangents, and keeps their memory.
    void clear() {
        for (std::size_t i = 0; i < used_; ++i) {
            place& p = places_[i];
            p.has_bar = false;
            if (p.back) p.forget(p.callback);
            p.back = nullptr;
        }
        used_ = records_ = 0;
        spent_ = false;
        if (own_) own_->refresh(backend_);
        gradient_.clear(backend_);
    }

    /// A value that no operation made. Errors: it is not where the backend's are.
    variable leaf(array value) {
        detail::require_here(backend_, "tape.leaf", detail::named{"value", value});
        place& p = next();
        p.value = std::move(value);
        return {used_++};
    }
    /// The value of an operation; back(tape, self) reads bar(self) and adds to the bars of its operands and
    /// parameters.
    template <std::invocable<tape&, variable> Back>
    variable record(array value, Back back) {
        place& p = next();
        p.callback.template as<std::optional<Back>>().emplace(std::move(back));
        p.back = [](reusable& callback, tape& t, variable self) { (*callback.as<std::optional<Back>>())(t, self); };
        p.forget = [](reusable& callback) { callback.as<std::optional<Back>>().reset(); };
        p.value = std::move(value);
        ++records_;
        return {used_++};
    }
    /// A tensor of zeros for the next value.
    array make(const shape& extents) {
        array value = std::move(next().value);
        backend_.assign(value, extents);
        return value;
    }
    /// What the next record keeps for its way back: a K, the one that stood here before clear() when that was
    /// a K, too. It stays where it is until a record that keeps something else stands here.
    template <class K>
    K& keep() {
        return next().kept.template as<K>();
    }

    /// The reference stays valid until clear(). Errors: v's number is none that this tape has given since
    /// clear(). A variable of before, or of another tape, whose number has been given again is not found out.
    const array& value(variable v) const { return at(*this, v).value; }
    /// The cotangent of v, zero until something is added. Errors: as of value.
    array& bar(variable v) {
        place& p = at(*this, v);
        if (!p.has_bar) backend_.assign(p.bar, p.value.shape());
        p.has_bar = true;
        return p.bar;
    }
    /// The cotangents of the parameters, to add to; those of a backend with memory of its own are here once
    /// gradient() returns.
    parameter_tree<T>& parameter_bars() { return gradient_.tree(); }
    /// The parameters and their cotangents where the backend works with them, in the tree's layout.
    const parameters_on<T, Backend>& parameters_there() const { return *there_; }
    T* parameter_bar_data() { return gradient_.data(); }
    std::size_t records() const { return records_; }

    /// The gradient of a loss, a tensor of one number, with respect to the parameters; bar() then has that of
    /// every value. Errors: the loss is not one number, or a gradient has been taken since clear(), which
    /// spends the records.
    const parameter_tree<T>& gradient(variable loss) {
        back(loss);
        return fetch_gradient();
    }
    /// The same, where the backend works with it: at parameter_bar_data().
    void back(variable loss) {
        require(value(loss).size() == 1, "tape.gradient",
                [&] { return "the loss must be one number, got " + value(loss).shape().to_string(); });
        require(!spent_, "tape.gradient", [] {
            return std::string("the gradient must be the first since clear(), which spends the records, got a second");
        });
        backend_.fill(1, bar(loss).data(), X(1));
        spent_ = true;
        for (std::size_t i = used_; i-- > 0;) {
            place& p = places_[i];
            if (!p.back) continue;
            p.back(p.callback, *this, {i});
            p.forget(p.callback);
            p.back = nullptr;
            --records_;
        }
    }
    /// The gradient as it is there, here.
    const parameter_tree<T>& fetch_gradient() {
        gradient_.bring_here(backend_);
        return gradient_.tree();
    }

private:
    struct place {
        array value;
        array bar;
        bool has_bar = false;
        reusable kept;
        reusable callback;
        void (*back)(reusable& callback, tape&, variable) = nullptr;  ///< null where nothing is recorded
        void (*forget)(reusable& callback) = nullptr;
    };

    template <class Tape>  // const or not
    static auto& at(Tape& t, variable v) {
        require(v.id < t.used_, "tape", [&] {
            return "a variable must be one of the " + std::to_string(t.used_) + " since clear(), got number " +
                   std::to_string(v.id);
        });
        return t.places_[v.id];
    }
    place& next() {
        if (used_ == places_.size()) places_.emplace_back();
        return places_[used_];
    }

    const parameter_tree<T>& theta_;
    Backend backend_;
    gradient_on<T, Backend> gradient_;
    std::optional<parameters_on<T, Backend>> own_;
    const parameters_on<T, Backend>* there_;
    std::deque<place> places_;  ///< of this step the first used_; they stay where they are as others are added
    std::size_t used_ = 0;
    std::size_t records_ = 0;
    bool spent_ = false;
};

}  // namespace fprnn
