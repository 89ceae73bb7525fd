#pragma once

#include <fprnn/mixers/row_products.hpp>
#include <fprnn/ops/chain.hpp>

#include <limits>

/// A symmetric positive semidefinite matrix of norm below 1, made of the raw numbers of a token: the factor
/// of mixers whose I − Q (or Q) is dense.
namespace fprnn::mixing {

/// K = ρ s sᵀ ⊙ A / μ with A = UᵀU (the Cholesky structure of sec. parametrization-Q-Lambda). U [m,m] is
/// upper triangular, row by row SiLU of its m (m + 1) / 2 raw numbers, and s² in (0,1) are the gates. μ = (tr
/// A⁴)^{1/4} is an upper bound of A's largest eigenvalue that is at most m^{1/4} times as large. Guaranteed:
/// ‖K‖₂ < max s² for any finite raw numbers, in floating point, too: ρ = 1 − 16 (m + 8) ε, and 1 − ρ is more
/// than rounding may add. K does not depend on the size of U. So U is divided by its largest number first,
/// where no value overflows, and K is 0 where that number is below 16 times the smallest normal one. The
/// gradient grows as 1/‖U‖.
struct psd_factor {
    /// Raw numbers of U.
    FPRNN_BOTH static constexpr index numbers(index m) { return m * (m + 1) / 2; }
    /// Of prepare and prepare_back.
    static index scratch(index m) { return 4 * m * m + 2 * m; }

    /// K [m,m]; `gates` [m] are s²'s arguments, s² = σ(gate), or null: s = 1; `gate_step` is 1, or 0 where
    /// one gate is for all.
    template <class Team, class T>
    FPRNN_BOTH static void prepare(index m, const T* raw, const T* gates, index gate_step, T* K, T* scratch) {
        T* const U = scratch;
        T* const s = U + 2 * m * m;
        const T by = form<Team>(m, raw, gates, gate_step, U, K, U + m * m, s).by;
        for (index i = 0; i < m; ++i) {
            const T of_row = by * (gates ? s[i] : T(1));
            Team::each(m, [&](auto lane) {
                using V = decltype(lane.load(K));
                V k = lane.load(K + i * m) * V(of_row);
                if (gates) k = k * lane.load(s);
                lane.store(K + i * m, k);
            });
        }
    }

    /// Adds to raw_bar [numbers(m)] and gates_bar. With P = K̄ + K̄ᵀ, t_i = Σ_j P_ij A_ij s_j and c = ½ Σ_i
    /// s_i t_i = ∂L/∂(ρ/μ):
    ///
    ///     s̄ = (ρ/μ) t,   Ā + Āᵀ = (ρ/μ) s sᵀ ⊙ P − 2 (ρ/μ) (c/μ⁴) A³,   Ū = U (Ā + Āᵀ)
    ///
    /// as ∂(tr A⁴)^{1/4} = A³/μ³.
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index m, const T* raw, const T* gates, index gate_step, const T* K_bar,
                                        T* raw_bar, T* gates_bar, T* scratch) {
        T *const U = scratch, *const A = U + m * m, *const square = A + m * m, *const P = square + m * m;
        T *const s = P + m * m, *const t = s + m;
        const factors<T> f = form<Team>(m, raw, gates, gate_step, U, A, square, s);
        const T scale = f.scale, by = f.by;
        transpose<Team>(m, m, K_bar, P);
        Team::each(m, [&](auto lane) {
            using V = decltype(lane.load(A));
            V sum(T(0));
            for (index i = 0; i < m; ++i) {
                const V p = lane.load(P + i * m) + lane.load(K_bar + i * m);
                lane.store(P + i * m, p);
                sum += p * lane.load(A + i * m) * V(gates ? s[i] : T(1));
            }
            lane.store(t, sum);
        });
        const T c = Team::template sum<1>(m,
                                          [&](auto lane) {
                                              auto x = lane.load(t);
                                              if (gates) x = x * lane.load(s);
                                              return small_array{x};
                                          })[0] /
                    T(2);
        const T fourth = f.inverse * f.inverse * f.inverse * f.inverse;
        multiply<Team>(m, m, m, scalars<T>{square, m, 1}, A, [&](auto lane, index i, auto cube) {
            using V = decltype(cube);
            V p = lane.load(P + i * m) * V(by * (gates ? s[i] : T(1)));
            if (gates) p = p * lane.load(s);
            lane.store(P + i * m, p - V(T(2) * by * c * fourth) * cube);
        });
        wait<Team>();
        multiply<Team>(m, m, m, scalars<T>{U, m, 1}, P,
                       [&](auto lane, index l, auto bar) { lane.store(square + l * m, bar); });
        wait<Team>();
        for (index l = 0; l < m; ++l) {
            const T* u = raw + l * m - l * (l - 1) / 2;
            T* u_bar = raw_bar + l * m - l * (l - 1) / 2;
            Team::each(m - l, [&](auto lane) {
                using V = decltype(lane.load(u));
                lane.add(u_bar,
                         lane.load(square + l * m + l) * V(scale) * chain::silu_function::slope(lane.load(u), {}));
            });
        }
        if (!gates) return;
        if (gate_step == 1) {
            Team::each(m, [&](auto lane) {
                using V = decltype(lane.load(s));
                const V root = lane.load(s);
                lane.add(gates_bar, V(by) * lane.load(t) * V(T(0.5)) * root * (V(T(1)) - root * root));
            });
        } else {  // Σ_i s̄_i = ρ/μ · 2 c / s
            Team::once([&] { gates_bar[0] += by * c * (T(1) - s[0] * s[0]); });
        }
    }

private:
    template <class T>
    struct factors {
        static constexpr T smallest = 16 * std::numeric_limits<T>::min();  ///< the inverse of less may overflow
        static constexpr T rounding = 16 * std::numeric_limits<T>::epsilon();
        T scale;    ///< of U
        T by;       ///< ρ/μ
        T inverse;  ///< 1/μ
    };

