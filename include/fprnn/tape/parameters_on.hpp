#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/ops/rows.hpp>
#include <fprnn/tape/parameters.hpp>

#include <algorithm>

namespace fprnn {

/// A tree's numbers where a backend works with them: the tree's own. A backend with memory of its own
/// specialises it, with a copy. The tree must outlive it.
template <class T, class Backend>
class parameters_on {
public:
    parameters_on(Backend&, const parameter_tree<T>& theta) : theta_(theta) {
        static_assert(host_memory_backend<Backend, T>, "a backend with memory of its own specialises parameters_on");
    }
    parameters_on(const parameters_on&) = delete;
    parameters_on& operator=(const parameters_on&) = delete;

    /// The numbers as they are now.
    void refresh(Backend&) {}
    const parameter_tree<T>& tree() const { return theta_; }
    const T* data() const { return theta_.data(); }
    /// argument_error unless the backend works with what is here.
    void require_here(const char* /*operation*/, const Backend&) const {}
    /// Where the numbers of one of the tree's parameters are.
    view<const T> operator()(const view<const T>& of) const { return of; }

private:
    const parameter_tree<T>& theta_;
};

/// The parameters' cotangents where a backend adds to them: a tree. A backend with memory of its own
/// specialises it.
template <class T, class Backend>
class gradient_on {
public:
    gradient_on(Backend&, const parameter_tree<T>& theta) : tree_(theta.zeros_like()) {}

    T* data() { return tree_.data(); }
    void clear(Backend&) { std::fill(tree_.begin(), tree_.end(), T(0)); }
    /// A tree, with what it has come to when the numbers are brought here.
    parameter_tree<T>& tree() { return tree_; }
    void bring_here(Backend&) {}

private:
    parameter_tree<T> tree_;
};

}  // namespace fprnn
