#pragma once

#include <fprnn/backend/backend.hpp>

#include <cstddef>
#include <utility>

/// What operations, rules and engine do with rows: bodies, which a backend calls as row<Team>(row, worker).
/// Those of an operation are in its header.
namespace fprnn::body {

/// The addresses of row r.
template <std::size_t K, class T>
FPRNN_BOTH small_array<T*, K> at(const small_array<strided<T>, K>& all, index r) {
    // Unpacked and not looped over, see fprnn/ops/chain.hpp.
    const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) { return small_array<T*, K>{all[k][r]...}; };
    return unpacked(std::make_index_sequence<K>{});
}

/// to = from
template <class T>
struct copy {
    index channels;
    strided<const T> from;
    strided<T> to;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const T* x = from[r];
        T* y = to[r];
        Team::each(channels, [&](auto lane) { lane.store(y, lane.load(x)); });
    }
};

/// to += from, of one row.
template <class T>
struct add {
    index channels;
    const T* from;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.add(to, lane.load(from)); });
    }
};

/// to = a + b, of one row.
template <class T>
struct sum {
    index channels;
    const T *a, *b;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(to, lane.load(a) + lane.load(b)); });
    }
};

/// to = a − b, of one row.
template <class T>
struct difference {
    index channels;
    const T *a, *b;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(to, lane.load(a) - lane.load(b)); });
    }
};

/// to += a ⊙ b, of one row.
template <class T>
struct add_product {
    index channels;
    const T *a, *b;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.add(to, lane.load(a) * lane.load(b)); });
    }
};

/// to += from
template <class T>
struct add_rows {
    index channels;
    strided<const T> from;
    receiver<T> to;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        const T* x = from[r];
        T* y = to.at(r, worker);
        Team::each(channels, [&](auto lane) { lane.add(y, lane.load(x)); });
    }
};

/// Where row r adds.
template <std::size_t K, class T>
FPRNN_BOTH small_array<T*, K> at(const small_array<receiver<T>, K>& all, index r, index worker) {
    const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
        return small_array<T*, K>{all[k].at(r, worker)...};
    };
    return unpacked(std::make_index_sequence<K>{});
}

}  // namespace fprnn::body
