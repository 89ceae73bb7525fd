#pragma once

#include <fprnn/ops/chain.hpp>

/// Elementwise functions of arrays, and their adjoints.
namespace fprnn {

namespace detail {

template <class F, array_like A, class Backend>
array_of<element<A>, Backend> map(const char* operation, const A& x, Backend& backend) {
    using T = element<A>;
    require_here(backend, operation, named{"x", x});
    auto y = make_array<T>(backend, x.shape());
    const index D = x.shape().back();
    each_channel<T>(backend, rows_of(x.shape()),
                    body::chain<chain::apply<F, chain::argument<0>>, 1, T>{D, {{{x.data(), D}}}, {y.data(), D}});
    return y;
}

template <class F, array_like A, class Backend>
void map_back(const char* operation, const A& x, reads<A> y_bar, writes<A> x_bar, Backend& backend) {
    using T = element<A>;
    require_same(operation, "x", x.shape(), "y_bar", y_bar.shape());
    require_same(operation, "x", x.shape(), "x_bar", x_bar.shape());
    require_here(backend, operation, named{"x", x}, named{"y_bar", y_bar}, named{"x_bar", x_bar});
    const index D = x.shape().back();
    each_channel<T>(backend, rows_of(x.shape()),
                    body::chain_back<chain::apply<F, chain::argument<0>>, 1, T>{
                        D, {{{x.data(), D}}}, {y_bar.data(), D}, {{{{x_bar.data(), D}}}}});
}

}  // namespace detail

/// y = σ(x) = 1 / (1 + e^{−x}). x: any shape; returns it.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> sigmoid(const A& x, Backend backend = {}) {
    return detail::map<chain::sigmoid_function>("sigmoid", x, backend);
}
/// The adjoint: x̄ += ȳ ⊙ y ⊙ (1 − y). x, y_bar, x_bar: one shape; accumulates. Errors: shapes that do not
/// match.
template <array_like A, backend_of<A> Backend = reference>
void sigmoid_back(const A& x, reads<A> y_bar, writes<A> x_bar, Backend backend = {}) {
    detail::map_back<chain::sigmoid_function>("sigmoid_back", x, y_bar, x_bar, backend);
}

/// y = SiLU(x) = x σ(x). x: any shape; returns it.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> silu(const A& x, Backend backend = {}) {
    return detail::map<chain::silu_function>("silu", x, backend);
}
/// The adjoint: x̄ += ȳ ⊙ σ(x) ⊙ (1 + x (1 − σ(x))). x, y_bar, x_bar: one shape; accumulates. Errors: shapes
/// that do not match.
template <array_like A, backend_of<A> Backend = reference>
void silu_back(const A& x, reads<A> y_bar, writes<A> x_bar, Backend backend = {}) {
    detail::map_back<chain::silu_function>("silu_back", x, y_bar, x_bar, backend);
}

/// y = log(1 + e^x). x: any shape; returns it.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> softplus(const A& x, Backend backend = {}) {
    return detail::map<chain::softplus_function>("softplus", x, backend);
}
/// The adjoint: x̄ += ȳ ⊙ σ(x). x, y_bar, x_bar: one shape; accumulates. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
void softplus_back(const A& x, reads<A> y_bar, writes<A> x_bar, Backend backend = {}) {
    detail::map_back<chain::softplus_function>("softplus_back", x, y_bar, x_bar, backend);
}

/// y = e^x. x: any shape; returns it.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> exp(const A& x, Backend backend = {}) {
    return detail::map<chain::exp_function>("exp", x, backend);
}
/// The adjoint: x̄ += ȳ ⊙ y. x, y_bar, x_bar: one shape; accumulates. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
void exp_back(const A& x, reads<A> y_bar, writes<A> x_bar, Backend backend = {}) {
    detail::map_back<chain::exp_function>("exp_back", x, y_bar, x_bar, backend);
}

/// y = tanh x. x: any shape; returns it.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> tanh(const A& x, Backend backend = {}) {
    return detail::map<chain::tanh_function>("tanh", x, backend);
}
/// The adjoint: x̄ += ȳ ⊙ (1 − y²). x, y_bar, x_bar: one shape; accumulates. Errors: shapes that do not
/// match.
template <array_like A, backend_of<A> Backend = reference>
void tanh_back(const A& x, reads<A> y_bar, writes<A> x_bar, Backend backend = {}) {
    detail::map_back<chain::tanh_function>("tanh_back", x, y_bar, x_bar, backend);
}

}  // namespace fprnn
