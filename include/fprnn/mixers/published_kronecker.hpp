#pragma once

#include <fprnn/mixers/kronecker.hpp>
#include <fprnn/mixers/row_algebra.hpp>
#include <fprnn/mixers/row_products.hpp>
#include <fprnn/ops/chain.hpp>

#include <array>
#include <cstddef>

namespace fprnn {

/// The authors' published form of the Kronecker mixer, to compare with (their ε is 1e-6 for A5 and
/// arithmetic, 1e-5 elsewhere and here, and their maps are weight-normalised): Q = I − 2 K₁ᵀ ⊗ K₂, on X [a,b]
/// (kronecker_sizes) X − 2 K₁ᵀ X K₂ᵀ. Each factor is K = diag(σ(δ)) K̂, where K̂ is S = T Tᵀ with every row
/// divided by max(‖row‖₂, 1e-5), and T upper triangular with SiLU of its raw numbers, row by row. With
/// Spectral, which is what their FP-RNN has, K̂ is divided by ρ + 1e-5, too: ρ is the estimate of the largest
/// eigenvalue by 16 steps of a power iteration from equal numbers, through which the gradient goes.
/// Raw: the factors' upper triangles [a(a+1)/2 + b(b+1)/2] and gates δ [a + b]; prepared: K₁ and K₂ [a² +
/// b²].
/// Not guaranteed: ‖Q‖₂ ≤ 1 or ‖I − Q‖₂ < 1, of which the latter reaches 2 √D, and with Spectral bounds the
/// spectral radius alone. It is kronecker_mixer that has a guarantee. As in their code a row of S that
/// overflows is divided by infinity: raw numbers of float stay below 1e9. One thread of a team prepares it.
template <bool Spectral>
struct published_kronecker_mixer {
    static constexpr const char* name = "published_kronecker";
    using sizes = kronecker_sizes;

    static void check(index D) { kronecker_mixer::check(D); }
    static std::array<index, 2> raw_sizes(index D) { return kronecker_mixer::raw_sizes(D); }
    FPRNN_BOTH static constexpr index size(index D) { return kronecker_mixer::size(D); }
    static index scratch(index D) {
        const index b = sizes::of(D).b;
        return 3 * D + b * b;
    }
    static index prepare_scratch(index D) {
        const index b = sizes::of(D).b;
        return 4 * b * b + (steps + 4) * b + steps + 1;
    }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        const sizes n = sizes::of(D);
        Team::once([&] {
            factor<T> one(n.a, raw[0], raw[1], scratch);
            one.store(q);
            factor<T> two(n.b, raw[0] + triangle(n.a), raw[1] + n.a, scratch);
            two.store(q + n.a * n.a);
        });
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T*, const T* q_bar, T* const* raw_bar,
                                        T* scratch) {
        const sizes n = sizes::of(D);
        Team::once([&] {
            factor<T> one(n.a, raw[0], raw[1], scratch);
            one.back(q_bar, raw_bar[0], raw_bar[1]);
            factor<T> two(n.b, raw[0] + triangle(n.a), raw[1] + n.a, scratch);
            two.back(q_bar + n.a * n.a, raw_bar[0] + triangle(n.a), raw_bar[1] + n.a);
        });
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        const sizes n = sizes::of(D);
        const index a = n.a, b = n.b;
        T *const X = scratch, *const product = scratch + D, *const turned = scratch + 3 * D;
        mixing::difference<Team>(D, v, w, w, X);
        mixing::transpose<Team>(b, b, q + a * a, turned);
        mixing::multiply<Team>(a, b, b, mixing::scalars<T>{X, b, 1}, turned,
                               [&](auto lane, index i, auto sum) { lane.store(product + i * b, sum); });
        mixing::wait<Team>();
        mixing::multiply<Team>(a, a, b, mixing::scalars<T>{q, 1, a}, product, [&](auto lane, index i, auto sum) {
            auto x = lane.load(X + i * b) - (sum + sum);
            if (w) x += lane.load(w + i * b);
            lane.store(out + i * b, x);
        });
    }
    /// (I − Q)ᵀ ō = 2 K₁ Γ K₂, Γ the matrix of ō.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        const sizes n = sizes::of(D);
        const index a = n.a, b = n.b;
        T* const product = scratch + D;  // behind the row that mix_back_q overwrites without a wait
        mixing::multiply<Team>(a, b, b, mixing::scalars<T>{out_bar, b, 1}, q + a * a,
                               [&](auto lane, index i, auto sum) { lane.store(product + i * b, sum); });
        mixing::wait<Team>();
        mixing::multiply<Team>(a, a, b, mixing::scalars<T>{q, a, 1}, product, [&](auto lane, index i, auto sum) {
            const auto rest = sum + sum;
            if (v_bar) lane.add(v_bar + i * b, lane.load(out_bar + i * b) - rest);
            if (w_bar) lane.add(w_bar + i * b, rest);
        });
    }
    /// K̄₁ −= 2 X K₂ᵀ Γᵀ,  K̄₂ −= 2 Γᵀ K₁ᵀ X
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        const sizes n = sizes::of(D);
        const index a = n.a, b = n.b;
        T *const X = scratch, *const product = scratch + D, *const gamma = scratch + 2 * D,
                 *const turned = scratch + 3 * D;
        mixing::difference<Team>(D, v, w, w, X);
        mixing::wait<Team>();
        mixing::multiply<Team>(a, a, b, mixing::scalars<T>{q, 1, a}, X,
                               [&](auto lane, index i, auto sum) { lane.store(product + i * b, sum); });
        mixing::wait<Team>();
        mixing::multiply<Team>(b, a, b, mixing::scalars<T>{out_bar, 1, b}, product,
                               [&](auto lane, index l, auto sum) { lane.add(q_bar + a * a + l * b, -(sum + sum)); });
        mixing::transpose<Team>(b, b, q + a * a, turned);
        mixing::multiply<Team>(a, b, b, mixing::scalars<T>{X, b, 1}, turned,
                               [&](auto lane, index i, auto sum) { lane.store(product + i * b, sum); });
        mixing::transpose<Team>(a, b, out_bar, gamma);
        mixing::multiply<Team>(a, b, a, mixing::scalars<T>{product, b, 1}, gamma,
                               [&](auto lane, index i, auto sum) { lane.add(q_bar + i * a, -(sum + sum)); });
    }

