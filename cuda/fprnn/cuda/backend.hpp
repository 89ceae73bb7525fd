#pragma once

#include <fprnn/cuda/blas.hpp>
#include <fprnn/cuda/graph.hpp>
#include <fprnn/cuda/own_kernels.hpp>
#include <fprnn/cuda/parameters.hpp>
#include <fprnn/cuda/pass.hpp>
#include <fprnn/cuda/planning.hpp>
#include <fprnn/cuda/recorder.hpp>
#include <fprnn/cuda/row.hpp>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/ops/bodies.hpp>
#include <fprnn/ops/rows.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

/// What layers and operations ask of a device (concept backend_for, detail::eager). CUDA sources include
/// backend.cuh, which has the kernels.
namespace fprnn::cuda {

namespace detail {

/// Starts body.row<Team>(r, worker) for r in [0,n), a team a worker, which takes the rows worker, worker +
/// workers, …; a kernel in backend.cuh, threads of the host in tests.
template <class T, class Body>
void start_rows(const device& d, index n, index workers, const Body& body);

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

/// Every worker adds to a sum of its own; these are added in one order. Within by_rows that is once, in the
/// end.
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
        if (sums_) add_workers(device_, width_, workers_, sums_->data(), to_);
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
    const auto all = [&] {
        calls();
        mine.end();
    };
    try {
        all();
    } catch (const error& e) {
        if (!detail::is_of_capture(e.code()) || !mine.begins_again()) throw;
        all();
    }
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
    bool can_be_written = context_->options.graphs && !recording();
    if (!any(n, running)) return;
    while (true) {
        for (int i = 0; i < unseen_iterations; ++i) iteration ? iteration->start(*this) : calls();
        if (!any(n, running)) return;
        // To write a graph down costs as much as some iterations, for which kernels must have been loaded.
        if (iteration || !can_be_written) continue;
        detail::written_graph written;
        try {
            written = detail::written_down(*this, calls);
        } catch (const error& e) {
            if (!detail::is_of_capture(e.code())) throw;
            can_be_written = false;
            continue;
        }
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

/// Operations on a device's tensors.
namespace fprnn::detail {

template <class T>
struct arguments<cuda::tensor<T>> {
    using reads = cuda::tensor_view<const T>;
    using writes = cuda::tensor_view<T>;
};

template <>
struct eager<cuda::device> {
    using device = cuda::device;

    template <class T>
    static cuda::tensor<T> make(device& d, const shape& s) {
        return {d, s};
    }
    template <class A>
    static void require_here(const device& d, const char* operation, const named<A>& argument) {
        if constexpr (!host_array<A>)
            if (!argument.array.empty()) d.require_here(operation, argument.name, argument.array);
    }
    template <class T>
    static cuda::detail::numbers<T> numbers(device& d, view<const T> x) {
        cuda::detail::numbers<T> there(d, x.size());
        d.put(x.size(), x.data(), there.data());
        return there;
    }

    template <class T, class Body>
    static void each_row(device& d, index rows, const Body& body) {
        d.rows<T>(rows, body);
    }
    /// As one long row.
    template <class T, class Body>
    static void each_channel(device& d, index rows, Body body) {
        body.channels *= rows;
        if (body.channels > 0) d.row<T>(body);
    }
    template <class T, class Body, class Finish>
    static void each_row_with_sum(device& d, index rows, index n, T* to, Body&& body, Finish&& finish) {
        cuda::detail::row_sums<T> sums(d, rows, n, to);
        d.at_once([&] {
            d.rows<T>(rows, body(sums.into));
            sums.finish();
            finish();
        });
    }
};

}  // namespace fprnn::detail
