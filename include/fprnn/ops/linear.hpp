#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

namespace fprnn {

namespace detail {

struct linear_sizes {
    index rows, in, out;
};
/// Names the operands as `linear` and `linear_back` do.
inline linear_sizes require_linear(const char* operation, const shape& x, const shape& W) {
    require_rank(operation, "x", x, 3, "[B,T,k]");
    require_rank(operation, "W", W, 2, "[n,k]");
    require(W[1] == x[2], operation, [&] { return "W is " + W.to_string() + " but x is " + x.to_string(); });
    return {x[0] * x[1], x[2], W[0]};
}

/// product(to, from) on whole tiles of rows: where they lie, except for the last, partly filled one, which is
/// copied beside rows of zeros. All products then have the same shape, so a row's bits depend neither on the
/// number of rows nor on its place among them. A machine without tiles takes all rows at a time.
template <class T, class Backend, class Product>
void for_each_tile(Backend& backend, index rows, matrix<const T> from, matrix<T> to, Product&& product) {
    if constexpr (requires { Backend::tile; }) {
        constexpr index tile = Backend::tile;
        backend.for_each((rows + tile - 1) / tile, [&](index i) {
            const index first = i * tile, filled = std::min(tile, rows - first);
            const T* a = from.data + first * from.stride;
            T* b = to.data + first * to.stride;
            if (filled == tile) {
                product(matrix<T>{b, tile, to.columns, to.stride}, matrix<const T>{a, tile, from.columns, from.stride});
                return;
            }
            buffer<T> padded_from(static_cast<std::size_t>(tile * from.columns));
            buffer<T> padded_to(static_cast<std::size_t>(tile * to.columns));
            std::copy_n(a, filled * from.columns, padded_from.data());
            std::copy_n(b, filled * to.columns, padded_to.data());
            product(matrix<T>{padded_to.data(), tile, to.columns, to.columns},
                    matrix<const T>{padded_from.data(), tile, from.columns, from.columns});
            std::copy_n(padded_to.data(), filled * to.columns, b);
        });
    } else {
        product(to, from);
    }
}

/// y = x Wᵀ of rows that lie where the backend works with them, and x̄ += ȳ W, W̄ += ȳᵀx, of which either may
/// be left out.
template <class T, class Backend>
void multiply_rows(matrix<const T> x, matrix<const T> W, matrix<T> y, bool overwrite, Backend& backend) {
    for_each_tile<T>(backend, x.rows, x, y, [&](auto to, auto from) { backend.multiply(to, from, W, overwrite); });
}
template <class T, class Backend>
void multiply_rows_back(matrix<const T> x, matrix<const T> W, matrix<const T> y_bar, matrix<T> x_bar, matrix<T> W_bar,
                        Backend& backend) {
    const weights_part<T> all{W_bar, x};
    if (x_bar.data)
        for_each_tile<T>(backend, y_bar.rows, y_bar, x_bar,
                         [&](auto to, auto from) { backend.multiply_back(to, from, W, false); });
    if (W_bar.data) backend.multiply_weights(y_bar, weights_parts<T>(&all, 1));
}

}  // namespace detail

/// A linear map of every token: y_t = W x_t + b.
/// x: [B,T,k]; W: [n,k]; b: [n], none when left out; returns [B,T,n]. Products go over tiles of Backend::tile
/// rows, the last one padded: equal tokens give equal bits wherever they stand. Errors: shapes that do not
/// match.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> linear(const A& x, reads<A> W, reads<A> b = {}, Backend backend = {}) {
    using T = element<A>;
    const auto [rows, k, n] = detail::require_linear("linear", x.shape(), W.shape());
    detail::require_optional("linear", "b", b, {n});
    detail::require_here(backend, "linear", detail::named{"x", x}, detail::named{"W", W}, detail::named{"b", b});
    auto y = detail::make_array<T>(backend, {x.shape()[0], x.shape()[1], n});
    if (y.empty()) return y;
    if (b.data()) detail::each_row<T>(backend, rows, body::copy<T>{n, {b.data(), 0}, {y.data(), n}});
    detail::multiply_rows<T>({x.data(), rows, k, k}, {W.data(), n, k, k}, {y.data(), rows, n, n}, !b.data(), backend);
    return y;
}

template <array_like A, class... Others>
    requires(detail::with_other_numbers<element<A>, Others...>)
tensor<element<A>> linear(const A&, const Others&...) {
    static_assert(!detail::with_other_numbers<element<A>, Others...>,
                  "linear(x, W, b): all arguments must hold numbers of one type");
    return {};
}

/// The adjoint: x̄_t += Wᵀ ȳ_t,  W̄ += Σ_t ȳ_t x_tᵀ,  b̄ += Σ_t ȳ_t.
/// x, x_bar: [B,T,k]; W, W_bar: [n,k]; y_bar: [B,T,n]; b_bar: [n]; any of the three may be left out;
/// accumulates. W̄ and b̄ are formed on the calling thread, from all tokens at once. Errors: shapes that do
/// not match.
template <array_like A, backend_of<A> Backend = reference>
void linear_back(const A& x, reads<A> W, reads<A> y_bar, writes<A> x_bar, writes<A> W_bar, writes<A> b_bar = {},
                 Backend backend = {}) {
    using T = element<A>;
    const auto [rows, k, n] = detail::require_linear("linear_back", x.shape(), W.shape());
    detail::require_shape("linear_back", "y_bar", y_bar.shape(), {x.shape()[0], x.shape()[1], n});
    detail::require_optional("linear_back", "x_bar", x_bar, x.shape());
    detail::require_optional("linear_back", "W_bar", W_bar, W.shape());
    detail::require_optional("linear_back", "b_bar", b_bar, {n});
    detail::require_here(backend, "linear_back", detail::named{"x", x}, detail::named{"W", W},
                         detail::named{"y_bar", y_bar}, detail::named{"x_bar", x_bar}, detail::named{"W_bar", W_bar},
                         detail::named{"b_bar", b_bar});
    if (y_bar.empty()) return;
    const matrix<const T> from{x.data(), rows, k, k}, weights{W.data(), n, k, k}, bar{y_bar.data(), rows, n, n};
    const matrix<T> to_x{x_bar.data(), rows, k, k}, to_weights{W_bar.data(), n, k, k};
    typename Backend::template row_sums<T> sums(backend, rows, n, b_bar.data());
    const body::add_rows<T> add_rows{n, {y_bar.data(), n}, sums.into};
    backend.at_once([&] {
        detail::multiply_rows_back<T>(from, weights, bar, to_x, to_weights, backend);
        if (!b_bar.empty()) backend.template rows<T>(bar.rows, add_rows);
        sums.finish();
    });
}

}  // namespace fprnn
