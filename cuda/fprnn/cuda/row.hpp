#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/cuda/device.hpp>

/// Bodies of one long row, whose channels go over all threads of a device.
namespace fprnn::cuda::detail {

/// Starts body.row<Team>(0, 0), where Team has each() alone; a kernel in row.cuh, threads of the host in
/// tests.
template <class T, class Body>
void start_row(const device& d, const Body& body);

/// to += Σ of the parts, or to = Σ, the first of them first. T adds up what is stored as From and To.
template <class T, class From = T, class To = T>
struct add_parts {
    index channels, parts;
    const From* from;
    To* to;
    bool overwrites = false;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) {
            T sum = overwrites ? T(0) : lane.load(to);
            for (index i = 0; i < parts; ++i) sum += lane.load(from + i * channels);
            lane.store(to, sum);
        });
    }
};

/// to += Σ of the workers' sums [workers, width], which change. Many are added to the first of them before,
/// or else a thread for each number would leave most of a device idle. The order is the same every time.
template <class T>
void add_workers(const device& d, index width, index workers, T* sums, T* to) {
    constexpr index first = 32;
    if (workers < 2 * first) return start_row<T>(d, add_parts<T>{width, workers, sums, to});
    const index whole = workers / first, rest = workers % first;
    start_row<T>(d, add_parts<T>{first * width, whole - 1, sums + first * width, sums});
    if (rest > 0) start_row<T>(d, add_parts<T>{rest * width, 1, sums + whole * first * width, sums});
    start_row<T>(d, add_parts<T>{width, first, sums, to});
}

}  // namespace fprnn::cuda::detail