    /// Computes U, divided by its largest number, A, A² and s. All threads may read them afterwards.
    template <class Team, class T>
    FPRNN_BOTH static factors<T> form(index m, const T* raw, const T* gates, index gate_step, T* U, T* A, T* square,
                                      T* s) {
        T largest = 0;
        for (index l = 0; l < m; ++l) {
            const T* u = raw + l * m - l * (l - 1) / 2;  // of column l
            Team::each(m, [&](auto lane) { lane.store(U + l * m, decltype(lane.load(u))(T(0))); });
            wait<Team>();
            Team::each(m - l, [&](auto lane) { lane.store(U + l * m + l, chain::silu_function::value(lane.load(u))); });
            const T row = Team::max(m - l, [&](auto lane) {
                using math::abs;
                return abs(lane.load(U + l * m + l));
            });
            largest = math::maximum(largest, row);
        }
        const T scale = largest > factors<T>::smallest ? T(1) / largest : T(0);
        wait<Team>();
        for (index l = 0; l < m; ++l)
            Team::each(m,
                       [&](auto lane) { lane.store(U + l * m, lane.load(U + l * m) * decltype(lane.load(U))(scale)); });
        if (gates)
            Team::each(m, [&](auto lane) {
                using math::sqrt;
                using V = decltype(lane.load(gates));
                lane.store(s, sqrt(chain::sigmoid_function::value(gate_step == 1 ? lane.load(gates) : V(gates[0]))));
            });
        wait<Team>();
        multiply<Team>(m, m, m, scalars<T>{U, 1, m}, U,
                       [&](auto lane, index i, auto sum) { lane.store(A + i * m, sum); });
        wait<Team>();
        multiply<Team>(m, m, m, scalars<T>{A, m, 1}, A,
                       [&](auto lane, index i, auto sum) { lane.store(square + i * m, sum); });
        const T trace = Team::template sum<1>(m, [&](auto lane) {
            auto sum = lane.load(square) * lane.load(square);
            for (index i = 1; i < m; ++i) sum += lane.load(square + i * m) * lane.load(square + i * m);
            return small_array{sum};
        })[0];
        wait<Team>();  // A is overwritten next
        using math::sqrt;
        const T mu = sqrt(sqrt(trace));
        const T inverse = mu == T(0) ? T(0) : T(1) / mu;
        const T rho = T(1) - factors<T>::rounding * static_cast<T>(m + 8);
        return {scale, rho * inverse, inverse};
    }
};

}  // namespace fprnn::mixing
