#pragma once

#include <fprnn/expression/expression.hpp>

#include <array>

//! [mixer]
/// Q turns plane k, channels k and K + k as a complex number, by a_k = 2 arctan t_k with t_k = tanh(r_k) / 4:
/// it multiplies by q_k = exp(i a_k) = (1 + i t_k)² / (1 + t_k²). Q is orthogonal, and ‖I − Q‖₂ = 2 max
/// |sin(a_k/2)| < 0.486: every iteration of a token halves its error, at least.
template <int K>
struct rotation_mixer {
    static void check(fprnn::index D) {
        fprnn::require(D == 2 * K, "rotation", [] { return "d_inner must be " + std::to_string(2 * K); });
    }
    static std::array<fprnn::index, 1> raw_sizes(fprnn::index) { return {K}; }  // one map, which gives r
    static fprnn::index size(fprnn::index D) { return D; }                      // prepared: q
    static fprnn::index scratch(fprnn::index) { return 0; }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(fprnn::index, const T* const* raw, T* q) {
        Team::each(K, [&](auto plane) {
            using V = decltype(plane.load(q));
            const V t = V(T(0.25)) * tanh::value(plane.load(raw[0])), s = V(T(2)) / (V(T(1)) + t * t);
            set(plane, q, complex<V>{s - V(T(1)), s * t});
        });
    }
    /// ā = Im(q* q̄),  t̄ = 2 ā / (1 + t²) = (1 + Re q) ā,  r̄ += (1 − tanh² r) t̄ / 4
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(fprnn::index, const T* const* raw, const T* q, const T* q_bar,
                                        T* const* raw_bar) {
        Team::each(K, [&](auto plane) {
            using V = decltype(plane.load(q));
            const complex<V> z = get(plane, q), a_bar = conj(z) * get(plane, q_bar);
            const V t_bar = (V(T(1)) + z.re) * a_bar.im;
            plane.add(raw_bar[0], V(T(0.25)) * tanh::slope({}, tanh::value(plane.load(raw[0]))) * t_bar);
        });
    }

    /// out = w + Q (v − w)
    template <class Team, class T>
    FPRNN_BOTH static void mix(fprnn::index, const T* q, const T* v, const T* w, T* out, T*) {
        Team::each(K, [&](auto plane) {
            const auto rest = get(plane, w);
            set(plane, out, rest + get(plane, q) * (get(plane, v) - rest));
        });
    }
    /// v̄ += Qᵀ ō,  w̄ += ō − Qᵀ ō
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(fprnn::index, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        Team::each(K, [&](auto plane) {
            const auto o = get(plane, out_bar), g = conj(get(plane, q)) * o;
            if (v_bar) set(plane, v_bar, get(plane, v_bar) + g);
            if (w_bar) set(plane, w_bar, get(plane, w_bar) + o - g);
        });
    }
    /// q̄ += ō (v − w)*
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(fprnn::index, const T*, const T* v, const T* w, const T* out_bar, T* q_bar, T*) {
        Team::each(K, [&](auto plane) {
            const auto d = get(plane, v) - get(plane, w);
            set(plane, q_bar, get(plane, q_bar) + get(plane, out_bar) * conj(d));
        });
    }

private:
    using tanh = fprnn::chain::tanh_function;

    /// A lane's planes: one on a GPU, a register of them on a CPU. std::complex has no functions of a GPU.
    template <class V>
    struct complex {
        V re, im;

        FPRNN_BOTH friend complex operator+(complex x, complex y) { return {x.re + y.re, x.im + y.im}; }
        FPRNN_BOTH friend complex operator-(complex x, complex y) { return {x.re - y.re, x.im - y.im}; }
        FPRNN_BOTH friend complex operator*(complex x, complex y) {
            return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
        }
        FPRNN_BOTH friend complex conj(complex x) { return {x.re, -x.im}; }
    };
    /// A null v or w is zero.
    template <class Lane, class T>
    FPRNN_BOTH static auto get(Lane plane, const T* p) {
        using V = decltype(plane.load(p));
        return p ? complex<V>{plane.load(p), plane.load(p + K)} : complex<V>{V(T(0)), V(T(0))};
    }
    template <class Lane, class T, class V>
    FPRNN_BOTH static void set(Lane plane, T* p, complex<V> z) {
        plane.store(p, z.re);
        plane.store(p + K, z.im);
    }
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
