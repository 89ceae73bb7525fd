#pragma once

#include <fprnn/ops/rows.hpp>

/// What norms with a weight have in common: Function is rms_norm_function, layer_norm_function or the like.
namespace fprnn {

namespace body {

template <class Function, class T>
struct norm {
    static constexpr bool holds = true;
    index channels;
    strided<const T> x;
    const T *weight, *bias;
    strided<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        Function::template value<Team, T>(channels, x[r], weight, bias, y[r]);
    }
};

/// The weight's cotangent, and the bias's after it, where they are asked for.
template <class Function, class T>
struct norm_back {
    static constexpr bool holds = true;
    index channels;
    strided<const T> x;
    const T* weight;
    strided<const T> y_bar;
    receiver<T> x_bar, weight_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        T* bar = weight_bar.at(r, worker);
        Function::template back<Team, T>(channels, x[r], weight, y_bar[r], x_bar.at(r, worker), bar,
                                         bar ? bar + channels : nullptr);
    }
};

}  // namespace body

namespace detail {

/// `bias` is left out where Function has none.
template <class Function, array_like A, class Backend>
array_of<element<A>, Backend> norm(const char* operation, const A& x, reads<A> weight, reads<A> bias,
                                   Backend& backend) {
    using T = element<A>;
    const index D = x.shape().back();
    require_shape(operation, "weight", weight.shape(), {D});
    if constexpr (Function::has_bias) require_shape(operation, "bias", bias.shape(), {D});
    require_here(backend, operation, named{"x", x}, named{"weight", weight}, named{"bias", bias});
    auto y = make_array<T>(backend, x.shape());
    each_row<T>(backend, rows_of(x.shape()),
                body::norm<Function, T>{D, {x.data(), D}, weight.data(), bias.data(), {y.data(), D}});
    return y;
}

template <class Function, array_like A, class Backend>
void norm_back(const char* operation, const A& x, reads<A> weight, reads<A> y_bar, writes<A> x_bar,
               writes<A> weight_bar, writes<A> bias_bar, Backend& backend) {
    using T = element<A>;
    const index D = x.shape().back();
    require_shape(operation, "weight", weight.shape(), {D});
    require_same(operation, "x", x.shape(), "y_bar", y_bar.shape());
    require_same(operation, "x", x.shape(), "x_bar", x_bar.shape());
    require_shape(operation, "weight_bar", weight_bar.shape(), {D});
    if constexpr (Function::has_bias) require_shape(operation, "bias_bar", bias_bar.shape(), {D});
    require_here(backend, operation, named{"x", x}, named{"weight", weight}, named{"y_bar", y_bar},
                 named{"x_bar", x_bar}, named{"weight_bar", weight_bar}, named{"bias_bar", bias_bar});
    if (D == 0) return;
    const index n = Function::has_bias ? 2 * D : D;
    typename Backend::template memory<T> sums(backend, n);  // of the weight, and of the bias behind it
    T* of_weight = sums.data();
    backend.fill(n, of_weight, T(0));
    const auto scale_rows = [&](receiver<T> to) {
        return body::norm_back<Function, T>{D, {x.data(), D}, weight.data(), {y_bar.data(), D}, {{x_bar.data(), D}},
                                            to};
    };
    eager<Backend>::template each_row_with_sum<T>(backend, rows_of(x.shape()), n, of_weight, scale_rows, [&] {
        backend.template row<T>(body::add<T>{D, of_weight, weight_bar.data()});
        if constexpr (Function::has_bias) backend.template row<T>(body::add<T>{D, of_weight + D, bias_bar.data()});
    });
}

}  // namespace detail

}  // namespace fprnn
