#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/psd_factor.hpp>
#include <fprnn/mixers/row_algebra.hpp>

#include <array>

namespace fprnn {

/// The factors of D = a·b: a is the largest divisor of D that is not above √D. A prime D is 1 × D.
struct kronecker_sizes {
    index a, b;

    FPRNN_BOTH static constexpr kronecker_sizes of(index D) {
        index a = 1;
        while ((a + 1) * (a + 1) <= D) ++a;
        while (D % a != 0) --a;
        return {a, D / a};
    }
};

/// Q = I − K¹ ⊗ K² with K¹ [a,a], K² [b,b] and D = a·b (kronecker_sizes).     (sec. parametrization-Q-Lambda)
/// Each factor is a psd_factor: symmetric and positive semidefinite by its Cholesky structure, divided by an
/// upper bound of its largest eigenvalue, with gates on both sides. Channels are a matrix X [a,b], row by
/// row: (K¹ ⊗ K²) x = K¹ X K².
/// Raw: the factors' upper triangles [a(a+1)/2 + b(b+1)/2] and their gates [a + b]; prepared: K¹ and K² [a² +
/// b²].
/// Guaranteed: I − Q is symmetric, positive semidefinite, and ‖I − Q‖₂ = ‖K¹‖₂ ‖K²‖₂ < 1 for any finite raw
/// numbers, so that the eigenvalues of Q lie in (0,1] and a token's own iteration, without a norm in it,
/// contracts (complement_norm.hpp). I − Q has full rank: there is no compact form.
struct kronecker_mixer {
    static constexpr const char* name = "kronecker";
    using sizes = kronecker_sizes;

    static void check(index D) {
        // scratch, of which 1 × D takes most.
        (void)checked_product(checked_product(4, D, "kronecker: 4 times d_inner"), D + 1,
                              "kronecker: 4 times d_inner times d_inner + 1");
    }
    static std::array<index, 2> raw_sizes(index D) {
        const auto [a, b] = sizes::of(D);
        return {factor::numbers(a) + factor::numbers(b), a + b};
    }
    FPRNN_BOTH static constexpr index size(index D) {
        const auto [a, b] = sizes::of(D);
        return a * a + b * b;
    }
    static index scratch(index D) { return 3 * D; }
    static index prepare_scratch(index D) { return factor::scratch(sizes::of(D).b); }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        const sizes n = sizes::of(D);
        factor::prepare<Team>(n.a, raw[0], raw[1], 1, q, scratch);
        mixing::wait<Team>();
        factor::prepare<Team>(n.b, raw[0] + factor::numbers(n.a), raw[1] + n.a, 1, q + n.a * n.a, scratch);
    }

    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T*, const T* q_bar, T* const* raw_bar,
                                        T* scratch) {
        const sizes n = sizes::of(D);
        const index of_a = factor::numbers(n.a);
        factor::prepare_back<Team>(n.a, raw[0], raw[1], 1, q_bar, raw_bar[0], raw_bar[1], scratch);
        mixing::wait<Team>();
        factor::prepare_back<Team>(n.b, raw[0] + of_a, raw[1] + n.a, 1, q_bar + n.a * n.a, raw_bar[0] + of_a,
                                   raw_bar[1] + n.a, scratch);
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        T *const e = scratch, *const product = scratch + D;
        mixing::difference<Team>(D, v, w, w, e);
        mixing::wait<Team>();
        apply<Team>(D, q, e, product, [&](auto lane, index offset, auto Ee) {
            auto x = lane.load(e + offset) - Ee;
            if (w) x += lane.load(w + offset);
            lane.store(out + offset, x);
        });
    }

    /// I − Q is symmetric: v̄ += ō − (I − Q) ō,  w̄ += (I − Q) ō.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        // Behind the first row of scratch, which mix_back_q overwrites without a wait.
        apply<Team>(D, q, out_bar, scratch + D, [&](auto lane, index offset, auto Eg) {
            if (v_bar) lane.add(v_bar + offset, lane.load(out_bar + offset) - Eg);
            if (w_bar) lane.add(w_bar + offset, Eg);
        });
    }

    /// With X and Γ the matrices of v − w and ō:  K̄¹ −= Γ (X K²)ᵀ,  K̄² −= (K¹ X)ᵀ Γ.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        const sizes n = sizes::of(D);
        const index a = n.a, b = n.b;
        const T *const K1 = q, *const K2 = q + a * a;
        T *const X = scratch, *const product = scratch + D, *const turned = scratch + 2 * D;
        mixing::difference<Team>(D, v, w, w, X);
        mixing::wait<Team>();
        mixing::multiply<Team>(a, a, b, mixing::scalars<T>{K1, a, 1}, X,
                               [&](auto lane, index i, auto sum) { lane.store(product + i * b, sum); });
        mixing::transpose<Team>(a, b, X, turned);
        mixing::multiply<Team>(b, a, b, mixing::scalars<T>{product, 1, b}, out_bar,
                               [&](auto lane, index l, auto sum) { lane.add(q_bar + a * a + l * b, -sum); });
        mixing::wait<Team>();
        mixing::multiply<Team>(b, b, a, mixing::scalars<T>{K2, b, 1}, turned,
                               [&](auto lane, index l, auto sum) { lane.store(product + l * a, sum); });
        mixing::wait<Team>();
        mixing::multiply<Team>(a, b, a, mixing::scalars<T>{out_bar, b, 1}, product,
                               [&](auto lane, index i, auto sum) { lane.add(q_bar + i * a, -sum); });
    }

private:
    using factor = mixing::psd_factor;

    /// store(lane, offset, K¹ X K²) for every row of X, whose first channel is `offset`; `product` [D] is
    /// scratch.
    template <class Team, class T, class Store>
    FPRNN_BOTH static void apply(index D, const T* q, const T* X, T* product, const Store& store) {
        const sizes n = sizes::of(D);
        const index a = n.a, b = n.b;
        mixing::multiply<Team>(a, b, b, mixing::scalars<T>{X, b, 1}, q + a * a,
                               [&](auto lane, index i, auto sum) { lane.store(product + i * b, sum); });
        mixing::wait<Team>();
        mixing::multiply<Team>(a, a, b, mixing::scalars<T>{q, a, 1}, product,
                               [&](auto lane, index i, auto sum) { store(lane, i * b, sum); });
    }
};

}  // namespace fprnn
