#pragma once

#include <fprnn/expression/expression.hpp>

#include <array>
#include <cmath>
#include <complex>

//! [mixer]
/// Q turns plane k, channels 2k and 2k + 1 as a complex number, by a_k = tanh(r_k) / 2: it multiplies by q_k = exp(i a_k).
/// Q is orthogonal, and ‖I − Q‖₂ = 2 max |sin(a_k/2)| < 0.495: every iteration of a token halves its error, at least.
template <int K>
struct rotation_mixer {
    static void check(fprnn::index D) {
        fprnn::require(D == 2 * K, "rotation", [] { return "d_inner must be " + std::to_string(2 * K); });
    }
    static std::array<fprnn::index, 1> raw_sizes(fprnn::index) { return {K}; }  // one map, which gives r
    static fprnn::index size(fprnn::index D) { return D; }                      // prepared: q
    static fprnn::index scratch(fprnn::index) { return 0; }

    template <class Team, class T>
    static void prepare(fprnn::index, const T* const* raw, T* q) {
        for (int k = 0; k < K; ++k) set(q, k, std::polar(T(1), std::tanh(raw[0][k]) / 2));
    }
    /// ā = Im(q* q̄),  r̄ += (1 − tanh² r) ā / 2
    template <class Team, class T>
    static void prepare_back(fprnn::index, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar) {
        for (int k = 0; k < K; ++k) {
            const T tanh = std::tanh(raw[0][k]);
            raw_bar[0][k] += (1 - tanh * tanh) / 2 * std::imag(std::conj(get(q, k)) * get(q_bar, k));
        }
    }

    /// out = w + Q (v − w)
    template <class Team, class T>
    static void mix(fprnn::index, const T* q, const T* v, const T* w, T* out, T*) {
        for (int k = 0; k < K; ++k) set(out, k, get(w, k) + get(q, k) * (get(v, k) - get(w, k)));
    }
    /// v̄ += Qᵀ ō,  w̄ += ō − Qᵀ ō
    template <class Team, class T>
    static void mix_back(fprnn::index, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        for (int k = 0; k < K; ++k) {
            const auto o = get(out_bar, k), g = std::conj(get(q, k)) * o;
            if (v_bar) set(v_bar, k, get(v_bar, k) + g);
            if (w_bar) set(w_bar, k, get(w_bar, k) + o - g);
        }
    }
    /// q̄ += ō (v − w)*
    template <class Team, class T>
    static void mix_back_q(fprnn::index, const T*, const T* v, const T* w, const T* out_bar, T* q_bar, T*) {
        for (int k = 0; k < K; ++k) set(q_bar, k, get(q_bar, k) + get(out_bar, k) * std::conj(get(v, k) - get(w, k)));
    }

private:
    /// Two channels as a complex number; a null v or w is zero.
    static auto get(const auto* p, int k) { return p ? std::complex(p[2 * k], p[2 * k + 1]) : 0; }
    static void set(auto* p, int k, auto z) { p[2 * k] = z.real(), p[2 * k + 1] = z.imag(); }
};
//! [mixer]

//! [name]
/// rotation<K, "Q">(s): r = W s, with W the parameter "Q" [K, s's width].
template <int K, fprnn::fixed_string Name, fprnn::expression E>
constexpr auto rotation(E s) {
    auto r = fprnn::linear<Name, fprnn::fixed_width<K>>(s);
    return fprnn::mixer_node<rotation_mixer<K>, decltype(r)>{};
}
//! [name]
