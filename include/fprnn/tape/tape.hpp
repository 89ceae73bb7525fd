#pragma once

#include <fprnn/backend/eigen.hpp>
#include <fprnn/tape/parameters.hpp>

#include <functional>
#include <vector>

namespace fprnn {

/// A value on a tape.
struct variable {
    std::size_t id = 0;
};

/// Reverse mode, one record per mathematical operation. A tape is local: it lives for one step, belongs to the parameters
/// that it was made for, and knows no operation by name. Operations compute their value plainly and push one callback.
template <class T, backend_for<T> Backend = eigen>
class tape {
public:
    using callback = std::function<void(tape&, variable self)>;

    /// `theta` must outlive the tape and keep its values until the gradient has been taken.
    explicit tape(const parameter_tree<T>& theta, Backend backend = Backend{})
        : theta_(theta), gradient_(theta.zeros_like()), backend_(std::move(backend)) {}
    tape(const tape&) = delete;
    tape& operator=(const tape&) = delete;

    const parameter_tree<T>& parameters() const { return theta_; }
    Backend& backend() { return backend_; }

    /// A value that no operation made.
    variable leaf(tensor<T> value) { return push(std::move(value)); }
    /// The value of an operation; `back` reads bar(self) and adds to the bars of its operands and parameters.
    variable record(tensor<T> value, callback back) {
        const variable v = push(std::move(value));
        records_.push_back({v, std::move(back)});
        return v;
    }

    const tensor<T>& value(variable v) const { return values_[v.id]; }
    /// The cotangent of v, zero until something is added.
    tensor<T>& bar(variable v) {
        if (bars_[v.id].shape() != values_[v.id].shape()) bars_[v.id] = tensor<T>(values_[v.id].shape());
        return bars_[v.id];
    }
    /// The cotangents of the parameters, to add to.
    parameter_tree<T>& parameter_bars() { return gradient_; }
    std::size_t records() const { return records_.size(); }

    /// The gradient of a loss, a tensor of one number, with respect to the parameters; bar() then has that of every
    /// value. Called once: the records are spent.
    const parameter_tree<T>& gradient(variable loss) {
        require(value(loss).size() == 1, "tape.gradient",
                [&] { return "the loss must be one number, got " + value(loss).shape().to_string(); });
        bar(loss)[0] = T(1);
        for (; !records_.empty(); records_.pop_back()) records_.back().back(*this, records_.back().self);
        return gradient_;
    }

private:
    struct entry {
        variable self;
        callback back;
    };

    variable push(tensor<T> value) {
        values_.push_back(std::move(value));
        bars_.emplace_back();
        return {values_.size() - 1};
    }

    const parameter_tree<T>& theta_;
    parameter_tree<T> gradient_;
    Backend backend_;
    std::vector<tensor<T>> values_;
    std::vector<tensor<T>> bars_;
    std::vector<entry> records_;
};

}  // namespace fprnn
