#pragma once

#include <fprnn/cuda/scan.hpp>
#include <fprnn/cuda/scan_operations.hpp>
#include <fprnn/cuda/selective_scan.hpp>
#include <fprnn/operations/scan.hpp>

#include <cstddef>
#include <utility>

/// Which bodies of layers a device does not execute row by row, but by a kernel of their own: scans of many
/// tokens.
namespace fprnn::cuda::detail {

/// Starts rows of bodies that have a kernel of their own, of more than a team a row. Says whether they have.
template <class T, class Body>
bool start_kernel(const device&, index, const Body&) {
    return false;
}
/// Selective scans of sequences that lie side by side, whose states fit the registers of a thread.
///                                                           (docs/decisions/0013-selective-scan-on-a-gpu.md)
/// Their bodies differ in what is there beside the input and b.
template <class T>
using rows_of_scan = body::recurrence_rows<selective_scan_recurrence, T>;
template <class T, class... Rows>
bool is_dense(index n, const rows_of_scan<T>& rows, const Rows&... of_channels) {
    const index N = rows.of.states, D = rows.of.channels;
    return rows.x[0].stride == D && ((of_channels.stride == D) && ...) && rows.x[1].stride == N &&
           rows.x[2].stride == N && rows.tile == n;
}
template <class T>
selective_scan_arguments<T> arguments_of(index n, const rows_of_scan<T>& rows) {
    selective_scan_arguments<T> s;
    s.sequences = n, s.tokens = rows.tokens, s.channels = rows.of.channels, s.states = rows.of.states;
    s.sequence_rows = 1, s.token_rows = n;
    s.A = rows.p, s.delta = rows.x[0].data, s.b = rows.x[1].data, s.c = rows.x[2].data;
    return s;
}
template <class T>
bool rows_are_dense(index, const kernel::no_chain<T>&) {
    return true;
}
template <class F, class T, kernel::operand... From>
bool rows_are_dense(index channels, const kernel::chain_of_scan<F, T, From...>& chain) {
    const bool in_rows[] = {From == kernel::operand::rows...};
    bool dense = chain.to.stride == channels;
    for (std::size_t k = 0; k < sizeof...(From); ++k) dense = dense && (!in_rows[k] || chain.a[k].stride == channels);
    return dense;
}
template <class T, class Step, class Behind>
bool start_scan(const device& d, index n, const body::recur<selective_scan_recurrence, T>& scan, const Step& before,
                const Behind& behind) {
    const index N = scan.rows.of.states, D = scan.rows.of.channels;
    const auto& u = scan.rows.x[3];
    if (!is_dense(n, scan.rows, u, scan.y) || scan.from.stride != N * D || scan.to.stride != N * D ||
        N > max_states<T> || !rows_are_dense(D, before) || !rows_are_dense(D, behind))
        return false;
    selective_scan_sequences<T, T> s{arguments_of(n, scan.rows)};
    s.u = u.data, s.y = scan.y.data;
    s.carry_in = scan.from.data, s.carry_out = scan.to.data;
    if constexpr (Step::is_chain || Behind::is_chain)
        selective_scan_launch(d, selective_scan_in_chains<T, T, Step, Behind>{s, before, behind});
    else
        selective_scan_launch(d, s);
    return true;
}
template <class T>
bool start_kernel(const device& d, index n, const body::recur<selective_scan_recurrence, T>& scan) {
    return start_scan(d, n, scan, kernel::no_chain<T>(), kernel::no_chain<T>());
}
template <class T, class Step, class Behind>
bool start_kernel(const device& d, index n, const body::selective_scan_in_chains<T, Step, Behind>& all) {
    return start_scan(d, n, all.scan, all.before, all.behind);
}
template <class T>
bool bars_are_dense(index, const kernel::no_chain<T>&) {
    return true;
}
template <class F, class T, class Stores, kernel::operand... From>
bool bars_are_dense(index channels, const kernel::chain_of_scan_back<F, T, Stores, From...>& chain) {
    const bool of_worker[] = {From == kernel::operand::vector...};
    bool dense = chain.bar.stride == channels;
    for (std::size_t k = 0; k < sizeof...(From); ++k) {
        const receiver<T>& to = chain.a_bar[k];
        dense = dense && (of_worker[k] || chain.a[k].stride == channels) &&
                (!to.rows.data || (to.of_worker == of_worker[k] && to.rows.stride == channels));
    }
    return dense;
}
template <class T, class Behind>
bool start_back_input(const device& d, index n, const body::recur_back_input<selective_scan_recurrence, T>& scan,
                      const Behind& behind) {
    const index N = scan.rows.of.states, D = scan.rows.of.channels;
    if (!is_dense(n, scan.rows, scan.y_bar, scan.u_bar) || scan.S_bar.stride != N * D || N > max_states<T> ||
        !bars_are_dense(D, behind))
        return false;
    selective_scan_input_adjoint<T, T, Behind> s{{arguments_of(n, scan.rows)}, behind};
    std::swap(s.b, s.c);
    s.u = scan.y_bar.data, s.y = scan.u_bar.data;
    s.carry_in = s.carry_out = scan.S_bar.data;
    selective_scan_launch(d, s);
    return true;
}
template <class T>
bool start_kernel(const device& d, index n, const body::recur_back_input<selective_scan_recurrence, T>& scan) {
    return start_back_input(d, n, scan, kernel::no_chain<T>());
}
template <class T, class Behind>
bool start_kernel(const device& d, index n, const body::selective_scan_back_input_in_chains<T, Behind>& all) {
    return start_back_input(d, n, all.scan, all.behind);
}
/// A single token's states need not be recomputed.
template <class T, class Step, class Behind>
bool start_back(const device& d, index n, const body::recur_back<selective_scan_recurrence, T>& scan,
                const Step& before, const Behind& behind) {
    const index N = scan.rows.of.states, D = scan.rows.of.channels;
    const auto& u = scan.rows.x[3];
    const auto& [delta_bar, b_bar, c_bar, u_bar] = scan.x_bar.values;
    const auto fits = [](const strided<T>& bar, index width) { return !bar.data || bar.stride == width; };
    if (scan.rows.tokens < 2 || N > max_back_states<T> || !is_dense(n, scan.rows, u, scan.y_bar) ||
        scan.S.stride != N * D || scan.S_bar.stride != N * D || !fits(delta_bar, D) || !fits(u_bar, D) ||
        !fits(b_bar, N) || !fits(c_bar, N) || (scan.p_bar.rows.data && !scan.p_bar.of_worker) ||
        !bars_are_dense(D, before) || !bars_are_dense(D, behind))
        return false;
    selective_scan_adjoint<T, T, update::accumulate> s{arguments_of(n, scan.rows)};
    s.workers = d.workers(n);
    s.u = u.data, s.carry_in = scan.S.data, s.y_bar = scan.y_bar.data;
    s.H_bar = scan.S_bar.data, s.delta_bar = delta_bar.data, s.u_bar = u_bar.data;
    s.A_bar = scan.p_bar.rows.data;
    if constexpr (Step::is_chain || Behind::is_chain)
        selective_scan_back_launch(d, selective_scan_adjoint_in_chains<T, T, Step, Behind>{s, before, behind},
                                   b_bar.data, c_bar.data);
    else
        selective_scan_back_launch(d, s, b_bar.data, c_bar.data);
    return true;
}
template <class T>
bool start_kernel(const device& d, index n, const body::recur_back<selective_scan_recurrence, T>& scan) {
    return start_back(d, n, scan, kernel::no_chain<T>(), kernel::no_chain<T>());
}
template <class T, class Step, class Behind>
bool start_kernel(const device& d, index n, const body::selective_scan_back_in_chains<T, Step, Behind>& all) {
    return start_back(d, n, all.scan, all.before, all.behind);
}

/// Starts a body of one long row that has a kernel of its own. Says whether it has.
template <class T, class Body>
bool start_kernel(const device&, const Body&) {
    return false;
}
/// Scans of sequences that lie side by side, [1,T,B·D]: time is cut into chunks, of some tokens a thread,
/// unless there is a channel for every thread that the device has room for. Products of λ over these have to
/// be finite, as in cuda::scan.                                        (docs/decisions/0011-scan-on-a-gpu.md)
inline bool is_worth_cutting(const device& d, index tokens, index channels) {
    return tokens >= 64 && channels < d.resident_threads();
}
template <class T>
bool start_kernel(const device& d, const body::scan<T>& scan) {
    const auto& [tokens, channels, stride, lambda, u, before, h] = scan;
    if (stride != channels || !is_worth_cutting(d, tokens, channels)) return false;
    scan_launch(d, "scan", {1, tokens, channels},
                scan_recurrence<T, T>{{tokens, channels, false}, lambda, u, before, h, nullptr});
    return true;
}
/// Others accumulate; what earlier tokens receive of the state is theirs alone.
template <class T>
struct scan_back_of_rows : scan_back_recurrence<T, T, update::accumulate> {
    FPRNN_BOTH void finish(index column, T after) const { this->carry_bar_in[column] = after; }
};
template <class T>
bool start_kernel(const device& d, const body::scan_back<T>& scan) {
    const auto& [tokens, channels, lambda, h, before, h_bar, running, lambda_bar, u_bar] = scan;
    if (!is_worth_cutting(d, tokens, channels)) return false;
    tensor<T> from(d, {channels});  // every chunk reads it, when the last may already have written
    d.copy(channels, running, from.data());
    scan_launch(d, "scan_back", {1, tokens, channels},
                scan_back_of_rows<T>{
                    {{tokens, channels, true}, lambda, h, before, h_bar, from.data(), lambda_bar, u_bar, running}});
    return true;
}

}  // namespace fprnn::cuda::detail
