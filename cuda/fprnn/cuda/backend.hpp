#pragma once

#include <fprnn/cuda/blas.hpp>
#include <fprnn/cuda/graph.hpp>
#include <fprnn/cuda/parameters.hpp>
#include <fprnn/cuda/pass.hpp>
#include <fprnn/cuda/recorder.hpp>
#include <fprnn/cuda/row.hpp>
#include <fprnn/cuda/selective_scan.hpp>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/ops/bodies.hpp>
#include <fprnn/program/rules/scan.hpp>
#include <fprnn/program/selective_scan_bodies.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

/// What layers ask of a device (concept backend_for): with this, layer(gpu.copy(theta), gpu.copy(x), gpu) runs there. CUDA
/// sources include backend.cuh, which has the kernels.
namespace fprnn::cuda {

namespace detail {

/// Starts body.row<Team>(r, worker) for r in [0,n), a team a worker, which takes the rows worker, worker + workers, …; a kernel in
/// backend.cuh, threads of the host in tests.
template <class T, class Body>
void start_rows(const device& d, index n, index workers, const Body& body);

/// Starts rows of bodies that have a kernel of their own, of more than a team a row. Says whether they have.
template <class T, class Body>
bool start_kernel(const device&, index, const Body&) {
    return false;
}
/// Selective scans of sequences that lie side by side, whose states fit the registers of a thread.   (docs/decisions/0013-selective-scan-on-a-gpu.md)
/// Their bodies differ in what is there beside the input and b.
template <class T, class Body, class... Rows>
bool is_dense(index n, const Body& scan, const Rows&... of_channels) {
    const auto& [tokens, N, D, stride, state_stride] = scan.shape;
    return scan.delta.stride == D && ((of_channels.stride == D) && ...) && scan.b.stride == N && scan.c.stride == N &&
           stride == n * D && state_stride == n * N;
}
template <class T, class Body>
selective_scan_arguments<T> arguments_of(index n, const Body& scan) {
    selective_scan_arguments<T> s;
    s.sequences = n, s.tokens = scan.shape.tokens, s.channels = scan.shape.channels, s.states = scan.shape.states;
    s.sequence_rows = 1, s.token_rows = n;
    s.A = scan.A, s.delta = scan.delta.data, s.b = scan.b.data, s.c = scan.c.data;
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
bool start_kernel(const device& d, index n, const body::selective_scan<T, Step, Behind>& scan) {
    const index N = scan.shape.states, D = scan.shape.channels;
    if (!is_dense<T>(n, scan, scan.u, scan.y) || scan.H.stride != N * D || N > max_states<T> ||
        !rows_are_dense(D, scan.step) || !rows_are_dense(D, scan.behind))
        return false;
    selective_scan_sequences<T, T> s{arguments_of<T>(n, scan)};
    s.u = scan.u.data, s.y = scan.y.data;
    s.carry_in = s.carry_out = scan.H.data;
    if constexpr (Step::is_chain || Behind::is_chain)
        selective_scan_launch(d, selective_scan_in_chains<T, T, Step, Behind>{s, scan.step, scan.behind});
    else
        selective_scan_launch(d, s);
    return true;
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
bool start_kernel(const device& d, index n, const body::selective_scan_back_input<T, Behind>& scan) {
    const index N = scan.shape.states, D = scan.shape.channels, one = N * D;
    if (!is_dense<T>(n, scan, scan.y_bar, scan.u_bar) || scan.H_bar.stride != one || N > max_states<T> ||
        !bars_are_dense(D, scan.behind))
        return false;
    selective_scan_input_adjoint<T, T, Behind> s{{arguments_of<T>(n, scan)}, scan.behind};
    std::swap(s.b, s.c);
    s.u = scan.y_bar.data, s.y = scan.u_bar.data;
    s.carry_in = s.carry_out = scan.H_bar.data;
    selective_scan_launch(d, s);
    return true;
}
/// A single token's states need not be recomputed.
template <class T, class Step, class Behind>
bool start_kernel(const device& d, index n, const body::selective_scan_back<T, Step, Behind>& scan) {
    const auto& [tokens, N, D, stride, state_stride] = scan.shape;
    const auto fits = [](const strided<T>& bar, index width) { return !bar.data || bar.stride == width; };
    if (tokens < 2 || N > max_back_states<T> || !is_dense<T>(n, scan, scan.u, scan.y_bar) || scan.H.stride != N * D ||
        scan.H_bar.stride != N * D || !fits(scan.delta_bar, D) || !fits(scan.u_bar, D) || !fits(scan.b_bar, N) ||
        !fits(scan.c_bar, N) || (scan.A_bar.rows.data && !scan.A_bar.of_worker) || !bars_are_dense(D, scan.step) ||
        !bars_are_dense(D, scan.behind))
        return false;
    selective_scan_adjoint<T, T, update::accumulate> s{arguments_of<T>(n, scan)};
    s.workers = d.workers(n);
    s.u = scan.u.data, s.carry_in = scan.H.data, s.y_bar = scan.y_bar.data;
    s.H_bar = scan.H_bar.data, s.delta_bar = scan.delta_bar.data, s.u_bar = scan.u_bar.data;
    s.A_bar = scan.A_bar.rows.data;
    if constexpr (Step::is_chain || Behind::is_chain)
        selective_scan_back_launch(d, selective_scan_adjoint_in_chains<T, T, Step, Behind>{s, scan.step, scan.behind},
                                   scan.b_bar.data, scan.c_bar.data);
    else
        selective_scan_back_launch(d, s, scan.b_bar.data, scan.c_bar.data);
    return true;
}

/// Starts a body of one long row that has a kernel of its own. Says whether it has.
template <class T, class Body>
bool start_kernel(const device&, const Body&) {
    return false;
}
/// Scans of sequences that lie side by side, [1,T,B·D]: time is cut into chunks, of some tokens a thread, unless there is a channel for every thread
/// that the device has room for. Products of λ over these have to be finite, as in cuda::scan.        (docs/decisions/0011-scan-on-a-gpu.md)
inline bool is_worth_cutting(const device& d, index tokens, index channels) {
    return tokens >= 64 && channels < d.resident_threads();
}
template <class T>
bool start_kernel(const device& d, const body::scan<T>& scan) {
    const auto& [tokens, channels, lambda, u, before, h] = scan;
    if (!is_worth_cutting(d, tokens, channels)) return false;
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

/// n numbers on a device, not initialised.
template <class T>
class numbers {
public:
    numbers(const device& d, index n) : memory_(d.allocate(checked_product(n, sizeof(T), "cuda: memory"))) {}
    T* data() { return static_cast<T*>(memory_.data()); }

private:
    allocation memory_;
};

template <class T, class X>
struct fill_row {
    index channels;
    X* to;
    T value;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(to, value); });
    }
};

/// Every worker adds to a sum of its own; these are added in one order. Within by_rows that is once, in the end.
template <class T>
class row_sums {
public:
    receiver<T> into;

