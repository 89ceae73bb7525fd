#pragma once

#include <fprnn/cuda/scan_chain.hpp>
#include <fprnn/operations/elementwise.hpp>
#include <fprnn/operations/recurrence.hpp>
#include <fprnn/recurrences/selective_scan.hpp>

#include <array>
#include <cstddef>
#include <utility>

/// Selective scans of layers with elementwise chains in their kernels, see fprnn/cuda/scan_chains.hpp.
namespace fprnn::body {

template <class T>
FPRNN_BOTH kernel::selective_scan_shape shape_of(const recurrence_rows<selective_scan_recurrence, T>& rows) {
    const index states = rows.of.states, channels = rows.of.channels;
    return {rows.tokens, states, channels, rows.tile * channels, rows.tile * states};
}

/// `before` evaluates delta first, `behind` something of y afterwards.
template <class T, class Before, class Behind>
struct selective_scan_in_chains {
    recur<selective_scan_recurrence, T> scan;
    Before before;
    Behind behind;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        before.template row<Team>(shape_of(scan.rows), s);
        scan.template row<Team>(s, worker);
        behind.template row<Team>(shape_of(scan.rows), s);
    }
};
/// The adjoint of `behind` comes first.
template <class T, class Behind>
struct selective_scan_back_input_in_chains {
    recur_back_input<selective_scan_recurrence, T> scan;
    Behind behind;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        behind.template row<Team>(shape_of(scan.rows), s, worker);
        scan.template row<Team>(s, worker);
    }
};
/// Likewise, and that of `before` comes last.
template <class T, class Before, class Behind>
struct selective_scan_back_in_chains {
    recur_back<selective_scan_recurrence, T> scan;
    Before before;
    Behind behind;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        behind.template row<Team>(shape_of(scan.rows), s, worker);
        scan.template row<Team>(s, worker);
        before.template row<Team>(shape_of(scan.rows), s, worker);
    }
};

}  // namespace fprnn::body

namespace fprnn::cuda::detail {

/// A chain in a scan: its functor, which of its operands' cotangents it overwrites, where these operands come
/// from, and whether its adjoint is in the scan's.
template <class Functor, bool GoesBack, class Overwrites, kernel::operand... From>
struct chain_in_scan {
    graph::slot chain;

    template <class T, class Backend>
    auto value(const frame<T, Backend>& f, index row, bool is_read) const {
        return with_operands([&]<std::size_t... k>(std::index_sequence<k...>) {
            return kernel::chain_of_scan<Functor, T, From...>{
                {{f.values(f.graph.operand(chain, k), row)...}}, f.values(chain, row), is_read};
        });
    }
    /// Calls call(adjoint), of kernel::no_chain where it is not in the scan. The innermost loop, of one
    /// token, goes back node by node.
    template <class T, class Backend, class Call>
    void with_back(const frame<T, Backend>& f, index row, dependence reach, const Call& call) const {
        if constexpr (GoesBack) {
            if (reach != dependence::current)
                return with_operands([&]<std::size_t... k>(std::index_sequence<k...>) {
                    std::array<cotangents<T, Backend>, sizeof...(k)> to{
                        cotangents<T, Backend>(f, f.graph.operand(chain, k), row, f.tile, reach)...};
                    call(kernel::chain_of_scan_back<Functor, T, Overwrites, From...>{
                        {{f.values(f.graph.operand(chain, k), row)...}}, f.bars(chain, row), {to[k].into...}});
                    for (auto& one : to) one.finish();
                });
        }
        call(kernel::no_chain<T>());
    }

private:
    template <class G>
    static auto with_operands(const G& g) {
        return g(std::make_index_sequence<sizeof...(From)>());
    }
};
struct no_chain_in_scan {
    template <class T, class Backend>
    auto value(const frame<T, Backend>&, index, bool) const {
        return kernel::no_chain<T>();
    }
    template <class T, class Backend, class Call>
    void with_back(const frame<T, Backend>&, index, dependence, const Call& call) const {
        call(kernel::no_chain<T>());
    }
};

/// A selective scan with a chain before and one behind it, or one of them.
template <class T, class Backend, class Before, class Behind>
struct scan_with_chains
    : operations::recur<selective_scan_recurrence, T, Backend, scan_with_chains<T, Backend, Before, Behind>> {
    using M = selective_scan_recurrence;
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    constexpr scan_with_chains(Before before, Behind behind) : before_(before), behind_(behind) {}

    /// The value of the chain behind has other readers; Δ has them in a backward pass alone, so that it is
    /// not stored in the forward pass.
    void run(frame& f, slot, index row, index n, const body::recur<M, T>& scan) const {
        auto before = before_.value(f, row, f.phase != pass::forward);
        auto behind = behind_.value(f, row, true);
        f.each_row(n, body::selective_scan_in_chains<T, decltype(before), decltype(behind)>{scan, before, behind});
    }
    void run_back_input(frame& f, slot, index row, index n, const body::recur_back_input<M, T>& scan,
                        dependence reach) const {
        behind_.with_back(f, row, reach, [&]<class B>(const B& behind) {
            f.each_row(n, body::selective_scan_back_input_in_chains<T, B>{scan, behind});
        });
    }
    void run_back(frame& f, slot, index row, index n, const body::recur_back<M, T>& scan, dependence reach) const {
        behind_.with_back(f, row, reach, [&]<class B>(const B& behind) {
            before_.with_back(f, row, reach, [&]<class S>(const S& before) {
                f.each_row(n, body::selective_scan_back_in_chains<T, S, B>{scan, before, behind});
            });
        });
    }

private:
    Before before_;
    Behind behind_;
};

/// A chain that is evaluated with a scan.
template <class Functor, class T, class Backend, bool... Overwrites>
struct chain_with_scan : operations::elementwise<Functor, T, Backend, Overwrites...> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    using alone = operations::elementwise<Functor, T, Backend, Overwrites...>;

    constexpr chain_with_scan(slot scan, bool goes_back) : scan_(scan), goes_back_(goes_back) {}

    void value(frame& f, slot s, index row, index n) const {
        if (f.phase == pass::replay || operations::recur<selective_scan_recurrence, T, Backend>::is_opened(f, scan_))
            alone::value(f, s, row, n);
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        if (!goes_back_ || reach == dependence::current) alone::back(f, s, row, n, reach);
    }

private:
    slot scan_;
    bool goes_back_;
};

}  // namespace fprnn::cuda::detail
