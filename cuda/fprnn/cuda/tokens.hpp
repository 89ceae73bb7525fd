#pragma once

#include <fprnn/cuda/backend.hpp>
#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/ops/embedding.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

/// What begins and ends a model: tokens to rows of a table, and logits to a loss. Tokens and targets are the
/// host's, where they are made and checked; so is what the loss says.
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

/// A row of the table receives from the tokens that it stood for: those at the positions places[first[v]], …,
/// in their order.
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

/// Of token r the loss in nats, what its largest logit says, and its part of the gradient where that is asked
/// for.
template <class T, class X>
struct cross_entropy_row {
    index classes;
    const X* logits;
    const std::int32_t* targets;
    T scale, smoothing;
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
        const double nats = fprnn::detail::softmax_nats<Team>(classes, x, m, target, smoothing);
        Team::once([&] {
            loss[r] = nats;
            answers[r] = right ? answer::right : answer::wrong;
        });
        if (to) fprnn::detail::softmax_slope<Team>(classes, x, m, target, scale, smoothing, true, to);
    }
};

}  // namespace detail
}  // namespace fprnn::cuda

namespace fprnn::detail {

template <>
struct embedding_rows<cuda::device> {
    using device = cuda::device;

    template <class T, class X>
    static void value(view<const T> table, view<const std::int32_t> tokens, view<X> y, device& d) {
        auto there = eager<device>::numbers(d, tokens);
        d.rows<T>(tokens.size(),
                  cuda::detail::embedding_row<T, X>{table.shape()[1], table.data(), there.data(), y.data()});
    }

    /// The host says which tokens a row of the table stood for.
    template <class T, class X>
    static void back(view<const std::int32_t> tokens, view<const X> y_bar, view<T> table_bar, device& d) {
        const index V = table_bar.shape()[0], D = table_bar.shape()[1];
        fprnn::tensor<index> lists({V + 1 + tokens.size()});  // where a row's positions begin, and all positions
        index *first = lists.data(), *places = first + V + 1;
        for (const std::int32_t v : tokens) ++first[v + 1];
        std::partial_sum(first, places, first);
        std::vector<index> next(first, places);
        for (index i = 0; i < tokens.size(); ++i) places[next[static_cast<std::size_t>(tokens[i])]++] = i;
        auto there = eager<device>::numbers(d, std::as_const(lists).view());
        d.rows<T>(V, cuda::detail::embedding_back_row<T, X>{D, there.data(), there.data() + V + 1, y_bar.data(),
                                                            table_bar.data()});
    }
};

template <>
struct cross_entropy_rows<cuda::device> {
    using device = cuda::device;

    /// logits_bar is overwritten before the host has seen the loss, so that an error may leave it with or
    /// without its new numbers.
    template <class T, class X>
    static void value(view<const X> logits, view<const std::int32_t> targets, T scale, T smoothing, view<X> logits_bar,
                      device& d, cross_entropy_result<T>& result) {
        const index tokens = logits.shape()[1], n = targets.size();
        auto there = eager<device>::numbers(d, targets);
        cuda::detail::numbers<double> loss(d, n);
        cuda::detail::numbers<answer> answers(d, n);
        d.rows<T>(n, cuda::detail::cross_entropy_row<T, X>{logits.shape()[2], logits.data(), there.data(), scale,
                                                           smoothing, logits_bar.data(), loss.data(), answers.data()});
        const auto nats = d.seen(n, static_cast<const double*>(loss.data()));
        const auto said = d.seen(n, static_cast<const answer*>(answers.data()));
        std::copy(said.begin(), said.end(), result.answers.begin());
        for (index i = 0; i < n; ++i) result.sequences[static_cast<std::size_t>(i / tokens)] += nats[i];
    }
};

}  // namespace fprnn::detail
