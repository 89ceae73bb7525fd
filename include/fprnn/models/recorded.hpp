#pragma once

#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/ops/embedding.hpp>
#include <fprnn/ops/linear.hpp>
#include <fprnn/ops/mean_square.hpp>
#include <fprnn/tape/tape.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Eager operations as records of a tape.
namespace fprnn {

namespace detail {
/// What these operations keep for their way back, in the same memory from step to step.
struct embedding_record {
    index offset = 0;  ///< of the table among the parameters
    std::vector<std::int32_t> tokens;
    shape extents, rows;
};
template <class T, class Tensor>
struct cross_entropy_record {
    Tensor logits_bar;
    cross_entropy_result<T> unobserved;
};

template <class Tensor>
struct mean_square_record {
    Tensor outputs_bar;
    mean_square_result unobserved;
};

template <class T, class X>
struct add_scaled {
    index channels;
    T by;
    const X* from;
    X* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.add(to, decltype(lane.load(from))(by) * lane.load(from)); });
    }
};
}  // namespace detail

/// Rows of the parameter `table` [V,D], [B,T,D]; `tokens` [B,T] in [0,V) is copied. Errors: there is no
/// parameter of that name, shapes, a token outside.
template <class T, backend_for<T> Backend, class X>
variable embedding(tape<T, Backend, X>& t, const std::string& table, view<const std::int32_t> tokens) {
    auto& kept = t.template keep<detail::embedding_record>();
    kept.tokens.assign(tokens.begin(), tokens.end());
    kept.extents = tokens.shape();
    const view<const T> rows = t.parameters()[table];
    kept.offset = rows.data() - t.parameters().data();
    kept.rows = rows.shape();
    auto y = t.make({tokens.shape()[0], tokens.shape()[1], rows.shape().back()});
    detail::embedding(t.parameters_there()(rows), tokens, y.view(), t.backend());
    return t.record(std::move(y), [&kept](tape<T, Backend, X>& tp, variable self) {
        detail::embedding_back({kept.tokens.data(), kept.extents}, std::as_const(tp.bar(self)).view(),
                               view<T>(tp.parameter_bar_data() + kept.offset, kept.rows), tp.backend());
    });
}

/// W x of each token, [B,T,n] of x [B,T,k], W [n,k] the parameter of that name. Errors: there is
/// none, shapes.
template <class T, backend_for<T> Backend>
variable linear(tape<T, Backend, T>& t, const std::string& W, variable x) {
    const view<const T> weights = t.parameters()[W];
    const shape of = t.value(x).shape();
    detail::require_linear("linear", of, weights.shape());
    const index rows = of[0] * of[1], k = of[2], n = weights.shape()[0];
    const index offset = weights.data() - t.parameters().data();
    auto y = t.make({of[0], of[1], n});
    detail::multiply_rows<T>({t.value(x).data(), rows, k, k}, {t.parameters_there()(weights).data(), n, k, k},
                             {y.data(), rows, n, n}, true, t.backend());
    return t.record(std::move(y), [=](tape<T, Backend, T>& tp, variable self) {
        const T* here = tp.parameters_there()(view<const T>(tp.parameters().data() + offset, {n, k})).data();
        auto& x_bar = tp.bar(x);
        detail::multiply_rows_back<T>({tp.value(x).data(), rows, k, k}, {here, n, k, k},
                                      {std::as_const(tp.bar(self)).data(), rows, n, n}, {x_bar.data(), rows, k, k},
                                      {tp.parameter_bar_data() + offset, n, k, k}, tp.backend());
    });
}

/// The mean cross-entropy, one number [1], of logits [B,T,V] and targets [B,T] in [0,V), or ignored_target,
/// of labels that may be smoothed; `result`, when given, receives the rest. Errors: shapes, a target outside,
/// a smoothing outside [0,1).
template <class T, backend_for<T> Backend, class X>
variable cross_entropy(tape<T, Backend, X>& t, variable logits, view<const std::int32_t> targets,
                       cross_entropy_result<T>* result = nullptr, double smoothing = 0) {
    auto& kept = t.template keep<detail::cross_entropy_record<T, typename tape<T, Backend, X>::array>>();
    t.backend().assign(kept.logits_bar, t.value(logits).shape());
    cross_entropy_result<T>& r = result ? *result : kept.unobserved;
    detail::cross_entropy(t.value(logits).view(), targets, kept.logits_bar.view(), t.backend(), r, smoothing);
    auto loss = t.make({1});
    t.backend().fill(1, loss.data(), static_cast<X>(static_cast<T>(r.loss)));
    return t.record(std::move(loss), [&kept, logits](tape<T, Backend, X>& tp, variable self) {
        const T scale = static_cast<T>(tp.backend().seen(1, std::as_const(tp.bar(self)).data())[0]);
        auto& bar = tp.bar(logits);
        tp.backend().template row<T>(
            detail::add_scaled<T, X>{bar.size(), scale, std::as_const(kept.logits_bar).data(), bar.data()});
    });
}

/// The mean square, one number [1], of outputs − targets, both [B,T,n]; a target of NaN is not counted.
/// `result`, when given, receives the rest. Errors: shapes.
template <class T, backend_for<T> Backend>
variable mean_square(tape<T, Backend, T>& t, variable outputs, view<const std::type_identity_t<T>> targets,
                     mean_square_result* result = nullptr) {
    auto& kept = t.template keep<detail::mean_square_record<typename tape<T, Backend, T>::array>>();
    t.backend().assign(kept.outputs_bar, t.value(outputs).shape());
    mean_square_result& r = result ? *result : kept.unobserved;
    detail::mean_square(t.value(outputs).view(), targets, kept.outputs_bar.view(), t.backend(), r);
    auto loss = t.make({1});
    loss[0] = static_cast<T>(r.loss);
    return t.record(std::move(loss), [&kept, outputs](tape<T, Backend, T>& tp, variable self) {
        const T scale = std::as_const(tp.bar(self))[0];
        auto& bar = tp.bar(outputs);
        tp.backend().template row<T>(
            detail::add_scaled<T, T>{bar.size(), scale, std::as_const(kept.outputs_bar).data(), bar.data()});
    });
}

}  // namespace fprnn
