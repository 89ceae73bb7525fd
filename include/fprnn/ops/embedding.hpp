#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace fprnn {

namespace detail {

inline void require_tokens(const char* operation, view<const std::int32_t> tokens, index V) {
    require_rank(operation, "tokens", tokens.shape(), 2, "[B,T]");
    for (index i = 0; i < tokens.size(); ++i)
        require(tokens[i] >= 0 && tokens[i] < V, operation, [&] {
            return "token " + std::to_string(tokens[i]) + " at position " + std::to_string(i) +
                   " is outside of the table of " + std::to_string(V);
        });
}

/// The rows of a table that tokens stand for, and what is added to them, in the host's memory. A backend with
/// memory of its own specialises it.
template <class Backend>
struct embedding_rows {
    template <class T, class X>
    static void value(view<const T> table, view<const std::int32_t> tokens, view<X> y, Backend&) {
        static_assert(host_memory_backend<Backend, T>,
                      "a backend with memory of its own specialises detail::embedding_rows");
        const index D = table.shape()[1];
        for (index i = 0; i < tokens.size(); ++i) std::copy_n(table.data() + tokens[i] * D, D, y.data() + i * D);
    }
    template <class T, class X>
    static void back(view<const std::int32_t> tokens, view<const X> y_bar, view<T> table_bar, Backend&) {
        const index D = table_bar.shape()[1];
        for (index i = 0; i < tokens.size(); ++i)
            for (index d = 0; d < D; ++d) table_bar[tokens[i] * D + d] += y_bar[i * D + d];
    }
};

/// embedding of views that lie where the backend works with them; it may store y as what is computed in T.
template <class T, class X, class Backend>
void embedding(view<const T> table, view<const std::int32_t> tokens, view<X> y, Backend& backend) {
    require_rank("embedding", "table", table.shape(), 2, "[V,D]");
    const index V = table.shape()[0], D = table.shape()[1];
    require_tokens("embedding", tokens, V);
    require_shape("embedding", "y", y.shape(), {tokens.shape()[0], tokens.shape()[1], D});
    embedding_rows<Backend>::value(table, tokens, y, backend);
}
template <class T, class X, class Backend>
void embedding_back(view<const std::int32_t> tokens, view<const X> y_bar, view<T> table_bar, Backend& backend) {
    require_rank("embedding_back", "table_bar", table_bar.shape(), 2, "[V,D]");
    const index D = table_bar.shape()[1];
    require_tokens("embedding_back", tokens, table_bar.shape()[0]);
    require_shape("embedding_back", "y_bar", y_bar.shape(), {tokens.shape()[0], tokens.shape()[1], D});
    embedding_rows<Backend>::back(tokens, y_bar, table_bar, backend);
}

}  // namespace detail

/// Rows of a table: y[b,t] = table[tokens[b,t]].
/// table: [V,D]; tokens: [B,T] in [0,V), the host's; overwrites y [B,T,D], or returns it. Errors: shapes, a
/// token outside the table.
template <array_like A, backend_of<A> Backend = reference>
void embedding(const A& table, view<const std::int32_t> tokens, writes<A> y, Backend backend = {}) {
    detail::require_here(backend, "embedding", detail::named{"table", table}, detail::named{"y", y});
    detail::embedding(detail::read(table), tokens, detail::write(y), backend);
}
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> embedding(const A& table, view<const std::int32_t> tokens, Backend backend = {}) {
    detail::require_rank("embedding", "tokens", tokens.shape(), 2, "[B,T]");
    auto y = detail::make_array<element<A>>(backend, {tokens.shape()[0], tokens.shape()[1], table.shape().back()});
    embedding(table, tokens, writes<A>(y), backend);
    return y;
}

/// The adjoint: table_bar[tokens[b,t]] += y_bar[b,t], token after token.
/// tokens: [B,T]; y_bar: [B,T,D]; table_bar: [V,D]; accumulates. Errors: shapes, a token outside the table.
template <array_like A, backend_of<A> Backend = reference>
void embedding_back(view<const std::int32_t> tokens, const A& y_bar, writes<A> table_bar, Backend backend = {}) {
    detail::require_here(backend, "embedding_back", detail::named{"y_bar", y_bar},
                         detail::named{"table_bar", table_bar});
    detail::embedding_back(tokens, detail::read(y_bar), detail::write(table_bar), backend);
}

}  // namespace fprnn
