#pragma once

#include "fake_runtime.hpp"

#include <fprnn/backend/reference.hpp>
#include <fprnn/cuda/row.hpp>

#include <thread>
#include <vector>

/// Rows of a device on threads of the host.
namespace host {

/// How many threads execute a row, how many rows are executed at a time, and how many threads execute one
/// long row.
struct parallelism {
    int of_row = 1, rows = 1, of_grid = 1;
};
inline parallelism threads;

/// Kernels that have been started.
inline int launches = 0;

/// All threads of a launch execute one row.
template <class T>
class grid {
public:
    template <class Body>
    static void run(const Body& body) {
        if (threads.of_grid == 1) return body();
        start(&body, [](const void* b) { (*static_cast<const Body*>(b))(); });
    }
    template <class Body>
    static void each(fprnn::index channels, Body&& body) {
        for (fprnn::index i = rank_; i < channels; i += threads.of_grid) body(fprnn::scalar_lane<T>{i});
    }

private:
    static void start(const void* body, void (*call)(const void*)) {
        std::vector<std::jthread> running;
        for (int rank = 0; rank < threads.of_grid; ++rank)
            running.emplace_back([=] {
                rank_ = rank;
                call(body);
            });
    }

    static inline thread_local int rank_ = 0;
};

}  // namespace host

namespace fprnn::cuda::detail {

template <class Kernel>
void start(const Kernel& kernel) {
    ++host::launches;
    check(fake::state.result("cudaLaunchKernelEx", fake::state.load()), "cudaLaunchKernelEx");
    fake::enqueue(kernel);
}

template <class T, class Body>
void start_row(const device&, const Body& body) {
    start([=] { host::grid<T>::run([&] { body.template row<host::grid<T>>(0, 0); }); });
}

}  // namespace fprnn::cuda::detail
