#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>
#include <fprnn/ops/squares.hpp>

namespace fprnn {

/// A row's L2 normalisation: y = x / max(‖x‖₂, ε), as b̄, c̄ and ū in the paper. ε = 1e-5 is the authors'.
struct l2_normalise_function {
    static constexpr double epsilon = 1e-5;

    /// Calls go_on(x, ‖x‖, ∂x) for the row's x(lane), or a multiple of them.
    template <class Team, class T, class Row, class GoOn>
    FPRNN_BOTH static void measure(index D, const Row& row, const GoOn& go_on) {
        using math::sqrt;
        using range = kernel::squares<T>;
        const auto plain = [&](auto lane) { return lane.load(row); };
        const auto scaled = [&](auto lane) { return lane.load(row) * decltype(lane.load(row))(range::scale); };
        const T squares = range::template sum<Team>(D, plain);
        if (range::in_range(squares))
            go_on(plain, sqrt(squares), T(1));
        else
            go_on(scaled, sqrt(range::template sum<Team>(D, scaled)), range::scale);
    }

    /// y may be x, which may be held. Returns the scale, 1 / max(‖x‖, ε).
    template <class Team, class T, class Row>
    FPRNN_BOTH static T value(index D, const Row& x, T* y) {
        using math::maximum;
        T result = 0;
        measure<Team, T>(D, x, [&](const auto& of, T norm, T slope) {
            const T scale = T(1) / maximum(norm, T(epsilon) * slope);
            Team::each(D, [&](auto lane) { lane.store(y, of(lane) * decltype(of(lane))(scale)); });
            result = scale * slope;
        });
        return result;
    }

    /// x̄ += (ȳ − y (yᵀȳ)) / ‖x‖ where ‖x‖ > ε, and ȳ/ε elsewhere.
    template <class Team, class T>
    FPRNN_BOTH static void back(index D, const T* from, const T* from_y_bar, T* x_bar) {
        const auto x = held<Team>(D, from), y_bar = held<Team>(D, from_y_bar);
        measure<Team, T>(D, x, [&](const auto& of, T norm, T slope) {
            const T least = T(epsilon) * slope;
            const bool inside = norm > least;
            const T scale = T(1) / (inside ? norm : least);
            T along = 0;
            if (inside)
                along =
                    Team::template sum<1>(D, [&](auto lane) { return small_array{of(lane) * lane.load(y_bar)}; })[0] *
                    scale * scale;
            Team::each(D, [&](auto lane) {
                using V = decltype(lane.load(x));
                lane.add(x_bar, (lane.load(y_bar) - of(lane) * V(along)) * V(scale * slope));
            });
        });
    }
};

namespace body {

template <class T>
struct l2_normalise {
    static constexpr bool holds = true;
    index channels;
    strided<const T> x;
    strided<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        l2_normalise_function::value<Team, T>(channels, held<Team>(channels, x[r]), y[r]);
    }
};

template <class T>
struct l2_normalise_back {
    static constexpr bool holds = true;
    index channels;
    strided<const T> x, y_bar;
    receiver<T> x_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        l2_normalise_function::back<Team, T>(channels, x[r], y_bar[r], x_bar.at(r, worker));
    }
};

}  // namespace body

/// L2 normalisation of every row: y = x / max(‖x‖₂, 1e-5).
/// x: [..,D]; returns its shape.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> l2_normalise(const A& x, Backend backend = {}) {
    using T = element<A>;
    const index D = x.shape().back();
    detail::require_here(backend, "l2_normalise", detail::named{"x", x});
    auto y = detail::make_array<T>(backend, x.shape());
    detail::each_row<T>(backend, detail::rows_of(x.shape()), body::l2_normalise<T>{D, {x.data(), D}, {y.data(), D}});
    return y;
}

/// The adjoint: x̄ += (ȳ − y (yᵀȳ)) / ‖x‖ where ‖x‖ > 1e-5, and ȳ / 1e-5 elsewhere.
/// x, y_bar, x_bar: [..,D]; accumulates into x_bar. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
void l2_normalise_back(const A& x, reads<A> y_bar, writes<A> x_bar, Backend backend = {}) {
    using T = element<A>;
    const char* operation = "l2_normalise_back";
    detail::require_same(operation, "x", x.shape(), "y_bar", y_bar.shape());
    detail::require_same(operation, "x", x.shape(), "x_bar", x_bar.shape());
    detail::require_here(backend, operation, detail::named{"x", x}, detail::named{"y_bar", y_bar},
                         detail::named{"x_bar", x_bar});
    const index D = x.shape().back();
    detail::each_row<T>(backend, detail::rows_of(x.shape()),
                        body::l2_normalise_back<T>{D, {x.data(), D}, {y_bar.data(), D}, {{x_bar.data(), D}}});
}

}  // namespace fprnn
