#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/cuda/team.hpp>

namespace fprnn::cuda {

/// What a thread has in registers of a row: of the channels rank, rank + size, … the first Items.
template <class T, int Items>
struct registers_of_row {
    T values[Items];
};
/// A channel that is the thread's own `item`, a constant once loops are unrolled.
template <class T>
struct lane_of_registers : scalar_lane<T> {
    int item;

    using scalar_lane<T>::load;
    using scalar_lane<T>::store;
    template <int Items>
    FPRNN_BOTH T load(const registers_of_row<T, Items>& row) const {
        return row.values[item];
    }
    template <int Items>
    FPRNN_BOTH void store(registers_of_row<T, Items>& row, T value) const {
        row.values[item] = value;
    }
};

/// A team executes one row (concept team_of): a thread owns the channels rank, rank + size, … of every array
/// of the row, so a body that loads what an earlier body of the same row stored needs no barrier. Sums run in
/// one fixed order: each thread over its channels, then the team's reduce. All threads receive them.
/// With Items rows have at most as many times size() channels, and what bodies hold of them are registers.
template <class T, team Team, int Items = 0>
struct team_row {
    template <class Body>
    FPRNN_BOTH static void each(index channels, Body&& body) {
        const Team team;
        if constexpr (Items == 0) {
            for (index i = team.rank(); i < channels; i += team.size()) body(scalar_lane<T>{i});
        } else {
            // Short rows, of which all threads know, end after the first few.
            constexpr int few = Items < 4 ? Items : 4;
            items<0, few>(channels, body);
            if (channels > few * team.size()) items<few, Items>(channels, body);
        }
    }
    FPRNN_BOTH static auto held(index channels, const T* p) requires(Items > 0) {
        registers_of_row<T, Items> row{};
        if (p) each(channels, [&](auto lane) { lane.store(row, lane.load(p)); });
        return row;
    }
    FPRNN_BOTH static registers_of_row<T, Items> room(index, T*) requires(Items > 0) { return {}; }

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

private:
    template <int First, int Behind, class Body>
    FPRNN_BOTH static void items(index channels, Body&& body) {
        const Team team;
        const int left = static_cast<int>(channels) - team.rank();
        FPRNN_UNROLL for (int k = First; k < Behind; ++k) if (k * team.size() < left)
            body(lane_of_registers<T>{{team.rank() + k * team.size()}, k});
    }
};

}  // namespace fprnn::cuda
