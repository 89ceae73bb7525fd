#pragma once

#include <fprnn/backend/reference.hpp>

#include <cub/block/block_reduce.cuh>

namespace fprnn::cuda {

/// A thread block executes one row (concept team_of): thread i owns the channels i, i + Threads, i + 2·Threads … of every array
/// of the row, so a body that loads what an earlier body of the same row stored needs no barrier. Sums run in one fixed
/// order: each thread over its channels, then CUB's tree over the threads. All threads receive them.
template <class T, int Threads>
struct row_block {
    template <class Body>
    __device__ static void each(index channels, Body&& body) {
        for (index i = threadIdx.x; i < channels; i += Threads) body(scalar_lane<T>{i});
    }

    template <std::size_t K, class Body>
    __device__ static small_array<T, K> sum(index channels, Body&& body) {
        small_array<T, K> total{};
        each(channels, [&](auto lane) {
            const auto part = body(lane);
            for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
        });
        for (std::size_t k = 0; k < K; ++k) total[k] = reduce(total[k], addition{});
        return total;
    }

    /// NaN when one of the channels is not finite.
    template <class Body>
    __device__ static T max(index channels, Body&& body) {
        T largest = -INFINITY, taint = 0;  // 0 · x is NaN for every x that is not finite
        each(channels, [&](auto lane) {
            const T x = body(lane);
            largest = math::maximum(largest, x);
            taint += x * T(0);
        });
        taint = reduce(taint, addition{});
        largest = reduce(largest, larger{});
        return taint == T(0) ? largest : T(NAN);
    }

    template <class Body>
    __device__ static void once(Body&& body) {
        __syncthreads();
        if (threadIdx.x == 0) body();
        __syncthreads();
    }

private:
    struct addition {
        __device__ T operator()(T a, T b) const { return a + b; }
    };
    struct larger {
        __device__ T operator()(T a, T b) const { return math::maximum(a, b); }
    };

    template <class Operation>
    __device__ static T reduce(T mine, Operation operation) {
        using block = cub::BlockReduce<T, Threads>;
        __shared__ typename block::TempStorage storage;
        __shared__ T result;
        const T all = block(storage).Reduce(mine, operation);
        if (threadIdx.x == 0) result = all;
        __syncthreads();
        const T everywhere = result;
        __syncthreads();
        return everywhere;
    }
};

}  // namespace fprnn::cuda