    row_sums(const device& d, index n, index width, T* to)
        : device_(d), workers_(d.workers(n)), width_(width), to_(to) {
        if (!to) return;
        if (recorder* later = d.recording(n)) {
            into = {{later->sums(width, to), width}, true};
            return;
        }
        into = {{sums_.emplace(d, workers_ * width).data(), width}, true};
        d.clear(sums_->data(), checked_product(workers_ * width, sizeof(T), "cuda: sums"));
    }
    void finish() {
        if (sums_) start_row<T>(device_, add_parts<T>{width_, workers_, sums_->data(), to_});
    }

private:
    const device& device_;
    index workers_, width_;
    T* to_;
    std::optional<numbers<T>> sums_;
};

}  // namespace detail

/// Fewer are called at once.
inline constexpr index tokens_of_a_graph = 4;

template <class Body>
void device::for_each(index n, Body&& body) const {
    for (index i = 0; i < n; ++i) thread_pool::call(body, i, 0);
}

/// As many as keep the device busy; each has scratch of its own, so no more.
inline index device::workers(index n) const { return std::min<index>(n, 8 * multiprocessors()); }

inline detail::recorder* device::recording() const { return static_cast<detail::recorder*>(pending_.value); }
inline detail::recorder* device::recording(index n) const {
    return recording() && recording()->rows() == n ? recording() : nullptr;
}

template <class T, class Body>
inline void device::rows(index n, const Body& body) const {
    if (n == 0) return;
    if (auto* later = recording(n)) return later->add(detail::code_of_rows<T, Body>(*this), body);
    flush();
    if (!detail::start_kernel<T>(*this, n, body)) detail::start_rows<T>(*this, n, workers(n), body);
}
template <class T, class Body>
inline void device::row(const Body& body) const {
    if (auto* later = recording()) {
        if constexpr (requires { body.channels; }) later->require_whole("row", body.channels);
        return later->add(detail::code_of_share<T, Body>(*this), body);
    }
    if (!detail::start_kernel<T>(*this, body)) detail::start_row<T>(*this, body);
}
template <class Calls>
void device::pass(index tokens, std::span<const index> sizes, const Calls& calls) const {
    if (tokens < tokens_of_a_graph || !context_->options.graphs || context_->pass) return calls();
    detail::graphs_of_calls mine(*this, detail::known_graphs::of(*this).find(&detail::name_of_calls<Calls>, sizes));
    calls();
    mine.finish();
}
template <class Calls>
void device::by_rows(index n, const Calls& calls) const {
    if (n == 0 || recording(n) || !context_->options.programs) return calls();
    if (recording()) throw std::logic_error("cuda: by_rows within by_rows of other rows");
    detail::recorder later(*this, n);
    {
        struct scope {
            const device& d;
            ~scope() { d.pending_.value = nullptr; }
        } const within{*this};
        pending_.value = &later;
        calls();
        later.flush();
    }
    later.add_sums();
}
template <class T, class Calls>
inline void device::repeat(index n, const T* running, const Calls& calls) const {
    detail::executable_graph* iteration = nullptr;
    if (!any(n, running)) return;
    while (true) {
        for (int i = 0; i < unseen_iterations; ++i) iteration ? iteration->start(*this) : calls();
        if (!any(n, running)) return;
        // To write a graph down costs as much as some iterations, for which kernels must have been loaded.
        if (iteration || !context_->options.graphs || recording()) continue;
        const detail::written_graph written = detail::written_down(*this, calls);
        iteration = &detail::known_graphs::of(*this).find(&detail::name_of_calls<Calls>, std::span(&n, 1)).graph();
        iteration->become(*this, written);
    }
}
template <class T, class Calls>
inline void device::repeat_by_rows(index n, const T* running, const Calls& calls) const {
    if (auto* later = recording(n))
        later->repeat(detail::code_of_while<T>(*this), detail::code_of_back<T>(*this), running, calls);
    else
        repeat(n, running, calls);
}
template <class Calls>
void device::at_once(const Calls& calls) const {
    if (!recording()) (void)detail::blas::of(*this);  // which cannot be made meanwhile
    detail::known_graphs::call_at_once(*this, calls);
}

template <class T>
inline void device::copy(index n, const std::type_identity_t<T>* from, T* to) const {
    if (n == 0) return;
    if (recording()) return row<T>(body::copy<T>{n, {from, 0}, {to, 0}});
    const index bytes = checked_product(n, sizeof(T), "cuda: copy");
    const detail::current_gpu current(gpu());
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream()),
          [&] { return "cudaMemcpyAsync(" + std::to_string(bytes) + " bytes)"; });
}
template <class T>
inline void device::fill(index n, T* to, std::type_identity_t<T> value) const {
    if (n == 0) return;
    using S = computed_in<T>;
    const S number = static_cast<S>(value);
    if (number != S(0) || recording()) return row<S>(detail::fill_row<S, T>{n, to, number});
    clear(to, checked_product(n, sizeof(T), "cuda: fill"));
}
template <class T>
void device::put(index n, const std::type_identity_t<T>* from, T* to) const {
    flush();
    detail::copy_now(*this, to, from, checked_product(n, sizeof(T), "cuda: put"), {n});
}
template <class T>
fprnn::tensor<T> device::seen(index n, const T* from) const {
    flush();
    fprnn::tensor<T> here({n});
    detail::copy_now(*this, here.data(), from, checked_product(n, sizeof(T), "cuda: seen"), {n});
    return here;
}
template <class T>
bool device::any(index n, const T* flags) const {
    const auto here = seen(n, flags);
    return std::any_of(here.begin(), here.end(), [](T x) { return x != T(0); });
}
template <class T>
void device::assign(tensor<T>& x, const fprnn::shape& extents) const {
    flush();
    if (x.shape() != extents || x.where() != *this) x = tensor<T>(*this, extents);
    x.clear();
}

// A row-major matrix is its transpose's columns.

template <class T>
void device::multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T>) const {
    flush();
    detail::multiply_columns(*this, CUBLAS_OP_T, CUBLAS_OP_N, y.columns, y.rows, x.columns, w, x, overwrite, y);
}
template <class T>
void device::multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite, view<T>) const {
    flush();
    detail::multiply_columns(*this, CUBLAS_OP_N, CUBLAS_OP_N, x_bar.columns, x_bar.rows, y_bar.columns, w, y_bar,
                             overwrite, x_bar);
}
template <class T>
void device::multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T>) const {
    flush();
    for (const auto& [w_bar, x] : parts)
        detail::multiply_columns(*this, CUBLAS_OP_N, CUBLAS_OP_T, w_bar.columns, w_bar.rows, x.rows, x, y_bar, false,
                                 w_bar);
}

}  // namespace fprnn::cuda
