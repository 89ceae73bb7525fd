#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/l2_normalise.hpp>

#include <array>
#include <string>

namespace fprnn {

/// Q = Π_i (I − α_i ū_i ū_iᵀ), reflection 0 applied first, with ū_i = SiLU(u_i) / ‖SiLU(u_i)‖ and α_i = scale · σ(a_i).
///                                                                   (sec. parametrization-Q-Lambda, app. fixed-point-mamba)
/// Raw: u [R·D] and a [R]; prepared: U = ū [R·D], α [R] and, for i > j, G_ij = ū_iᵀū_j. Together the reflections are
/// Q = I − U S Uᵀ with a triangular S (compact), so that Q d takes one pass over U for Uᵀd and one to subtract. Scale 1 is
/// the paper's, 2 the authors' code's.
/// Guaranteed: ‖Q‖₂ ≤ 1 for both scales. Not guaranteed: ‖I − Q‖₂ < 1. It holds for R = 1 and scale 1; the supremum is
/// 1.15 for R = 2, 1.38 for R = 4 and 1.59 for R = 8, and with scale 2 iterations can enter an orbit of period 2.
template <int R, int Scale = 1>
struct householder_mixer {
    static constexpr int rank = R;
    static_assert(R >= 1, "householder<R>: R must be at least 1");
    static_assert(Scale == 1 || Scale == 2, "householder<R>: reflection_scale is 1 (paper) or 2 (the authors' code)");

