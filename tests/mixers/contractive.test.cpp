#include <fprnn/expression/mixers.hpp>

#include <ops/checks.hpp>

#include <Eigen/SVD>

namespace {

using fprnn::index;
using fprnn::tensor;
using team = fprnn::serial_team<double>;

/// A mixer's prepared numbers of random raw ones; with `equal`, all directions are the same.
template <class M>
tensor<double> prepared(index D, std::uint64_t stream, bool equal = false, double alpha_mean = 0) {
    constexpr index R = M::rank;
    auto u = checks::random<double>({R * D}, stream), a = checks::random<double>({R}, stream + 1, 1, alpha_mean);
    if (equal)
        for (index i = D; i < R * D; ++i) u[i] = u[i - D];
    const double* raw[] = {u.data(), a.data()};
    tensor<double> q({M::size(D)}), scratch({fprnn::mixing::prepare_scratch<M>(D) + 1});
    fprnn::mixing::prepare<M, team>(D, raw, q.data(), scratch.data());
    return q;
}

template <class M>
double dense_norm(index D, const tensor<double>& q) {
    Eigen::MatrixXd E(D, D);
    tensor<double> scratch({M::scratch(D) + 1}), column({D});
    for (index j = 0; j < D; ++j) {
        tensor<double> e({D});
        e[j] = 1;
        M::template mix<team, double>(D, q.data(), nullptr, e.data(), column.data(), scratch.data());
        for (index i = 0; i < D; ++i) E(i, j) = column[i];
    }
    return Eigen::JacobiSVD<Eigen::MatrixXd>(E).singularValues()(0);
}

TEST_CASE_TEMPLATE("complement_norm: an R x R computation gives the norm of I - Q exactly", M,
                   fprnn::householder_mixer<1>, fprnn::householder_mixer<2>, fprnn::householder_mixer<4>,
                   fprnn::householder_mixer<4, 2>, fprnn::dplr_mixer<1>, fprnn::dplr_mixer<4>,
                   fprnn::dplr_mixer<4, 2>) {
    for (const index D : {4, 5, 17})
        for (std::uint64_t stream = 1; stream <= 40; stream += 2)
            for (const bool equal : {false, true}) {
                const auto q = prepared<M>(D, stream, equal, stream % 4 == 1 ? 3 : 0);
                const double expected = dense_norm<M>(D, q);
                CHECK(fprnn::complement_norm<M>(D, q.data()) == doctest::Approx(expected).epsilon(2e-14));
            }
}

TEST_CASE("complement_norm: rank 1 and scale 1 is a contraction, others exceed 1, as their documentation says") {
    double one = 0, householder = 0, dplr = 0;
    for (std::uint64_t stream = 1; stream < 400; stream += 2) {
        one = fprnn::testing::larger(one, fprnn::complement_norm<fprnn::householder_mixer<1>>(
                                              3, prepared<fprnn::householder_mixer<1>>(3, stream, false, 4).data()));
        householder = fprnn::testing::larger(householder,
                                             fprnn::complement_norm<fprnn::householder_mixer<2>>(
                                                 3, prepared<fprnn::householder_mixer<2>>(3, stream, false, 4).data()));
        dplr = fprnn::testing::larger(dplr, fprnn::complement_norm<fprnn::dplr_mixer<2>>(
                                                3, prepared<fprnn::dplr_mixer<2>>(3, stream, true, 4).data()));
    }
    CHECK(one < 1);
    CHECK(householder > 1.1);
    CHECK(householder <= 1.1548);  // 2/√3
    CHECK(dplr > 1.9);
    CHECK(dplr <= 2);
}

TEST_CASE("complement_norm: NaN among the numbers is NaN") {
    auto q = prepared<fprnn::householder_mixer<2>>(5, 1);
    q[3] = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isnan(fprnn::complement_norm<fprnn::householder_mixer<2>>(5, q.data())));
}

TEST_CASE_TEMPLATE("contractive: the norm of I - Q is at most the bound, and a contraction stays what it is", M,
                   fprnn::householder_mixer<4, 2>, fprnn::dplr_mixer<4>, fprnn::dplr_mixer<3, 2>) {
    using tight = fprnn::contractive_mixer<M, 9, 10>;
    const index D = 7;
    bool scaled = false, left_alone = false;
    for (std::uint64_t stream = 1; stream < 60; stream += 2) {
        const double mean = stream < 30 ? 3 : -4;
        const auto q = prepared<tight>(D, stream, stream % 4 == 1, mean),
                   free = prepared<M>(D, stream, stream % 4 == 1, mean);
        const double norm = dense_norm<M>(D, free);
        const double bounded = dense_norm<tight>(D, q);
        CHECK(bounded <= 0.9 * (1 + 1e-14));
        CHECK(bounded == doctest::Approx(std::min(norm, 0.9)).epsilon(2e-14));
        (norm > 0.9 ? scaled : left_alone) = true;
        CHECK(fprnn::complement_norm<tight>(D, q.data()) == doctest::Approx(bounded).epsilon(2e-14));
    }
    CHECK(scaled);
    CHECK(left_alone);
}

}  // namespace
