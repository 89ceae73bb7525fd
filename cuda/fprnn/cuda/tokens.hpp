#pragma once

#include <fprnn/cuda/backend.hpp>
#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/ops/embedding.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

/// What begins and ends a model: tokens to rows of a table, and logits to a loss. Tokens and targets are the host's, where they are
/// made and checked; so is what the loss says.
namespace fprnn::cuda {

namespace detail {

template <class T, class X>
struct embedding_row {
    index channels;
    const T* table;
    const std::int32_t* tokens;
    X* y;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const T* from = table + tokens[r] * channels;
        X* to = y + r * channels;
        Team::each(channels, [&](auto lane) { lane.store(to, lane.load(from)); });
    }
};

/// A row of the table receives from the tokens that it stood for: those at the positions places[first[v]], …, in their order.
template <class T, class X>
struct embedding_back_row {
    index channels;
    const index *first, *places;
    const X* y_bar;
    T* table_bar;

    template <class Team>
    FPRNN_BOTH void row(index v, index) const {
        T* to = table_bar + v * channels;
        Team::each(channels, [&](auto lane) {
            auto sum = lane.load(to);
            for (index i = first[v]; i < first[v + 1]; ++i) sum += lane.load(y_bar + places[i] * channels);
            lane.store(to, sum);
        });
    }
};

/// Of token r the loss in nats, what its largest logit says, and its part of the gradient where that is asked for.
template <class T, class X>
struct cross_entropy_row {
    index classes;
    const X* logits;
    const std::int32_t* targets;
    T scale;
    X* bar;
    double* loss;
    answer* answers;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const X* x = logits + r * classes;
        X* to = bar ? bar + r * classes : nullptr;
        const std::int32_t target = targets[r];
        if (target == ignored_target) {
            if (to) Team::each(classes, [&](auto lane) { lane.store(to, T(0)); });
            Team::once([&] {
                loss[r] = 0;
                answers[r] = answer::ignored;
            });
            return;
        }
        const auto m = fprnn::detail::measure_softmax<Team>(classes, x);
        const T of_target = static_cast<T>(x[target]);
        bool right = of_target == m.largest;  // for all threads of the row
        if (right)
            right = Team::template sum<1>(classes, [&](auto lane) {
                        return small_array{lane.channel < target && lane.load(x) == m.largest ? T(1) : T(0)};
                    })[0] == T(0);
        Team::once([&] {
            loss[r] = ::log(static_cast<double>(m.sum)) - static_cast<double>(of_target - m.largest);
            answers[r] = right ? answer::right : answer::wrong;
        });
        if (to) fprnn::detail::softmax_slope<Team>(classes, x, m, target, scale, true, to);
    }
};

}  // namespace detail

/// As fprnn::embedding: y[b,t] = table[tokens[b,t]], table and y on the device; y may be stored as what is computed in T.
template <class T, class X>
void embedding(view<const T> table, view<const std::int32_t> tokens, view<X> y, device& d) {
    fprnn::detail::require_rank("embedding", "table", table.shape(), 2, "[V,D]");
    const index V = table.shape()[0], D = table.shape()[1];
    fprnn::detail::require_tokens("embedding", tokens, V);
    fprnn::detail::require_shape("embedding", "y", y.shape(), {tokens.shape()[0], tokens.shape()[1], D});
    auto there = fprnn::detail::bring(d, tokens);
    d.rows<T>(tokens.size(), detail::embedding_row<T, X>{D, table.data(), there.data(), y.data()});
}

/// As fprnn::embedding_back. The host says which tokens a row of the table stood for.
template <class T, class X>
void embedding_back(view<const std::int32_t> tokens, view<const X> y_bar, view<T> table_bar, device& d) {
    fprnn::detail::require_rank("embedding_back", "table_bar", table_bar.shape(), 2, "[V,D]");
    const index V = table_bar.shape()[0], D = table_bar.shape()[1];
    fprnn::detail::require_tokens("embedding_back", tokens, V);
    fprnn::detail::require_shape("embedding_back", "y_bar", y_bar.shape(), {tokens.shape()[0], tokens.shape()[1], D});
    fprnn::tensor<index> lists({V + 1 + tokens.size()});  // where a row's positions begin, and all positions
    index *first = lists.data(), *places = first + V + 1;
    for (const std::int32_t v : tokens) ++first[v + 1];
    std::partial_sum(first, places, first);
    std::vector<index> next(first, places);
    for (index i = 0; i < tokens.size(); ++i) places[next[static_cast<std::size_t>(tokens[i])]++] = i;
    auto there = fprnn::detail::bring(d, std::as_const(lists).view());
    d.rows<T>(V,
              detail::embedding_back_row<T, X>{D, there.data(), there.data() + V + 1, y_bar.data(), table_bar.data()});
}

/// As fprnn::cross_entropy, logits and logits_bar on the device. logits_bar is overwritten before the host has seen the loss, so that an error
/// may leave it with or without its new numbers.
template <class T, class X>
void cross_entropy(std::type_identity_t<view<const X>> logits, view<const std::int32_t> targets, view<X> logits_bar,
                   device& d, cross_entropy_result<T>& result) {
    result.loss = 0;
    result.tokens = fprnn::detail::require_targets("cross_entropy", logits, targets);
    fprnn::detail::require_optional("cross_entropy", "logits_bar", logits_bar, logits.shape());
    const index B = logits.shape()[0], tokens = logits.shape()[1], n = B * tokens;
    auto there = fprnn::detail::bring(d, targets);
    detail::numbers<double> loss(d, n);
    detail::numbers<answer> answers(d, n);
    const T scale = result.tokens ? T(1) / static_cast<T>(result.tokens) : T(0);
    d.rows<T>(n, detail::cross_entropy_row<T, X>{logits.shape()[2], logits.data(), there.data(), scale,
                                                 logits_bar.data(), loss.data(), answers.data()});
    const auto nats = d.seen(n, static_cast<const double*>(loss.data()));
    const auto said = d.seen(n, static_cast<const answer*>(answers.data()));
    result.answers.assign(said.begin(), said.end());
    result.sequences.assign(static_cast<std::size_t>(B), 0);
    for (index i = 0; i < n; ++i) result.sequences[static_cast<std::size_t>(i / tokens)] += nats[i];
    for (double l : result.sequences) result.loss += l;
    if (result.tokens) result.loss /= static_cast<double>(result.tokens);
}

}  // namespace fprnn::cuda
