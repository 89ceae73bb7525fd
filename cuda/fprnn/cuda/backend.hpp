#pragma once

#include <fprnn/cuda/blas.hpp>
#include <fprnn/cuda/parameters.hpp>
#include <fprnn/cuda/tensor.hpp>

#include <algorithm>
#include <string>

/// What layers ask of a device (concept backend_for): with this, layer(gpu.copy(theta), gpu.copy(x), gpu) runs there. CUDA
/// sources include backend.cuh, which has the kernels.
namespace fprnn::cuda {

namespace detail {

/// Starts body.row<Team>(r, worker) for r in [0,n), a team a worker, which takes the rows worker, worker + workers, …; a kernel in
/// backend.cuh, threads of the host in tests.
template <class T, class Body>
void start_rows(const device& d, index n, index workers, const Body& body);
/// Starts body.row<Team>(0, 0), whose channels go over all threads of the device.
template <class T, class Body>
void start_row(const device& d, const Body& body);

/// n numbers on a device, not initialised.
template <class T>
class numbers {
public:
    numbers(const device& d, index n) : memory_(d.allocate(checked_product(n, sizeof(T), "cuda: memory"))) {}
    T* data() { return static_cast<T*>(memory_.data()); }

private:
    allocation memory_;
};

template <class T>
struct fill_row {
    index channels;
    T* to;
    T value;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(to, value); });
    }
};

/// to += Σ of what the workers have, the first of them first.
template <class T>
struct add_workers {
    index channels, workers;
    const T* sums;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) {
            T sum = lane.load(to);
            for (index w = 0; w < workers; ++w) sum += lane.load(sums + w * channels);
            lane.store(to, sum);
        });
    }
};

/// Every worker adds to a sum of its own; these are added in one order.
template <class T>
class row_sums {
public:
    receiver<T> into;

    row_sums(const device& d, index n, index width, T* to)
        : device_(d), workers_(d.workers(n)), width_(width), to_(to), sums_(d, to ? workers_ * width : 0) {
        if (!to) return;
        into = {{sums_.data(), width}, true};
        d.fill(workers_ * width, sums_.data(), 0);
    }
    void finish() {
        if (to_) device_.template row<T>(add_workers<T>{width_, workers_, sums_.data(), to_});
    }

private:
    const device& device_;
    index workers_, width_;
    T* to_;
    numbers<T> sums_;
};

}  // namespace detail

template <class T>
void device::require_here(const char* operation, const char* name, const tensor<T>& x) const {
    require(x.where() == *this, operation, [&] {
        return std::string(name) + " is not on the device that the call names, GPU " + std::to_string(gpu());
    });
}

template <class Body>
void device::for_each(index n, Body&& body) const {
    for (index i = 0; i < n; ++i) thread_pool::call(body, i, 0);
}

/// As many as keep the device busy; each has scratch of its own, so no more.
inline index device::workers(index n) const { return std::min<index>(n, 8 * multiprocessors()); }

template <class T, class Body>
void device::rows(index n, const Body& body) const {
    if (n > 0) detail::start_rows<T>(*this, n, workers(n), body);
}
template <class T, class Body>
void device::row(const Body& body) const {
    detail::start_row<T>(*this, body);
}

template <class T>
void device::copy(index n, const std::type_identity_t<T>* from, T* to) const {
    if (n == 0) return;
    const index bytes = checked_product(n, sizeof(T), "cuda: copy");
    const detail::current_gpu current(gpu());
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream()),
          [&] { return "cudaMemcpyAsync(" + std::to_string(bytes) + " bytes)"; });
}
template <class T>
void device::fill(index n, T* to, std::type_identity_t<T> value) const {
    if (n == 0) return;
    if (value != T(0)) return row<T>(detail::fill_row<T>{n, to, value});
    const index bytes = checked_product(n, sizeof(T), "cuda: fill");
    const detail::current_gpu current(gpu());
    check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream()),
          [&] { return "cudaMemsetAsync(" + std::to_string(bytes) + " bytes)"; });
}
template <class T>
void device::put(index n, const std::type_identity_t<T>* from, T* to) const {
    copy(n, from, to);
    synchronize();
}
template <class T>
fprnn::tensor<T> device::seen(index n, const T* from) const {
    fprnn::tensor<T> here({n});
    copy(n, from, here.data());
    synchronize();
    return here;
}
template <class T>
bool device::any(index n, const T* flags) const {
    const auto here = seen(n, flags);
    return std::any_of(here.begin(), here.end(), [](T x) { return x != T(0); });
}
template <class T>
void device::assign(tensor<T>& x, const fprnn::shape& extents) const {
    if (x.shape() != extents || x.where() != *this) x = tensor<T>(*this, extents);
    x.clear();
}

// A row-major matrix is its transpose's columns.

template <class T>
void device::multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T>) const {
    detail::multiply_columns(*this, CUBLAS_OP_T, CUBLAS_OP_N, y.columns, y.rows, x.columns, w, x, overwrite, y);
}
template <class T>
void device::multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite, view<T>) const {
    detail::multiply_columns(*this, CUBLAS_OP_N, CUBLAS_OP_N, x_bar.columns, x_bar.rows, y_bar.columns, w, y_bar,
                             overwrite, x_bar);
}
template <class T>
void device::multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T>) const {
    for (const auto& [w_bar, x] : parts)
        detail::multiply_columns(*this, CUBLAS_OP_N, CUBLAS_OP_T, w_bar.columns, w_bar.rows, x.rows, x, y_bar, false,
                                 w_bar);
}

}  // namespace fprnn::cuda
