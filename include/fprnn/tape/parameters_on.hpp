#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/tape/parameters.hpp>

#include <type_traits>

namespace fprnn {

/// A tree's numbers where a backend works with them: the tree's own or, on a backend with memory of its own, a copy.
/// The tree must outlive it.
template <class T, class Backend>
class parameters_on {
public:
    static constexpr bool shared = std::is_same_v<typename Backend::template array<T>, tensor<T>>;

    parameters_on(Backend& backend, const parameter_tree<T>& theta) : theta_(theta), data_(theta.data()) {
        if constexpr (!shared) {
            backend.assign(copy_, {theta.size()});
            data_ = copy_.data();
        }
        refresh(backend);
    }
    parameters_on(const parameters_on&) = delete;
    parameters_on& operator=(const parameters_on&) = delete;

    /// The numbers as they are now.
    void refresh(Backend& backend) {
        if constexpr (!shared) backend.put(theta_.size(), theta_.data(), copy_.data());
    }
    const parameter_tree<T>& tree() const { return theta_; }
    const T* data() const { return data_; }
    /// The copy, to be changed.
    T* data() requires(!shared) { return copy_.data(); }
    /// argument_error unless the backend works with what is here.
    void require_here(const char* operation, const Backend& backend) const {
        if constexpr (!shared) backend.require_here(operation, "theta", copy_);
    }
    /// Where the numbers of one of the tree's parameters are.
    view<const T> operator()(const view<const T>& of) const {
        return {data_ + (of.data() - theta_.data()), of.shape()};
    }

private:
    const parameter_tree<T>& theta_;
    typename Backend::template array<T> copy_;
    const T* data_;
};

}  // namespace fprnn
