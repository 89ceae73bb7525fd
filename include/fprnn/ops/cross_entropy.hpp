#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace fprnn {

/// A target that is not counted.
inline constexpr std::int32_t ignored_target = -1;

/// What a token's largest logit, the first of them, says of its target.
enum class answer : std::uint8_t { wrong, right, ignored };

/// Mean of −log softmax(logits)[target] over the tokens that count, and what else a loss pass knows. With
/// labels that are smoothed by ε, of −Σ_k q_k log softmax(logits)[k], where q is ε/V of each of the V classes
/// and 1 − ε more of the target. Source: Szegedy et al. 2016, section 7.
template <class T>
struct cross_entropy_result {
    double loss = 0;                ///< nats per token; 0 when no token counts
    index tokens = 0;               ///< that count
    std::vector<answer> answers;    ///< [B·T]
    std::vector<double> sequences;  ///< [B], nats of each sequence, summed over its tokens
};

namespace detail {

/// Checks the operands and returns the number of tokens that count.
template <class T>
index require_targets(const char* operation, view<const T> logits, view<const std::int32_t> targets) {
    require_rank(operation, "logits", logits.shape(), 3, "[B,T,V]");
    require_shape(operation, "targets", targets.shape(), {logits.shape()[0], logits.shape()[1]});
    const index V = logits.shape()[2];
    index counted = 0;
    for (index i = 0; i < targets.size(); ++i) {
        require(targets[i] == ignored_target || (targets[i] >= 0 && targets[i] < V), operation, [&] {
            return "target " + std::to_string(targets[i]) + " at position " + std::to_string(i) + " is outside of [0," +
                   std::to_string(V) + ")";
        });
        counted += targets[i] != ignored_target;
    }
    return counted;
}

inline void require_smoothing(const char* operation, double smoothing) {
    require(smoothing >= 0 && smoothing < 1, operation,
            [&] { return "label smoothing must be in [0,1), got " + number_text(smoothing); });
}

/// A row of logits x: the largest, and Σ exp(x − largest).
template <class T>
struct softmax_row {
    T largest, sum;
};
template <class Team, class X>
FPRNN_BOTH auto measure_softmax(index V, const X* x) {
    using math::exp;
    const auto largest = Team::max(V, [&](auto lane) { return lane.load(x); });
    return softmax_row<std::remove_const_t<decltype(largest)>>{
        largest, Team::template sum<1>(V, [&](auto lane) {
            return small_array{exp(lane.load(x) - decltype(lane.load(x))(largest))};
        })[0]};
}
/// −Σ_k q_k log softmax(x)[k], in nats.
template <class Team, class T, class X>
FPRNN_BOTH double softmax_nats(index V, const X* x, softmax_row<T> m, std::int32_t target, T smoothing) {
    const double nats = ::log(static_cast<double>(m.sum)) - static_cast<double>(static_cast<T>(x[target]) - m.largest);
    if (smoothing == T(0)) return nats;
    const T sum = Team::template sum<1>(V, [&](auto lane) { return small_array{lane.load(x)}; })[0];
    return nats + static_cast<double>(smoothing) * (static_cast<double>(static_cast<T>(x[target])) -
                                                    static_cast<double>(sum) / static_cast<double>(V));
}
/// scale · (softmax(x) − q), stored in or added to `bar`.
template <class Team, class T, class X>
FPRNN_BOTH void softmax_slope(index V, const X* x, softmax_row<T> m, std::int32_t target, T scale, T smoothing,
                              bool overwrite, X* bar) {
    using math::exp;
    const T factor = scale / m.sum, of_each = scale * smoothing / static_cast<T>(V);
    Team::each(V, [&](auto lane) {
        using L = decltype(lane.load(x));
        const L slope = exp(lane.load(x) - L(m.largest)) * L(factor) - L(of_each);
        if (overwrite)
            lane.store(bar, slope);
        else
            lane.add(bar, slope);
    });
    Team::once([&] { bar[target] = static_cast<X>(static_cast<T>(bar[target]) - scale * (T(1) - smoothing)); });
}

/// Of every token what its logits say, and its part of the gradient, in the host's memory: adds to
/// result.sequences and overwrites result.answers. A backend with memory of its own specialises it.
template <class Backend>
struct cross_entropy_rows {
    template <class T, class X>
    static void value(view<const X> logits, view<const std::int32_t> targets, T scale, T smoothing, view<X> logits_bar,
                      Backend& backend, cross_entropy_result<T>& result) {
        static_assert(host_memory_backend<Backend, T>,
                      "a backend with memory of its own specialises detail::cross_entropy_rows");
        using team = typename Backend::template team<T>;
        const index B = logits.shape()[0], tokens = logits.shape()[1], V = logits.shape()[2];
        backend.for_each(B, [&](index b) {
            double& loss = result.sequences[static_cast<std::size_t>(b)];
            for (index i = b * tokens; i < (b + 1) * tokens; ++i) {
                const T* x = logits.data() + i * V;
                T* bar = logits_bar.data() ? logits_bar.data() + i * V : nullptr;
                if (targets[i] == ignored_target) {
                    if (bar) std::fill_n(bar, V, T(0));
                    continue;
                }
                const auto m = measure_softmax<team>(V, x);
                const T* target = x + targets[i];
                loss += softmax_nats<team>(V, x, m, targets[i], smoothing);
                const bool right = *target == m.largest && std::find(x, target, m.largest) == target;
                result.answers[static_cast<std::size_t>(i)] = right ? answer::right : answer::wrong;
                if (bar) softmax_slope<team>(V, x, m, targets[i], scale, smoothing, true, bar);
            }
        });
    }
};

/// cross_entropy of views that lie where the backend works with them; it may have stored the logits as what
/// is computed in T.
template <class T, class X, class Backend>
void cross_entropy(view<const X> logits, view<const std::int32_t> targets, view<X> logits_bar, Backend& backend,
                   cross_entropy_result<T>& result, double smoothing = 0) {
    require_smoothing("cross_entropy", smoothing);
    result.loss = 0;
    result.tokens = require_targets("cross_entropy", logits, targets);
    require_optional("cross_entropy", "logits_bar", logits_bar, logits.shape());
    const index B = logits.shape()[0], tokens = logits.shape()[1];
    const T scale = result.tokens ? T(1) / static_cast<T>(result.tokens) : T(0);
    result.answers.assign(static_cast<std::size_t>(B * tokens), answer::ignored);
    result.sequences.assign(static_cast<std::size_t>(B), 0);
    cross_entropy_rows<Backend>::value(logits, targets, scale, static_cast<T>(smoothing), logits_bar, backend, result);
    for (double l : result.sequences) result.loss += l;
    if (result.tokens) result.loss /= static_cast<double>(result.tokens);
}

}  // namespace detail

