#pragma once

#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/ops/embedding.hpp>
#include <fprnn/tape/tape.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Eager operations as records of a tape.
namespace fprnn {

namespace detail {
/// What these operations keep for their way back, in the same memory from step to step.
struct embedding_record {
    std::string table;
    std::vector<std::int32_t> tokens;
    shape extents;
};
template <class T>
struct cross_entropy_record {
    tensor<T> logits_bar;
    cross_entropy_result<T> unobserved;
};
}  // namespace detail

/// Rows of the parameter `table` [V,D]; `tokens` [B,T] is copied.
template <class T, backend_for<T> Backend>
variable embedding(tape<T, Backend>& t, const std::string& table, view<const std::int32_t> tokens) {
    auto& kept = t.template keep<detail::embedding_record>();
    kept.table = table;
    kept.tokens.assign(tokens.begin(), tokens.end());
    kept.extents = tokens.shape();
    const view<const T> rows = t.parameters()[table];
    tensor<T> y = t.make({tokens.shape()[0], tokens.shape()[1], rows.shape().back()});
    embedding(rows, tokens, y.view());
    return t.record(std::move(y), [&kept](tape<T, Backend>& tp, variable self) {
        embedding_back({kept.tokens.data(), kept.extents}, std::as_const(tp.bar(self)).view(),
                       tp.parameter_bars()[kept.table]);
    });
}

/// The mean cross-entropy of logits [B,T,V]; `result`, when given, receives the rest.
template <class T, backend_for<T> Backend>
variable cross_entropy(tape<T, Backend>& t, variable logits, view<const std::int32_t> targets,
                       cross_entropy_result<T>* result = nullptr) {
    auto& kept = t.template keep<detail::cross_entropy_record<T>>();
    kept.logits_bar.assign(t.value(logits).shape());
    cross_entropy_result<T>& r = result ? *result : kept.unobserved;
    cross_entropy(t.value(logits).view(), targets, kept.logits_bar.view(), t.backend(), r);
    tensor<T> loss = t.make({1});
    loss[0] = static_cast<T>(r.loss);
    return t.record(std::move(loss), [&kept, logits](tape<T, Backend>& tp, variable self) {
        const T scale = tp.bar(self)[0];
        auto& bar = tp.bar(logits);
        for (index i = 0; i < bar.size(); ++i) bar[i] += scale * kept.logits_bar[i];
    });
}

}  // namespace fprnn
