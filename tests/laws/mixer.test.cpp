#include "../../examples/own_mixer/rotation.hpp"
#include "../../examples/own_mixer/rotation_matrix.hpp"

#include <fprnn/expression/mixers.hpp>
#include <fprnn/mixers/check_mixer.hpp>

#include <Eigen/SVD>

#include <doctest/doctest.h>

/// The laws of mixers. A new mixer is one line in FPRNN_MIXERS and its definition as a dense matrix, in
/// `law`.
namespace {

using fprnn::index;
using fprnn::tensor;

template <class M>
struct law;

using matrix = Eigen::MatrixXd;
using vector = Eigen::VectorXd;
using numbers = std::vector<tensor<double>>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
matrix identity(index D) { return matrix::Identity(D, D); }

tensor<double> as_tensor(const matrix& Q) {
    tensor<double> to({Q.rows(), Q.cols()});
    for (index r = 0; r < Q.rows(); ++r)
        for (index c = 0; c < Q.cols(); ++c) to(r, c) = Q(r, c);
    return to;
}

/// ū_i = SiLU(u_i)/max(‖SiLU(u_i)‖, 1e-5)
vector direction(index D, const numbers& raw, index i) {
    vector u(D);
    for (index d = 0; d < D; ++d) u(d) = silu(raw[0][i * D + d]);
    return u / std::max(u.norm(), 1e-5);
}
/// Q = Π_i (I − α_i ū_i ū_iᵀ), reflection 0 first, α_i = Scale · σ(a_i)
template <int R, int Scale>
struct law<fprnn::householder_mixer<R, Scale>> {
    static matrix of(index D, const numbers& raw) {
        matrix Q = identity(D);
        for (index i = 0; i < R; ++i) {
            const vector u = direction(D, raw, i);
            Q = (identity(D) - Scale * sigmoid(raw[1][i]) * u * u.transpose()) * Q;
        }
        return Q;
    }
};
/// Q = I − Σ_i α_i ū_i ū_iᵀ
template <int R, int Scale>
struct law<fprnn::dplr_mixer<R, Scale>> {
    static constexpr bool norm_at_most_one = R * Scale <= 2, contracts = R * Scale == 1;
    static matrix of(index D, const numbers& raw) {
        matrix Q = identity(D);
        for (index i = 0; i < R; ++i) {
            const vector u = direction(D, raw, i);
            Q -= Scale * sigmoid(raw[1][i]) * u * u.transpose();
        }
        return Q;
    }
};

/// The upper triangle whose numbers are SiLU of those from `at` on, row by row; `at` goes behind them.
matrix triangle(index m, const tensor<double>& raw, index& at) {
    matrix U = matrix::Zero(m, m);
    for (index i = 0; i < m; ++i)
        for (index j = i; j < m; ++j) U(i, j) = silu(raw[at++]);
    return U;
}
/// ρ s sᵀ ⊙ A / (tr A⁴)^{1/4}, A = UᵀU, s² = σ(gate), ρ = 1 − 16 (m + 8) ε
matrix factor(const matrix& U, const vector& gates) {
    const double rho = 1 - 16 * (static_cast<double>(U.rows()) + 8) * std::numeric_limits<double>::epsilon();
    const matrix A = U.transpose() * U, cube = A * A * A;
    const vector s = gates.unaryExpr(&sigmoid).cwiseSqrt();
    return matrix(s.asDiagonal()) * (rho / std::pow((A * cube).trace(), 0.25) * A) * matrix(s.asDiagonal());
}
vector part(const tensor<double>& raw, index at, index n) { return vector::Map(raw.data() + at, n); }
matrix kronecker_product(const matrix& one, const matrix& two) {
    matrix all(one.rows() * two.rows(), one.cols() * two.cols());
    for (index i = 0; i < one.rows(); ++i)
        for (index j = 0; j < one.cols(); ++j)
            all.block(i * two.rows(), j * two.cols(), two.rows(), two.cols()) = one(i, j) * two;
    return all;
}

/// Q = I − K¹ ⊗ K²
template <>
struct law<fprnn::kronecker_mixer> {
    static constexpr bool contracts = true;
    static matrix of(index D, const numbers& raw) {
        const auto [a, b] = fprnn::kronecker_sizes::of(D);
        index at = 0;
        const matrix one = factor(triangle(a, raw[0], at), part(raw[1], 0, a));
        const matrix two = factor(triangle(b, raw[0], at), part(raw[1], a, b));
        return identity(D) - kronecker_product(one, two);
    }
};
/// Q = I − 2 K₁ᵀ ⊗ K₂, K = diag(σ(δ)) K̂, K̂ the rows of T Tᵀ, normalised, and, spectral, 16 steps of a power
/// iteration
template <bool Spectral>
struct law<fprnn::published_kronecker_mixer<Spectral>> {
    static constexpr bool norm_at_most_one = false;
    static matrix of(index D, const numbers& raw) {
        const auto [a, b] = fprnn::kronecker_sizes::of(D);
        index at = 0;
        const auto K = [&](index m, index gates) {
            const matrix T = triangle(m, raw[0], at);
            matrix K_hat = T * T.transpose();
            for (index i = 0; i < m; ++i) K_hat.row(i) /= std::max(K_hat.row(i).norm(), 1e-5);
            if (Spectral) {
                vector u, v = vector::Ones(m);
                for (int i = 0; i < 8; ++i) {
                    u = (K_hat * v).normalized();
                    v = (K_hat * u).normalized();
                }
                K_hat /= u.dot(K_hat * v) + 1e-5;
            }
            return matrix(part(raw[1], gates, m).unaryExpr(&sigmoid).asDiagonal() * K_hat);
        };
        const matrix one = K(a, 0), two = K(b, a);
        return identity(D) - 2 * kronecker_product(one.transpose(), two);
    }
};
/// Q = I − diag(K_1, …)
template <int K>
struct law<fprnn::block_diagonal_mixer<K>> {
    static constexpr bool contracts = true;
    static matrix of(index D, const numbers& raw) {
        matrix Q = identity(D);
        index at = 0;
        for (index n = 0; n < D / K; ++n)
            Q.block(n * K, n * K, K, K) -= factor(triangle(K, raw[0], at), vector::Constant(K, raw[1][n]));
        return Q;
    }
};
template <>
struct law<fprnn::selective_dense_mixer> {
    static matrix of(index D, const numbers& raw) {
        index at = 0;
        return factor(triangle(D, raw[0], at), vector::Constant(D, 1e3));  // σ = 1
    }
};
/// Q = Π_i (I − 2 v̄_i v̄_iᵀ), reflection 0 first
template <>
struct law<fprnn::orthogonal_mixer> {
    static matrix of(index D, const numbers& raw) {
        matrix Q = identity(D);
        for (index i = 0; i < D; ++i) {
            const vector v = part(raw[0], i * D, D).normalized();
            Q = (identity(D) - 2 * v * v.transpose()) * Q;
        }
        return Q;
    }
};
template <class A, class B>
struct law<fprnn::product_mixer<A, B>> {
    static matrix of(index D, const numbers& raw) {
        const auto of_A = static_cast<std::ptrdiff_t>(A::raw_sizes(D).size());
        return law<A>::of(D, {raw.begin(), raw.begin() + of_A}) * law<B>::of(D, {raw.begin() + of_A, raw.end()});
    }
};
template <class M>
consteval bool norm_is_at_most_one() {
    if constexpr (requires { law<M>::norm_at_most_one; })
        return law<M>::norm_at_most_one;
    else
        return true;
}
/// I − Q = min(1, ρ/‖I − Q_M‖₂) (I − Q_M)
template <class M, int N, int Denominator>
struct law<fprnn::contractive_mixer<M, N, Denominator>> {
    static constexpr bool norm_at_most_one = norm_is_at_most_one<M>(), contracts = true;
    static matrix of(index D, const numbers& raw) {
        const matrix E = identity(D) - law<M>::of(D, raw);
        const double norm = Eigen::JacobiSVD<matrix>(E).singularValues()(0);
        return identity(D) - std::min(1.0, double(N) / Denominator / norm) * E;
    }
};

/// The mixer of the tutorial.
template <int K>
struct law<rotation_mixer<K>> {
    static constexpr auto dense = rotation_matrix;
};

/// law<M>::norm_at_most_one = false where ‖Q‖ ≤ 1 does not hold, law<M>::contracts = true where ‖I − Q‖₂ < 1
/// does.
template <class M>
fprnn::mixer_claims claims() {
    fprnn::mixer_claims all{.norm_at_most_one = norm_is_at_most_one<M>(), .rounding = 4e-15};
    if constexpr (requires { law<M>::dense; })
        all.dense = law<M>::dense;
    else
        all.dense = [](index D, const numbers& raw) { return as_tensor(law<M>::of(D, raw)); };
    if constexpr (requires { law<M>::contracts; }) all.contracts = law<M>::contracts;
    return all;
}

template <class M, class Team>
struct on {
    static fprnn::mixer_verdict verdict() { return fprnn::check_mixer<M, Team>(claims<M>()); }
};

#define FPRNN_MIXERS(team)                                                                                      \
    on<fprnn::householder_mixer<1, 1>, team>, on<fprnn::householder_mixer<2, 1>, team>,                         \
        on<fprnn::householder_mixer<4, 1>, team>, on<fprnn::householder_mixer<1, 2>, team>,                     \
        on<fprnn::householder_mixer<4, 2>, team>, on<fprnn::dplr_mixer<1, 1>, team>,                            \
        on<fprnn::dplr_mixer<2, 1>, team>, on<fprnn::dplr_mixer<3, 2>, team>, on<fprnn::kronecker_mixer, team>, \
        on<fprnn::published_kronecker_mixer<false>, team>, on<fprnn::published_kronecker_mixer<true>, team>,    \
        on<fprnn::block_diagonal_mixer<3>, team>, on<fprnn::selective_dense_mixer, team>,                       \
        on<fprnn::orthogonal_mixer, team>,                                                                      \
        on<fprnn::product_mixer<fprnn::householder_mixer<2>, fprnn::kronecker_mixer>, team>,                    \
        on<fprnn::contractive_mixer<fprnn::householder_mixer<4>, 9, 10>, team>,                                 \
        on<fprnn::contractive_mixer<fprnn::dplr_mixer<3, 2>, 1, 2>, team>, on<rotation_mixer<1>, team>,         \
        on<rotation_mixer<9>, team>

TEST_CASE_TEMPLATE("mixer: the laws", Subject, FPRNN_MIXERS(fprnn::serial_team<double>),
                   FPRNN_MIXERS(fprnn::pack_team<double>)) {
    const auto verdict = Subject::verdict();
    CHECK_MESSAGE(verdict.ok(), verdict.to_string());
}

}  // namespace