    static void check(index D) {
        require(D >= R, "householder", [&] {
            return "R = " + std::to_string(R) + " reflections need d_inner >= " + std::to_string(R) + ", got " +
                   std::to_string(D);
        });
        // size and scratch, which nothing checks again.
        (void)checked_product(R + 1, D, "householder: R + 1 times d_inner");
    }
    static std::array<index, 2> raw_sizes(index D) { return {R * D, R}; }
    static constexpr index size(index D) { return R * D + R + pairs; }
    static constexpr index scratch(index) { return 0; }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q) {
        // s_i = SiLU(u_i) and their inner products in one pass.
        const auto products = Team::template sum<count + pairs>(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            V s[count];
            for (std::size_t i = 0; i < count; ++i) {
                s[i] = chain::silu_function::value(lane.load(row(raw[0], i, D)));
                lane.store(row(q, i, D), s[i]);
            }
            small_array<V, count + pairs> x;
            for (std::size_t i = 0; i < count; ++i) {
                x[i] = s[i] * s[i];
                for (std::size_t j = 0; j < i; ++j) x[count + pair(i, j)] = s[i] * s[j];
            }
            return x;
        });
        T scale[count], *alpha = q + R * D, *gram = alpha + R;
        for (std::size_t i = 0; i < count; ++i) {
            scale[i] = inverse_length(products[i]);
            alpha[i] = T(Scale) * chain::sigmoid_function::value(raw[1][i]);
            for (std::size_t j = 0; j < i; ++j) gram[pair(i, j)] = products[count + pair(i, j)] * scale[i] * scale[j];
        }
        Team::each(D, [&](auto lane) {
            for (std::size_t i = 0; i < count; ++i)
                lane.store(row(q, i, D), lane.load(row(q, i, D)) * decltype(lane.load(q))(scale[i]));
        });
    }

    /// With x_i = q̄_i + Σ_j Ḡ_ij ū_j, which ū_i gets in all:  s̄_i = (x_i − ū_i ū_iᵀx_i) / ‖s_i‖.
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T* q_bar, T* const* raw_bar) {
        const auto products = Team::template sum<2 * count + pairs>(D, [&](auto lane) {
            using V = decltype(lane.load(q_bar));
            V s[count];
            small_array<V, 2 * count + pairs> x;
            for (std::size_t i = 0; i < count; ++i) {
                s[i] = chain::silu_function::value(lane.load(row(raw[0], i, D)));
                x[i] = s[i] * s[i];
                x[count + i] = s[i] * lane.load(row(q_bar, i, D));
                for (std::size_t j = 0; j < i; ++j) x[2 * count + pair(i, j)] = s[i] * s[j];
            }
            return x;
        });
        const T *alpha_bar = q_bar + R * D, *gram_bar = alpha_bar + R;
        T scale[count], along[count];  // 1/‖s_i‖ and ū_iᵀx_i
        for (std::size_t i = 0; i < count; ++i) {
            scale[i] = inverse_length(products[i]);
            along[i] = products[count + i] * scale[i];
            const T sigma = chain::sigmoid_function::value(raw[1][i]);
            raw_bar[1][i] += alpha_bar[i] * T(Scale) * sigma * (T(1) - sigma);
        }
        T shares[count][count];  // x_i − ū_i ū_iᵀx_i = q̄_i + Σ_j shares_ij s_j
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t j = 0; j < i; ++j) {
                const T bar = gram_bar[pair(i, j)], through = bar * products[2 * count + pair(i, j)];
                along[i] += through * scale[i] * scale[j];
                along[j] += through * scale[i] * scale[j];
                shares[i][j] = bar * scale[j];
                shares[j][i] = bar * scale[i];
            }
        for (std::size_t i = 0; i < count; ++i) {
            const bool inside = math::sqrt(products[i]) > T(l2_normalise_function::epsilon);
            shares[i][i] = inside ? -along[i] * scale[i] : T(0);
        }
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q_bar));
            V u[count], s[count];
            for (std::size_t i = 0; i < count; ++i) {
                u[i] = lane.load(row(raw[0], i, D));
                s[i] = chain::silu_function::value(u[i]);
            }
            for (std::size_t i = 0; i < count; ++i) {
                V x = lane.load(row(q_bar, i, D));
                for (std::size_t j = 0; j < count; ++j) x += V(shares[i][j]) * s[j];
                lane.add(row(raw_bar[0], i, D), V(scale[i]) * x * chain::silu_function::slope(u[i], s[i]));
            }
        });
    }

    /// Row i of S is α_i (e_i − Σ_{j<i} G_ij S_j).
    template <class Team, class T>
    FPRNN_BOTH static void compact(index D, const T* q, small_array<small_array<T, R>, R>& S) {
        const T *alpha = q + R * D, *gram = alpha + R;
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = 0; k < count; ++k) {
                T x = k == i ? T(1) : T(0);
                for (std::size_t j = k; j < i; ++j) x -= gram[pair(i, j)] * S[j][k];
                S[i][k] = alpha[i] * x;
            }
    }

    /// out = w + d − Σ z_i ū_i with d = v − w and z = S Uᵀd.
    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T*) {
        const auto z = forwards(D, q, Team::template sum<count>(D, [&](auto lane) {
                                    const auto d = difference(lane, v, w, q);
                                    small_array<decltype(lane.load(q)), count> x;
                                    for (std::size_t i = 0; i < count; ++i) x[i] = lane.load(row(q, i, D)) * d;
                                    return x;
                                }));
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            V x = v ? lane.load(v) : V(T(0));
            for (std::size_t i = 0; i < count; ++i) x = x - V(z.scaled[i]) * lane.load(row(q, i, D));
            lane.store(out, x);
        });
    }

    /// With y = Sᵀ Uᵀō:  v̄ += ō − Σ y_i ū_i,  w̄ += Σ y_i ū_i.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T*) {
        const auto y = backwards(D, q, Team::template sum<count>(D, [&](auto lane) {
                                     small_array<decltype(lane.load(q)), count> x;
                                     for (std::size_t i = 0; i < count; ++i)
                                         x[i] = lane.load(row(q, i, D)) * lane.load(out_bar);
                                     return x;
                                 }));
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            V x(T(0));
            for (std::size_t i = 0; i < count; ++i) x += V(y.scaled[i]) * lane.load(row(q, i, D));
            if (v_bar) lane.add(v_bar, lane.load(out_bar) - x);
            if (w_bar) lane.add(w_bar, x);
        });
    }

    /// With z = S Uᵀd, z_i = α_i a_i, and y = Sᵀ Uᵀō, y_i = α_i b_i:  ū_i −= z_i ō + y_i d,  ᾱ_i −= a_i b_i,  Ḡ_ij += y_i z_j.
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar, T*) {
        const auto sums = Team::template sum<2 * count>(D, [&](auto lane) {
            const auto d = difference(lane, v, w, q);
            small_array<decltype(lane.load(q)), 2 * count> x;
            for (std::size_t i = 0; i < count; ++i) {
                const auto u = lane.load(row(q, i, D));
                x[i] = u * d;
                x[count + i] = u * lane.load(out_bar);
            }
            return x;
        });
        small_array<T, count> of_d, of_bar;
        for (std::size_t i = 0; i < count; ++i) of_d[i] = sums[i], of_bar[i] = sums[count + i];
        const auto z = forwards(D, q, of_d), y = backwards(D, q, of_bar);
        T *alpha_bar = q_bar + R * D, *gram_bar = alpha_bar + R;
        for (std::size_t i = 0; i < count; ++i) {
            alpha_bar[i] -= z.along[i] * y.along[i];
            for (std::size_t j = 0; j < i; ++j) gram_bar[pair(i, j)] += y.scaled[i] * z.scaled[j];
        }
        Team::each(D, [&](auto lane) {
            using V = decltype(lane.load(q));
            const V d = difference(lane, v, w, q), bar = lane.load(out_bar);
            for (std::size_t i = 0; i < count; ++i)
                lane.add(row(q_bar, i, D), -(V(z.scaled[i]) * bar + V(y.scaled[i]) * d));
        });
    }

