#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/cuda/device.hpp>

/// Bodies of one long row, whose channels go over all threads of a device.
namespace fprnn::cuda::detail {

/// Starts body.row<Team>(0, 0), where Team has each() alone; a kernel in row.cuh, threads of the host in tests.
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

}  // namespace fprnn::cuda::detail