namespace body {

/// logits_bar += scale · (softmax(logits) − q) where the target counts.
template <class T>
struct cross_entropy_back {
    index classes;
    const T* logits;
    const std::int32_t* targets;
    T scale, smoothing;
    T* logits_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        if (targets[r] == ignored_target) return;
        const T* x = logits + r * classes;
        detail::softmax_slope<Team>(classes, x, detail::measure_softmax<Team>(classes, x), targets[r], scale, smoothing,
                                    false, logits_bar + r * classes);
    }
};

}  // namespace body

/// Softmax cross-entropy, computed from shifted logits.
/// logits: [B,T,V]; targets: [B,T] in [0,V), or ignored_target: the mask. `logits_bar` [B,T,V], when given,
/// is overwritten with the loss's gradient (softmax − q) / tokens, for the price of one more pass. q is the
/// target's one-hot vector, with `smoothing` in [0,1) as in cross_entropy_result. A logit that is not finite
/// gives a loss of NaN. Errors: shapes, a target outside, a smoothing out of its range.
/// Overwrites `result` in the memory that it has, or returns it.
template <array_like A, backend_of<A> Backend>
void cross_entropy(const A& logits, view<const std::int32_t> targets, writes<A> logits_bar, Backend& backend,
                   cross_entropy_result<element<A>>& result, double smoothing = 0) {
    detail::require_here(backend, "cross_entropy", detail::named{"logits", logits},
                         detail::named{"logits_bar", logits_bar});
    detail::cross_entropy(detail::read(logits), targets, detail::write(logits_bar), backend, result, smoothing);
}
template <array_like A, backend_of<A> Backend = reference>
cross_entropy_result<element<A>> cross_entropy(const A& logits, view<const std::int32_t> targets,
                                               writes<A> logits_bar = {}, Backend backend = {}, double smoothing = 0) {
    cross_entropy_result<element<A>> result;
    cross_entropy(logits, targets, logits_bar, backend, result, smoothing);
    return result;
}

/// The adjoint: logits_bar += loss_bar (softmax − q) / tokens where the target counts.
/// logits, logits_bar: [B,T,V]; targets: [B,T]; accumulates. Errors: shapes, a target outside, a smoothing
/// out of its range.
template <array_like A, backend_of<A> Backend = reference>
void cross_entropy_back(const A& logits, view<const std::int32_t> targets, element<A> loss_bar, writes<A> logits_bar,
                        Backend backend = {}, double smoothing = 0) {
    using T = element<A>;
    detail::require_smoothing("cross_entropy_back", smoothing);
    const index counted = detail::require_targets("cross_entropy_back", detail::read(logits), targets);
    detail::require_same("cross_entropy_back", "logits", logits.shape(), "logits_bar", logits_bar.shape());
    detail::require_here(backend, "cross_entropy_back", detail::named{"logits", logits},
                         detail::named{"logits_bar", logits_bar});
    if (counted == 0) return;
    auto there = detail::eager<Backend>::numbers(backend, targets);
    detail::each_row<T>(
        backend, targets.size(),
        body::cross_entropy_back<T>{logits.shape()[2], logits.data(), there.data(), loss_bar / static_cast<T>(counted),
                                    static_cast<T>(smoothing), logits_bar.data()});
}

}  // namespace fprnn
