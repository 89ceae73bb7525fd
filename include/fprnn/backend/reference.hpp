#pragma once

#include <fprnn/backend/host.hpp>
#include <fprnn/core/math.hpp>

#include <cmath>
#include <type_traits>

namespace fprnn {

/// One channel at a time.
template <class T>
struct scalar_lane {
    index channel;

    FPRNN_BOTH T load(const T* p) const { return p[channel]; }
    FPRNN_BOTH void store(T* p, T value) const { p[channel] = value; }
    FPRNN_BOTH void add(T* p, T value) const { p[channel] += value; }
    FPRNN_BOTH void prefetch(const T*) const {}

    /// Of what is stored in a type of its own, such as bf16.
    template <class U>
        requires(!std::is_arithmetic_v<U>)
    FPRNN_BOTH T load(const U* p)
    const { return static_cast<T>(p[channel]); }
    template <class U>
        requires(!std::is_arithmetic_v<U>)
    FPRNN_BOTH void store(U* p, T value) const { p[channel] = static_cast<U>(value); }
    template <class U>
        requires(!std::is_arithmetic_v<U>)
    FPRNN_BOTH void add(U* p, T value) const { store(p, load(p) + value); }
};

/// Runs bodies channel by channel; sums run from the first channel to the last.
template <class T>
struct serial_team {
    template <class Body>
    FPRNN_BOTH static void each(index channels, Body&& body) {
        for (index i = 0; i < channels; ++i) body(scalar_lane<T>{i});
    }
    template <std::size_t K, class Body>
    FPRNN_BOTH static small_array<T, K> sum(index channels, Body&& body) {
        small_array<T, K> total{};
        for (index i = 0; i < channels; ++i) {
            const small_array<T, K> part = body(scalar_lane<T>{i});
            for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
        }
        return total;
    }
    template <class Body>
    FPRNN_BOTH static T max(index channels, Body&& body) {
        T largest = -INFINITY;
        for (index i = 0; i < channels; ++i) {
            const T x = body(scalar_lane<T>{i});
            if (!math::is_finite(x)) return NAN;
            if (x > largest) largest = x;
        }
        return largest;
    }
    template <class Body>
    FPRNN_BOTH static void once(Body&& body) {
        body();
    }
};

/// Plain loops on one thread: the oracle that every other backend is tested against.
struct reference : host_backend<reference>, without_packing<reference> {
    static constexpr index tile = 1;

    template <class T>
    using team = serial_team<T>;

    template <class T>
    static void multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T> = {}) {
        for (index r = 0; r < y.rows; ++r)
            for (index n = 0; n < y.columns; ++n) {
                T sum = overwrite ? T(0) : y.data[r * y.stride + n];
                for (index k = 0; k < x.columns; ++k) sum += x.data[r * x.stride + k] * w.data[n * w.stride + k];
                y.data[r * y.stride + n] = sum;
            }
    }

    template <class T>
    static void multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite, view<T> = {}) {
        for (index r = 0; r < x_bar.rows; ++r)
            for (index k = 0; k < x_bar.columns; ++k) {
                T sum = overwrite ? T(0) : x_bar.data[r * x_bar.stride + k];
                for (index n = 0; n < y_bar.columns; ++n)
                    sum += y_bar.data[r * y_bar.stride + n] * w.data[n * w.stride + k];
                x_bar.data[r * x_bar.stride + k] = sum;
            }
    }

    template <class T>
    static void multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T> = {}) {
        for (const auto& [w_bar, x] : parts)
            for (index n = 0; n < w_bar.rows; ++n)
                for (index k = 0; k < w_bar.columns; ++k)
                    for (index r = 0; r < x.rows; ++r)
                        w_bar.data[n * w_bar.stride + k] += y_bar.data[r * y_bar.stride + n] * x.data[r * x.stride + k];
    }

    static constexpr int threads() { return 1; }
    template <class Body>
    void for_each(index n, Body&& body) {
        for (index i = 0; i < n; ++i) {
            if constexpr (std::is_invocable_v<Body&, index, index>)
                body(i, 0);
            else
                body(i);
        }
    }
};

}  // namespace fprnn
