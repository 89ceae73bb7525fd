#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/norm.hpp>

namespace fprnn {

/// A row's layer norm: y = w ⊙ (x − mean x) / √(var x + ε) + bias, with the biased variance.
struct layer_norm_function {
    static constexpr double epsilon = 1e-5;
    static constexpr bool has_bias = true;
    static constexpr bool centred = true;  ///< the mean is subtracted

    template <class T>
    struct statistics {
        T mean, inverse_deviation;
    };

    template <class Team, class T, class Row>
    FPRNN_BOTH static statistics<T> measure(index D, const Row& x) {
        using math::sqrt;
        const T mean =
            Team::template sum<1>(D, [&](auto lane) { return small_array{lane.load(x)}; })[0] / static_cast<T>(D);
        const T variance = Team::template sum<1>(D,
                                                 [&](auto lane) {
                                                     const auto v = lane.load(x) - decltype(lane.load(x))(mean);
                                                     return small_array{v * v};
                                                 })[0] /
                           static_cast<T>(D);
        return {mean, T(1) / sqrt(variance + T(epsilon))};
    }

    template <class Team, class T>
    FPRNN_BOTH static void value(index D, const T* from, const T* from_weight, const T* from_bias, T* y) {
        const auto x = held<Team>(D, from), weight = held<Team>(D, from_weight), bias = held<Team>(D, from_bias);
        const auto [mean, r] = measure<Team, T>(D, x);
        const T m = mean, s = r;
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(x));
            lane.store(y, (lane.load(x) - V(m)) * V(s) * lane.load(weight) + lane.load(bias));
        });
    }

    /// With z = (x − mean) r and q = w ⊙ ȳ:  x̄ += r (q − mean(q) − z mean(z ⊙ q)),  w̄ += z ⊙ ȳ,  bias += ȳ.
    template <class Team, class T>
    FPRNN_BOTH static void back(index D, const T* from, const T* weight, const T* from_y_bar, T* x_bar, T* weight_bar,
                                T* bias_bar) {
        const auto x = held<Team>(D, from), y_bar = held<Team>(D, from_y_bar);
        const auto [mean, r] = measure<Team, T>(D, x);
        const T m = mean, s = r;
        const auto sums = Team::template sum<2>(D, [&](auto lane) {
            using V = decltype(lane.load(x));
            const V q = lane.load(weight) * lane.load(y_bar);
            return small_array<V, 2>{q, q * (lane.load(x) - V(m)) * V(s)};
        });
        const T mean_q = sums[0] / static_cast<T>(D), mean_zq = sums[1] / static_cast<T>(D);
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(x));
            const V z = (lane.load(x) - V(m)) * V(s), bar = lane.load(y_bar);
            lane.add(x_bar, V(s) * (lane.load(weight) * bar - V(mean_q) - z * V(mean_zq)));
            if (weight_bar) lane.add(weight_bar, z * bar);
            if (bias_bar) lane.add(bias_bar, bar);
        });
    }
};

/// Layer norm of every row: y = w ⊙ (x − mean x) / √(var x + 1e-5) + bias, with the biased variance.
/// x: [..,D]; weight, bias: [D]; returns x's shape. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> layer_norm(const A& x, reads<A> weight, reads<A> bias, Backend backend = {}) {
    return detail::norm<layer_norm_function>("layer_norm", x, weight, bias, backend);
}

/// The adjoint. With r = 1/√(var x + 1e-5), z = (x − mean x) r and q = w ⊙ ȳ:
/// x̄ += r (q − mean(q) − z mean(z ⊙ q)),  w̄ += Σ_rows z ⊙ ȳ,  bias's += Σ_rows ȳ.
/// x, y_bar, x_bar: [..,D]; weight, weight_bar, bias_bar: [D]; accumulates. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
void layer_norm_back(const A& x, reads<A> weight, reads<A> y_bar, writes<A> x_bar, writes<A> weight_bar,
                     writes<A> bias_bar, Backend backend = {}) {
    detail::norm_back<layer_norm_function>("layer_norm_back", x, weight, y_bar, x_bar, weight_bar, bias_bar, backend);
}

}  // namespace fprnn
