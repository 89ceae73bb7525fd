#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/cuda/team.hpp>

namespace fprnn::cuda {

/// A team executes one row (concept team_of): a thread owns the channels rank, rank + size, … of every
/// array of the row, so a body that loads what an earlier body of the same row stored needs no barrier. Sums run in one fixed
/// order: each thread over its channels, then the team's reduce. All threads receive them.
template <class T, team Team>
struct team_row {
    template <class Body>
    FPRNN_BOTH static void each(index channels, Body&& body) {
        const Team team;
        for (index i = team.rank(); i < channels; i += team.size()) body(scalar_lane<T>{i});
    }

    template <std::size_t K, class Body>
    FPRNN_BOTH static small_array<T, K> sum(index channels, Body&& body) {
        small_array<T, K> total{};
        each(channels, [&](auto lane) {
            const auto part = body(lane);
            for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
        });
        return Team().reduce(total, detail::addition{});
    }

    /// NaN when one of the channels is not finite.
    template <class Body>
    FPRNN_BOTH static T max(index channels, Body&& body) {
        T largest = -INFINITY, taint = 0;  // 0 · x is NaN for every x that is not finite
        each(channels, [&](auto lane) {
            const T x = body(lane);
            largest = math::maximum(largest, x);
            taint += x * T(0);
        });
        taint = Team().reduce(taint, detail::addition{});
        largest = Team().reduce(largest, detail::larger{});
        return taint == T(0) ? largest : T(NAN);
    }

    template <class Body>
    FPRNN_BOTH static void once(Body&& body) {
        const Team team;
        team.barrier();
        if (team.rank() == 0) body();
        team.barrier();
    }
};

}  // namespace fprnn::cuda
