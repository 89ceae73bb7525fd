#pragma once

#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/ops/embedding.hpp>
#include <fprnn/tape/tape.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Eager operations as records of a tape.
namespace fprnn {

/// Rows of the parameter `table` [V,D]; `tokens` [B,T] is copied.
template <class T, backend_for<T> Backend>
variable embedding(tape<T, Backend>& t, const std::string& table, view<const std::int32_t> tokens) {
    std::vector<std::int32_t> kept(tokens.begin(), tokens.end());
    return t.record(
        embedding(t.parameters()[table], tokens), [=, extents = tokens.shape()](tape<T, Backend>& tp, variable self) {
            embedding_back({kept.data(), extents}, std::as_const(tp.bar(self)).view(), tp.parameter_bars()[table]);
        });
}

/// The mean cross-entropy of logits [B,T,V]; `result`, when given, receives the rest.
template <class T, backend_for<T> Backend>
variable cross_entropy(tape<T, Backend>& t, variable logits, view<const std::int32_t> targets,
                       cross_entropy_result<T>* result = nullptr) {
    auto logits_bar = std::make_shared<tensor<T>>(t.value(logits).shape());
    auto r = cross_entropy(t.value(logits).view(), targets, logits_bar->view(), t.backend());
    tensor<T> loss({1});
    loss[0] = static_cast<T>(r.loss);
    if (result) *result = std::move(r);
    return t.record(std::move(loss), [=](tape<T, Backend>& tp, variable self) {
        const T scale = tp.bar(self)[0];
        auto& bar = tp.bar(logits);
        for (index i = 0; i < bar.size(); ++i) bar[i] += scale * (*logits_bar)[i];
    });
}

}  // namespace fprnn
