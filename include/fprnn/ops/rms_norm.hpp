#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/norm.hpp>
#include <fprnn/ops/squares.hpp>

namespace fprnn {

/// A row's root-mean-square norm: y = w ⊙ x / √(mean x² + ε).
struct rms_norm_function {
    static constexpr const char* name = "rms_norm";
    static constexpr double epsilon = 1e-5;
    static constexpr bool has_bias = false;
    static constexpr bool centred = false;  ///< the mean is subtracted

    /// Calls go_on(x, 1/σ(x), ∂x · 1/σ(x)) for the row's x(lane), or a multiple of them.
    template <class Team, class T, class Row, class GoOn>
    FPRNN_BOTH static void measure(index D, const Row& row, const GoOn& go_on) {
        using math::sqrt;
        using range = kernel::squares<T>;
        const auto plain = [&](auto lane) { return lane.load(row); };
        const auto scaled = [&](auto lane) { return lane.load(row) * decltype(lane.load(row))(range::scale); };
        const T squares = range::template sum<Team>(D, plain);
        if (range::in_range(squares)) {
            const T r = T(1) / sqrt(squares / static_cast<T>(D) + T(epsilon));
            go_on(plain, r, r);
        } else {
            const T r = T(1) / sqrt(range::template sum<Team>(D, scaled) / static_cast<T>(D));
            go_on(scaled, r, r * range::scale);
        }
    }

    template <class Team, class T>
    FPRNN_BOTH static void value(index D, const T* from, const T* from_weight, const T*, T* y) {
        const auto x = held<Team>(D, from), weight = held<Team>(D, from_weight);
        measure<Team, T>(D, x, [&](const auto& of, T r, T) {
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(x));
                lane.store(y, of(lane) * V(r) * lane.load(weight));
            });
        });
    }

    /// With z = r x and q = w ⊙ ȳ:  x̄ += r (q − z mean(z ⊙ q)),  w̄ += z ⊙ ȳ. weight_bar may be null.
    template <class Team, class T>
    FPRNN_BOTH static void back(index D, const T* from, const T* weight, const T* from_y_bar, T* x_bar, T* weight_bar,
                                T*) {
        const auto x = held<Team>(D, from), y_bar = held<Team>(D, from_y_bar);
        measure<Team, T>(D, x, [&](const auto& of, T r, T slope) {
            const T mean =
                Team::template sum<1>(
                    D, [&](auto lane) { return small_array{of(lane) * lane.load(weight) * lane.load(y_bar)}; })[0] *
                r / static_cast<T>(D);
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(x));
                const V z = of(lane) * V(r), bar = lane.load(y_bar);
                lane.add(x_bar, V(slope) * (lane.load(weight) * bar - z * V(mean)));
                if (weight_bar) lane.add(weight_bar, z * bar);
            });
        });
    }
};

/// Root-mean-square norm of every row: y = w ⊙ x / √(mean x² + 1e-5).
/// x: [..,D]; weight: [D]; returns x's shape. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> rms_norm(const A& x, reads<A> weight, Backend backend = {}) {
    return detail::norm<rms_norm_function>("rms_norm", x, weight, {}, backend);
}

template <array_like A, class... Others>
    requires(detail::with_other_numbers<element<A>, Others...>)
tensor<element<A>> rms_norm(const A&, const Others&...) {
    static_assert(!detail::with_other_numbers<element<A>, Others...>,
                  "rms_norm(x, weight): all arguments must hold numbers of one type");
    return {};
}

/// The adjoint. With r = 1/√(mean x² + 1e-5), z = r x and q = w ⊙ ȳ:
///
///     x̄ += r (q − z mean(z ⊙ q)),   w̄ += Σ_rows z ⊙ ȳ
///
/// x, y_bar, x_bar: [..,D]; weight, weight_bar: [D]; accumulates. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
void rms_norm_back(const A& x, reads<A> weight, reads<A> y_bar, writes<A> x_bar, writes<A> weight_bar,
                   Backend backend = {}) {
    detail::norm_back<rms_norm_function>("rms_norm_back", x, weight, y_bar, x_bar, weight_bar, {}, backend);
}

}  // namespace fprnn
