#pragma once

#include <fprnn/ops/rows.hpp>

#include <cstdint>

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

}  // namespace detail

/// Rows of a table: y[b,t] = table[tokens[b,t]].
/// table: [V,D]; tokens: [B,T] in [0,V); overwrites y [B,T,D], or returns it. Errors: shapes, a token outside the table.
template <array_like A>
void embedding(const A& table, view<const std::int32_t> tokens, writes<A> y) {
    detail::require_rank("embedding", "table", table.shape(), 2, "[V,D]");
    const index V = table.shape()[0], D = table.shape()[1];
    detail::require_tokens("embedding", tokens, V);
    detail::require_shape("embedding", "y", y.shape(), {tokens.shape()[0], tokens.shape()[1], D});
    for (index i = 0; i < tokens.size(); ++i) std::copy_n(table.data() + tokens[i] * D, D, y.data() + i * D);
}
template <array_like A>
tensor<element<A>> embedding(const A& table, view<const std::int32_t> tokens) {
    detail::require_rank("embedding", "tokens", tokens.shape(), 2, "[B,T]");
    tensor<element<A>> y({tokens.shape()[0], tokens.shape()[1], table.shape().back()});
    embedding(table, tokens, y.view());
    return y;
}

/// The adjoint: table_bar[tokens[b,t]] += y_bar[b,t], token after token.
/// tokens: [B,T]; y_bar: [B,T,D]; table_bar: [V,D]; accumulates. Errors: shapes, a token outside the table.
template <array_like A>
void embedding_back(view<const std::int32_t> tokens, const A& y_bar, writes<A> table_bar) {
    detail::require_rank("embedding_back", "table_bar", table_bar.shape(), 2, "[V,D]");
    const index D = table_bar.shape()[1];
    detail::require_tokens("embedding_back", tokens, table_bar.shape()[0]);
    detail::require_shape("embedding_back", "y_bar", y_bar.shape(), {tokens.shape()[0], tokens.shape()[1], D});
    for (index i = 0; i < tokens.size(); ++i)
        for (index d = 0; d < D; ++d) table_bar[tokens[i] * D + d] += y_bar[i * D + d];
}

/// The same on a backend of the host, one after the other.
template <class T, host_memory_backend<T> Backend>
void embedding(view<const T> table, view<const std::int32_t> tokens, view<T> y, const Backend&) {
    embedding(table, tokens, y);
}
template <class T, host_memory_backend<T> Backend>
void embedding_back(view<const std::int32_t> tokens, view<const T> y_bar, view<T> table_bar, const Backend&) {
    embedding_back(tokens, y_bar, table_bar);
}

}  // namespace fprnn
