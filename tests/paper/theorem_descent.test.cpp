#include "fixed_point/tools.hpp"

#include <Eigen/Dense>

#include <doctest/doctest.h>

/// thm. descent-dir: where f has a Lipschitz constant below 1 in h and ∂f/∂x = ∂f/∂h, the gradient of one
/// application at the fixed point is a descent direction. The proof is of the gradient of x; for parameters
/// it is not true.
namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;

constexpr int R = 2;
constexpr index T = 4, D = 4, n = T * D;

/// f sees B x + h alone: with B = I, ∂f/∂x is ∂f/∂h. λ and Q are constant.
auto symmetric() {
    using namespace fprnn::symbols;
    fprnn::mixer_node<
        fprnn::householder_mixer<R>,
        fprnn::parameter_node<fprnn::fixed_string("Q.u"), fprnn::times_width<R, fprnn::d_inner>,
                              fprnn::start::constant<1>>,
        fprnn::parameter_node<fprnn::fixed_string("Q.alpha"), fprnn::fixed_width<R>, fprnn::start::constant<0>>>
        Q;
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    return fixed_point(scan(lambda, (1 - lambda) * ((I - Q) * (fprnn::linear<"B">(in) + prev))));
}
using layer = fprnn::layer<decltype(symmetric())>;
using matrix = Eigen::MatrixXd;
using vector = Eigen::VectorXd;

struct problem {
    layer l{symmetric(), fprnn::parallel({.tolerance = 1e-14, .ell_max = 2000})};
    fprnn::layer_parameters<double> theta = fprnn::init<double>(l, {.d_in = D, .d_inner = D}, fprnn::seed{0});
    tensor<double> x;

    explicit problem(std::uint64_t stream) : x(normal({1, T, D}, stream)) {
        const auto numbers = normal({100}, 100 + stream, 2);
        for (double& a : theta["lambda"]) a = 0;
        for (double& a : theta["B"]) a = 0;
        for (index d = 0; d < D; ++d) {
            theta["lambda.bias"][d] = numbers[d];
            theta["B"](d, d) = 1;
        }
        for (index i = 0; i < R * D; ++i) theta["Q.u"][i] = numbers[10 + i];
        for (index i = 0; i < R; ++i) theta["Q.alpha"][i] = 1 + numbers[20 + i];
    }
    differentiated<double> back(const fprnn::adjoint& how, const tensor<double>& delta) {
        l.adjoint = how;
        auto got = differentiate(l, theta, x, delta);
        REQUIRE(got.sol.all_converged());
        return got;
    }
    /// Rows are what the unit vectors δ send back to x and to the parameters, one after the other.
    matrix jacobian(const fprnn::adjoint& how) {
        matrix J(n, n + theta.size());
        for (index i = 0; i < n; ++i) {
            tensor<double> delta({1, T, D});
            delta[i] = 1;
            const auto got = back(how, delta);
            for (index j = 0; j < n; ++j) J(i, j) = got.x_bar[j];
            for (index j = 0; j < theta.size(); ++j) J(i, n + j) = got.theta_bar.data()[j];
        }
        return J;
    }
    matrix exact() { return jacobian(fprnn::implicit{.tolerance = 1e-13, .ell_max = 2000}); }
    matrix once() { return jacobian(fprnn::one_step{}); }

    /// ⟨δ, y*⟩
    double loss(const vector& delta) const {
        const auto y = l(theta, x).value;
        double sum = 0;
        for (index i = 0; i < n; ++i) sum += delta[i] * y[i];
        return sum;
    }
};

/// The smallest δᵀ A Bᵀ δ / ‖A Bᵀ‖ over unit vectors, and where it is.
struct worst_case {
    double value;
    vector delta;

    worst_case(const matrix& A, const matrix& B) {
        const matrix M = A * B.transpose();
        const Eigen::SelfAdjointEigenSolver<matrix> symmetric((M + M.transpose()) / 2);
        value = symmetric.eigenvalues()[0] / M.norm();
        delta = symmetric.eigenvectors().col(0);
    }
};

double norm_of(const matrix& A) { return A.jacobiSvd().singularValues()[0]; }

TEST_CASE("theorem descent-dir: where ∂f/∂x = ∂f/∂h, one application's gradient of x descends, whatever the loss") {
    double least = 1, lipschitz = 0;
    int within = 0;
    for (std::uint64_t stream = 0; stream < 25; ++stream) {
        CAPTURE(stream);
        problem p(stream);
        const matrix J = p.once().leftCols(n), J_star = p.exact().leftCols(n);
        // Its premises: J_x is J_h, because J_x* = (I − J_h)⁻¹ J_x is then this, and J_h contracts.
        REQUIRE((J_star - (matrix::Identity(n, n) - J).inverse() * J).norm() <= 1e-9 * J_star.norm());
        if (norm_of(J) >= 1) continue;
        ++within;
        lipschitz = std::max(lipschitz, norm_of(J));
        const worst_case worst(J_star, J);
        CHECK(worst.value >= -1e-12);
        least = std::min(least, worst.value);
    }
    MESSAGE(within << " draws: smallest eigenvalue of the symmetric part, of its norm: " << least << "; ‖∂f/∂h‖₂ up to "
                   << lipschitz);
    CHECK(within >= 15);
    CHECK(lipschitz > 0.7);
}

TEST_CASE("theorem descent-dir: without ∂f/∂x = ∂f/∂h there are losses that one application's gradient of x ascends") {
    double least = 0;
    for (std::uint64_t stream = 0; stream < 25; ++stream) {
        problem p(stream);
        if (norm_of(p.once().leftCols(n)) >= 1) continue;
        for (index d = 0; d < D; ++d) p.theta["B"](d, d) = d == 0 ? 10 : 0.1;
        const worst_case worst(p.exact().leftCols(n), p.once().leftCols(n));
        least = std::min(least, worst.value);
    }
    MESSAGE("smallest eigenvalue of the symmetric part, of its norm: " << least);
    CHECK(least < -1e-4);
}

TEST_CASE(
    "theorem descent-dir: it is not true of parameters: a step along one application's gradient raises some losses") {
    int raised = 0;
    for (std::uint64_t stream = 0; stream < 25; ++stream) {
        CAPTURE(stream);
        problem p(stream);
        const matrix exact = p.exact(), once = p.once();
        if (norm_of(once.leftCols(n)) >= 1) continue;
        const worst_case worst(exact.rightCols(p.theta.size()), once.rightCols(p.theta.size()));
        if (worst.value > -1e-4) continue;
        ++raised;
        const vector step = once.rightCols(p.theta.size()).transpose() * worst.delta;
        const double before = p.loss(worst.delta), length = 1e-4 / step.norm();
        for (index i = 0; i < p.theta.size(); ++i) p.theta.data()[i] -= length * step[i];
        CHECK(p.loss(worst.delta) > before);
    }
    MESSAGE(raised << " of 25 draws have such a loss");
    CHECK(raised >= 1);
}

}  // namespace
