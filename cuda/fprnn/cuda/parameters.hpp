#pragma once

#include <fprnn/cuda/tensor.hpp>
#include <fprnn/tape/parameters.hpp>
#include <fprnn/tape/parameters_on.hpp>

#include <algorithm>
#include <utility>

namespace fprnn::cuda {

/// A layer's parameters on a device.
template <class T>
struct layer_parameters {
    using value_type = T;

    dims widths;
    fprnn::layer_parameters<T> layout;  ///< names and shapes; its numbers are the host's
    tensor<T> values;

    const T* data() const { return values.data(); }
};

template <class T>
layer_parameters<T> device::copy(const fprnn::layer_parameters<T>& theta) const {
    return {theta.widths, theta, cuda::copy(*this, view<const T>{theta.data(), {theta.size()}})};
}

}  // namespace fprnn::cuda

namespace fprnn {

/// A copy of the tree's numbers on a device.
template <class T>
class parameters_on<T, cuda::device> {
public:
    parameters_on(cuda::device& d, const parameter_tree<T>& theta) : theta_(theta), copy_(d, {theta.size()}) {
        refresh(d);
    }
    parameters_on(const parameters_on&) = delete;
    parameters_on& operator=(const parameters_on&) = delete;

    void refresh(cuda::device& d) { d.put(theta_.size(), theta_.data(), copy_.data()); }
    const parameter_tree<T>& tree() const { return theta_; }
    const T* data() const { return copy_.data(); }
    /// To be changed.
    T* data() { return copy_.data(); }
    void require_here(const char* operation, const cuda::device& d) const { d.require_here(operation, "theta", copy_); }
    view<const T> operator()(const view<const T>& of) const {
        return {copy_.data() + (of.data() - theta_.data()), of.shape()};
    }

private:
    const parameter_tree<T>& theta_;
    cuda::tensor<T> copy_;
};

/// Cotangents in a device's memory; the tree has those of the last time that they were brought here.
template <class T>
class gradient_on<T, cuda::device> {
public:
    gradient_on(cuda::device& d, const parameter_tree<T>& theta)
        : tree_(theta.zeros_like()), there_(d, {theta.size()}) {}

    T* data() { return there_.data(); }
    void clear(cuda::device& d) {
        std::fill(tree_.begin(), tree_.end(), T(0));
        d.fill(tree_.size(), there_.data(), T(0));
    }
    parameter_tree<T>& tree() { return tree_; }
    void bring_here(cuda::device& d) {
        const auto seen = d.seen(tree_.size(), std::as_const(there_).data());
        std::copy(seen.begin(), seen.end(), tree_.begin());
    }

private:
    parameter_tree<T> tree_;
    cuda::tensor<T> there_;
};

}  // namespace fprnn
