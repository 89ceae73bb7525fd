#pragma once

#include <fprnn/operations/frame.hpp>
#include <fprnn/ops/chain.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace fprnn::operations {

/// A fused tree of elementwise functions; the adjoint overwrites the cotangents of operand k where flag k of
/// Overwrites is set.
template <class Functor, class T, class Backend, bool... Overwrites>
struct elementwise : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    static constexpr std::size_t K = sizeof...(Overwrites);

    void value(frame& f, slot s, index row, index n) const {
        with_operands([&]<std::size_t... k>(std::index_sequence<k...>) {
            call(f, s, n,
                 body::chain<Functor, K, T>{f.width(s), {f.values(f.graph.operand(s, k), row)...}, f.values(s, row)});
        });
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        with_operands([&]<std::size_t... k>(std::index_sequence<k...>) {
            std::array<cotangents<T, Backend>, K> to{
                cotangents<T, Backend>(f, f.graph.operand(s, k), row, n, reach)...};
            call(f, s, n,
                 body::chain_back<Functor, K, T, Overwrites...>{
                     f.width(s), {f.values(f.graph.operand(s, k), row)...}, f.bars(s, row), {to[k].into...}});
            for (auto& one : to) one.finish();
        });
    }

protected:
    template <class F>
    static void with_operands(F&& f) {
        f(std::make_index_sequence<K>{});
    }

private:
    /// Without vectors that all tokens share, the rows are one long row.
    template <class Body>
    static void call(frame& f, slot s, index n, Body body) {
        for (const slot operand : f.graph.operands(s))
            if (f.graph[operand].shared) return f.each_row(n, body);
        body.channels *= n;
        f.one_row(body);
    }
};

}  // namespace fprnn::operations