private:
    static constexpr int steps = 16;

    FPRNN_BOTH static index triangle(index m) { return m * (m + 1) / 2; }

    /// One factor in plain loops.
    template <class T>
    struct factor {
        static constexpr T epsilon = T(1e-5), smallest = T(1e-12);  // of the rows and of the power iteration's vectors
        index m;
        const T *raw, *gates;
        T *upper, *rows, *bar, *bar_of_S;  ///< T, K̂ before it is divided by ρ, and cotangents, [m,m] each
        T *row_norms, *w, *w_bar, *norms;  ///< [m], [steps + 1, m], two of [m], [steps + 1]
        T by = 1;                          ///< 1 / (ρ + ε), or 1

        FPRNN_BOTH factor(index m_, const T* raw_, const T* gates_, T* scratch)
            : m(m_),
              raw(raw_),
              gates(gates_),
              upper(scratch),
              rows(upper + m * m),
              bar(rows + m * m),
              bar_of_S(bar + m * m),
              row_norms(bar_of_S + m * m),
              w(row_norms + m),
              w_bar(w + (steps + 1) * m),
              norms(w_bar + 2 * m) {
            index at = 0;
            for (index i = 0; i < m; ++i)
                for (index j = 0; j < m; ++j) upper[i * m + j] = j < i ? T(0) : chain::silu_function::value(raw[at++]);
            for (index i = 0; i < m; ++i) {
                T squares = 0;
                for (index j = 0; j < m; ++j) {
                    T sum = 0;
                    for (index l = i < j ? j : i; l < m; ++l) sum += upper[i * m + l] * upper[j * m + l];
                    rows[i * m + j] = sum;
                    squares += sum * sum;
                }
                row_norms[i] = math::sqrt(squares);
                for (index j = 0; j < m; ++j) rows[i * m + j] /= math::maximum(row_norms[i], epsilon);
            }
            if constexpr (Spectral) {
                for (index i = 0; i < m; ++i) w[i] = T(1) / math::sqrt(static_cast<T>(m));
                for (int step = 1; step <= steps; ++step) {
                    T* const to = w + step * m;
                    T squares = 0;
                    for (index i = 0; i < m; ++i) {
                        to[i] = product(i, to - m);
                        squares += to[i] * to[i];
                    }
                    norms[step] = math::sqrt(squares);
                    for (index i = 0; i < m; ++i) to[i] /= math::maximum(norms[step], smallest);
                }
                T rho = 0;
                for (index i = 0; i < m; ++i) rho += w[(steps - 1) * m + i] * product(i, w + steps * m);
                by = T(1) / (rho + epsilon);
            }
        }
        /// K
        FPRNN_BOTH void store(T* K) const {
            for (index i = 0; i < m; ++i) {
                const T gate = by * chain::sigmoid_function::value(gates[i]);
                for (index j = 0; j < m; ++j) K[i * m + j] = gate * rows[i * m + j];
            }
        }
        FPRNN_BOTH void back(const T* K_bar, T* raw_bar, T* gates_bar) {
            T by_bar = 0;
            for (index i = 0; i < m; ++i) {
                const T gate = chain::sigmoid_function::value(gates[i]);
                T along = 0;
                for (index j = 0; j < m; ++j) {
                    along += K_bar[i * m + j] * rows[i * m + j];
                    bar[i * m + j] = gate * by * K_bar[i * m + j];
                }
                by_bar += gate * along;
                gates_bar[i] += by * along * gate * (T(1) - gate);
            }
            if constexpr (Spectral) back_through_rho(-by_bar * by * by);
            for (index i = 0; i < m; ++i) {  // of the rows' norms
                const T* const row = rows + i * m;
                T along = 0;
                if (row_norms[i] > epsilon)
                    for (index j = 0; j < m; ++j) along += row[j] * bar[i * m + j];
                for (index j = 0; j < m; ++j)
                    bar_of_S[i * m + j] = (bar[i * m + j] - row[j] * along) / math::maximum(row_norms[i], epsilon);
            }
            index at = 0;
            for (index i = 0; i < m; ++i)  // T̄ = (S̄ + S̄ᵀ) T
                for (index j = i; j < m; ++j, ++at) {
                    T sum = 0;
                    for (index l = 0; l <= j; ++l)
                        sum += (bar_of_S[i * m + l] + bar_of_S[l * m + i]) * upper[l * m + j];
                    raw_bar[at] += sum * chain::silu_function::slope(raw[at], T(0));
                }
        }

    private:
        FPRNN_BOTH T product(index i, const T* x) const {
            T sum = 0;
            for (index j = 0; j < m; ++j) sum += rows[i * m + j] * x[j];
            return sum;
        }
        /// ρ = w₁₅ᵀ K̂ w₁₆ with w_j = K̂ w_{j−1} / ‖K̂ w_{j−1}‖.
        FPRNN_BOTH void back_through_rho(T rho_bar) {
            T *now = w_bar, *before = w_bar + m;
            const T *const last = w + steps * m, *const previous = last - m;
            for (index i = 0; i < m; ++i) {
                now[i] = 0;
                before[i] = rho_bar * product(i, last);
            }
            for (index i = 0; i < m; ++i)
                for (index j = 0; j < m; ++j) {
                    now[j] += rho_bar * rows[i * m + j] * previous[i];
                    bar[i * m + j] += rho_bar * previous[i] * last[j];
                }
            for (int step = steps; step >= 1; --step) {
                const T *const unit = w + step * m, *const from = unit - m;
                T along = 0;
                if (norms[step] > smallest)
                    for (index i = 0; i < m; ++i) along += unit[i] * now[i];
                const T inverse = T(1) / math::maximum(norms[step], smallest);
                for (index i = 0; i < m; ++i) {
                    const T y_bar = (now[i] - unit[i] * along) * inverse;
                    for (index j = 0; j < m; ++j) {
                        bar[i * m + j] += y_bar * from[j];
                        before[j] += rows[i * m + j] * y_bar;
                    }
                }
                T* const free = now;
                now = before;
                before = free;
                for (index i = 0; i < m; ++i) before[i] = 0;
            }
        }
    };
};

}  // namespace fprnn