private:
    static constexpr std::size_t count = R;
    static constexpr std::size_t pairs = count * (count - 1) / 2;
    FPRNN_BOTH static constexpr std::size_t pair(std::size_t i, std::size_t j) { return i * (i - 1) / 2 + j; }
    template <class T>
    FPRNN_BOTH static T* row(T* p, std::size_t i, index D) {
        return p + static_cast<index>(i) * D;
    }

    template <class T>
    FPRNN_BOTH static T inverse_length(T square) {
        return T(1) / math::maximum(math::sqrt(square), T(l2_normalise_function::epsilon));
    }

    /// v − w, where a null one is zero.
    template <class Lane, class T>
    FPRNN_BOTH static auto difference(Lane lane, const T* v, const T* w, const T* any) {
        using V = decltype(lane.load(any));
        return v ? (w ? lane.load(v) - lane.load(w) : lane.load(v)) : (w ? -lane.load(w) : V(T(0)));
    }

    /// ū_iᵀ of what the reflections before i have left of a vector, and α_i times that.
    template <class T>
    struct shares {
        small_array<T, count> along, scaled;
    };
    /// From the inner products Uᵀd, reflection 0 first: scaled = S Uᵀd.
    template <class T>
    FPRNN_BOTH static shares<T> forwards(index D, const T* q, const small_array<T, count>& products) {
        const T *alpha = q + R * D, *gram = alpha + R;
        shares<T> s;
        for (std::size_t i = 0; i < count; ++i) {
            s.along[i] = products[i];
            for (std::size_t j = 0; j < i; ++j) s.along[i] -= gram[pair(i, j)] * s.scaled[j];
            s.scaled[i] = alpha[i] * s.along[i];
        }
        return s;
    }
    /// The same with the last reflection first: scaled = Sᵀ Uᵀd.
    template <class T>
    FPRNN_BOTH static shares<T> backwards(index D, const T* q, const small_array<T, count>& products) {
        const T *alpha = q + R * D, *gram = alpha + R;
        shares<T> s;
        for (std::size_t i = count; i-- > 0;) {
            s.along[i] = products[i];
            for (std::size_t j = i + 1; j < count; ++j) s.along[i] -= gram[pair(j, i)] * s.scaled[j];
            s.scaled[i] = alpha[i] * s.along[i];
        }
        return s;
    }
};

}  // namespace fprnn
