#pragma once

#include <fprnn/expression/expression.hpp>

#include <array>

//! [mixer]
/// A row of D = n² channels is a matrix S [n,n]; Q S = (S k) kᵀ projects it on a direction k of n numbers,
/// where |k| = 1. Q is symmetric, and ‖Q‖ = ‖I − Q‖ = 1.
template <int n>
struct projection_mixer {
    static void check(fprnn::index D) {
        fprnn::require(D == n * n, "projection", [] { return "d_inner must be " + std::to_string(n * n); });
    }
    static std::array<fprnn::index, 1> raw_sizes(fprnn::index) { return {n}; }  // k
    static fprnn::index size(fprnn::index) { return n; }
    static fprnn::index scratch(fprnn::index) { return 0; }

    template <class Team, class T>
    static void prepare(fprnn::index, const T* const* raw, T* k) {
        for (int j = 0; j < n; ++j) k[j] = raw[0][j];
    }
    template <class Team, class T>
    static void prepare_back(fprnn::index, const T* const*, const T*, const T* k_bar, T* const* raw_bar) {
        for (int j = 0; j < n; ++j) raw_bar[0][j] += k_bar[j];
    }

    /// out = w + ((v − w) k) kᵀ
    template <class Team, class T>
    static void mix(fprnn::index, const T* k, const T* v, const T* w, T* out, T*) {
        for (int i = 0; i < n; ++i) {
            const T along = dot(k, v, i) - dot(k, w, i);
            for (int j = 0; j < n; ++j) out[i * n + j] = (w ? w[i * n + j] : T(0)) + along * k[j];
        }
    }
    /// v̄ += (ō k) kᵀ,  w̄ += ō − (ō k) kᵀ
    template <class Team, class T>
    static void mix_back(fprnn::index, const T* k, const T* out_bar, T* v_bar, T* w_bar, T*) {
        for (int i = 0; i < n; ++i) {
            const T along = dot(k, out_bar, i);
            for (int j = 0; j < n; ++j) {
                if (v_bar) v_bar[i * n + j] += along * k[j];
                if (w_bar) w_bar[i * n + j] += out_bar[i * n + j] - along * k[j];
            }
        }
    }
    /// With d = v − w: k̄ += dᵀ (ō k) + ōᵀ (d k)
    template <class Team, class T>
    static void mix_back_q(fprnn::index, const T* k, const T* v, const T* w, const T* out_bar, T* k_bar, T*) {
        for (int i = 0; i < n; ++i) {
            const T d_along = dot(k, v, i) - dot(k, w, i), along = dot(k, out_bar, i);
            for (int j = 0; j < n; ++j) {
                const T d = (v ? v[i * n + j] : T(0)) - (w ? w[i * n + j] : T(0));
                k_bar[j] += d * along + out_bar[i * n + j] * d_along;
            }
        }
    }

private:
    /// Row i of S times k; a null S is zero.
    template <class T>
    static T dot(const T* k, const T* S, int i) {
        T sum = 0;
        for (int j = 0; S && j < n; ++j) sum += k[j] * S[i * n + j];
        return sum;
    }
};

/// projection<n>(k): its numbers are whatever k is, an expression of n numbers.
template <int n, fprnn::expression K>
constexpr auto projection(K) {
    return fprnn::mixer_node<projection_mixer<n>, K>{};
}
//! [mixer]
