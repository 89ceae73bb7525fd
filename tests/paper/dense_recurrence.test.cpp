#include "fixed_point/tools.hpp"

#include <Eigen/Dense>

#include <doctest/doctest.h>

/// app. effect-of-normalization-on-matrices-A: what the fixed point of FP-RNN is as a dense recurrence,
/// h_t = A_t (h_{t−1} + (Λ_t⁻¹ − I) Q_t v_t) with A_t = (I + (Λ_t⁻¹ − I) Q_t)⁻¹.
namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;
using matrix = Eigen::MatrixXd;
using vector = Eigen::VectorXd;

constexpr int R = 2;
constexpr index d_in = 4, D = 6;

/// Q, λ and v see x_t and y_{t−1}.
auto rnn() {
    using namespace fprnn::symbols;
    auto s = cat(in, shift(prev));
    auto Q = fprnn::householder<R, "Q">(s);
    auto lambda = sigmoid(fprnn::affine<"lambda">(s));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(s) + (I - Q) * prev)));
}

vector sigmoid_of(const vector& x) { return (1 + (-x).array().exp()).inverse(); }

/// Reflection 0 first; of `count` vectors u, one after the other, and numbers a.
matrix reflections(const vector& u, const vector& a, index count, index width) {
    matrix Q = matrix::Identity(width, width);
    const vector alpha = sigmoid_of(a);
    for (index i = 0; i < count; ++i) {
        const vector raw = u.segment(i * width, width), direction = raw.cwiseProduct(sigmoid_of(raw)).normalized();
        Q = Q - alpha[i] * direction * (direction.transpose() * Q);
    }
    return Q;
}
matrix transition(const vector& lambda, const matrix& Q) {
    const index width = lambda.size();
    const vector weight = lambda.cwiseInverse() - vector::Ones(width);
    return (matrix::Identity(width, width) + weight.asDiagonal() * Q).inverse();
}

vector map(const fprnn::layer_parameters<double>& theta, const std::string& name, const vector& s) {
    using rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto w = theta[name];
    vector y = Eigen::Map<const rows>(w.data(), w.shape()[0], w.shape()[1]) * s;
    if (theta.contains(name + ".bias")) y += Eigen::Map<const vector>(theta[name + ".bias"].data(), y.size());
    return y;
}

TEST_CASE(
    "dense recurrence: h_t = A_t (h_{t−1} + (Λ⁻¹ − I) Q v_t), token by token, is FP-RNN's fixed point for every "
    "schedule") {
    const index B = 3, T = 12;
    fprnn::layer l(rnn());
    auto theta = fprnn::init<double>(l, {.d_in = d_in, .d_inner = D}, fprnn::seed{3});
    shake(theta, 0.2);
    const auto x = normal({B, T, d_in}, 1);
    tensor<double> dense({B, T, D}), without({B, T, D});
    for (index b = 0; b < B; ++b) {
        vector h = vector::Zero(D);
        for (index t = 0; t < T; ++t) {
            vector s(d_in + D);
            s << Eigen::Map<const vector>(&x(b, t, 0), d_in), h;
            const vector lambda = sigmoid_of(map(theta, "lambda", s)), v = map(theta, "B", s);
            const matrix Q = reflections(map(theta, "Q.u", s), map(theta, "Q.alpha", s), R, D),
                         A = transition(lambda, Q), identity = matrix::Identity(D, D);
            const vector keep = vector::Ones(D) - lambda;
            // The first form of the appendix, before Λ is moved.
            const matrix first =
                (identity - keep.asDiagonal() * (identity - Q)).inverse() * lambda.asDiagonal().toDenseMatrix();
            CHECK((A - first).norm() <= 1e-12 * A.norm());
            const vector unscaled = Q.inverse() * (lambda.cwiseProduct(h) + keep.cwiseProduct(Q * v));
            Eigen::Map<vector>(&without(b, t, 0), D) = unscaled;
            h = A * (h + keep.cwiseQuotient(lambda).cwiseProduct(Q * v));
            Eigen::Map<vector>(&dense(b, t, 0), D) = h;
        }
    }
    double worst = 0;
    for (const index C : {index{1}, index{5}, fprnn::whole_sequence}) {
        CAPTURE(C);
        l.schedule = {.length = C, .tolerance = 1e-14, .ell_max = 4000};
        const auto got = l(theta, x);
        REQUIRE(got.all_converged());
        const double error = distance(got.value, dense) / largest(dense);
        CHECK(error <= 1e-11);
        CHECK(distance(got.value, without) > 1e-2 * largest(dense));  // Q⁻¹Λ, of the recurrence that is not normalised
        worst = std::max(worst, error);
    }
    MESSAGE("dense - solved: " << worst);
}

TEST_CASE("caution: with 0 ⪯ Λ, Q ⪯ I the eigenvalues of A are at most 1, but ‖A‖₂ is not") {
    double radius = 0, norm = 0;
    for (std::uint64_t stream = 0; stream < 400; ++stream) {
        const auto numbers = normal({2 * D + 1}, stream, 3);
        const vector u = Eigen::Map<const vector>(numbers.data(), D),
                     lambda = sigmoid_of(Eigen::Map<const vector>(numbers.data() + D, D)),
                     alpha = vector::Constant(1, 3 + numbers[2 * D]);
        const matrix A = transition(lambda, reflections(u, alpha, 1, D));
        radius = std::max(radius, A.eigenvalues().cwiseAbs().maxCoeff());
        norm = std::max(norm, A.jacobiSvd().singularValues()[0]);
    }
    MESSAGE("largest |eigenvalue| of A seen: " << radius << ", largest ‖A‖₂: " << norm);
    CHECK(radius <= 1 + 1e-9);
    CHECK(norm > 2);
}

}  // namespace
