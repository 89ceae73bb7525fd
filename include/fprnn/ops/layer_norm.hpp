#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/norm.hpp>
#include <fprnn/ops/squares.hpp>

namespace fprnn {

/// A row's layer norm: y = w ⊙ (x − mean x) / √(var x + ε) + bias, with the biased variance.
struct layer_norm_function {
    static constexpr const char* name = "layer_norm";
    static constexpr double epsilon = 1e-5;
    static constexpr bool has_bias = true;
    static constexpr bool centred = true;  ///< the mean is subtracted

    template <class T>
    struct statistics {
        T mean, squares;  ///< Σ (x − mean)²
    };

    template <class Team, class T, class X>
    FPRNN_BOTH static statistics<T> sums(index D, const X& x) {
        const T mean = Team::template sum<1>(D, [&](auto lane) { return small_array{x(lane)}; })[0] / static_cast<T>(D);
        return {mean, kernel::squares<T>::template sum<Team>(
                          D, [&](auto lane) { return x(lane) - decltype(x(lane))(mean); })};
    }
    /// Calls go_on(x, mean x, 1/σ(x), ∂x · 1/σ(x)) for the row's x(lane), or a multiple of them.
    template <class Team, class T, class Row, class GoOn>
    FPRNN_BOTH static void measure(index D, const Row& row, const GoOn& go_on) {
        using math::sqrt;
        using range = kernel::squares<T>;
        const auto plain = [&](auto lane) { return lane.load(row); };
        const auto scaled = [&](auto lane) { return lane.load(row) * decltype(lane.load(row))(range::scale); };
        statistics<T> s = sums<Team, T>(D, plain);
        if (range::in_range(s.squares)) {
            const T r = T(1) / sqrt(s.squares / static_cast<T>(D) + T(epsilon));
            go_on(plain, s.mean, r, r);
        } else {
            s = sums<Team, T>(D, scaled);
            const T r = T(1) / sqrt(s.squares / static_cast<T>(D) + range::least);
            go_on(scaled, s.mean, r, r * range::scale);
        }
    }

    template <class Team, class T>
    FPRNN_BOTH static void value(index D, const T* from, const T* from_weight, const T* from_bias, T* y) {
        const auto x = held<Team>(D, from), weight = held<Team>(D, from_weight), bias = held<Team>(D, from_bias);
        measure<Team, T>(D, x, [&](const auto& of, T mean, T r, T) {
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(x));
                lane.store(y, (of(lane) - V(mean)) * V(r) * lane.load(weight) + lane.load(bias));
            });
        });
    }

    /// With z = (x − mean) r and q = w ⊙ ȳ:  x̄ += r (q − mean(q) − z mean(z ⊙ q)),  w̄ += z ⊙ ȳ,  bias += ȳ.
    template <class Team, class T>
    FPRNN_BOTH static void back(index D, const T* from, const T* weight, const T* from_y_bar, T* x_bar, T* weight_bar,
                                T* bias_bar) {
        const auto x = held<Team>(D, from), y_bar = held<Team>(D, from_y_bar);
        measure<Team, T>(D, x, [&](const auto& of, T mean, T r, T slope) {
            const auto q_zq = Team::template sum<2>(D, [&](auto lane) {
                using V = decltype(lane.load(x));
                const V q = lane.load(weight) * lane.load(y_bar);
                return small_array<V, 2>{q, q * (of(lane) - V(mean)) * V(r)};
            });
            const T mean_q = q_zq[0] / static_cast<T>(D), mean_zq = q_zq[1] / static_cast<T>(D);
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(x));
                const V z = (of(lane) - V(mean)) * V(r), bar = lane.load(y_bar);
                lane.add(x_bar, V(slope) * (lane.load(weight) * bar - V(mean_q) - z * V(mean_zq)));
                if (weight_bar) lane.add(weight_bar, z * bar);
                if (bias_bar) lane.add(bias_bar, bar);
            });
        });
    }
};

/// Layer norm of every row: y = w ⊙ (x − mean x) / √(var x + 1e-5) + bias, with the biased variance.
/// x: [..,D]; weight, bias: [D]; returns x's shape. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> layer_norm(const A& x, reads<A> weight, reads<A> bias, Backend backend = {}) {
    return detail::norm<layer_norm_function>("layer_norm", x, weight, bias, backend);
}

template <array_like A, class... Others>
    requires(detail::with_other_numbers<element<A>, Others...>)
tensor<element<A>> layer_norm(const A&, const Others&...) {
    static_assert(!detail::with_other_numbers<element<A>, Others...>,
                  "layer_norm(x, weight, bias): all arguments must hold numbers of one type");
    return {};
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
