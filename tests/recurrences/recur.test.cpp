#include <larger.hpp>

#include <fprnn/backend/eigen.hpp>
#include <fprnn/core/gradcheck.hpp>
#include <fprnn/core/random.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/recurrences/gated_delta.hpp>
#include <fprnn/recurrences/recur.hpp>
#include <fprnn/recurrences/selective_scan.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

namespace {

using fprnn::gated_delta_recurrence;
using fprnn::index;
using fprnn::selective_scan_recurrence;
using fprnn::tensor;
using fprnn::view;

tensor<double> normal(const fprnn::shape& s, std::uint64_t stream, double scale = 1) {
    tensor<double> x(s);
    const fprnn::random_stream r({5}, stream);
    for (index i = 0; i < x.size(); ++i) x[i] = scale * r.normal(static_cast<std::uint64_t>(i));
    return x;
}
double distance(const tensor<double>& a, const tensor<double>& b) {
    REQUIRE(a.shape() == b.shape());
    double worst = 0;
    for (index i = 0; i < a.size(); ++i) worst = fprnn::testing::larger(worst, std::abs(a[i] - b[i]));
    return worst;
}
bool same_bits(const tensor<double>& a, const tensor<double>& b) {
    return a.shape() == b.shape() &&
           (a.size() == 0 || std::memcmp(a.data(), b.data(), sizeof(double) * static_cast<std::size_t>(a.size())) == 0);
}

struct delta_rule {
    tensor<double> alpha, k, v, beta, q, S;
    explicit delta_rule(index B = 3, index T = 37)
        : alpha(normal({B, T, 2}, 1, 0.3)),
          k(normal({B, T, 8}, 2, 0.5)),
          v(normal({B, T, 10}, 3)),
          beta(normal({B, T, 2}, 4)),
          q(normal({B, T, 8}, 5)),
          S(normal({B, 2 * 4 * 5}, 6)) {
        for (double& x : beta) x = 1 / (1 + std::exp(-x));
    }
    fprnn::recurrence_inputs<gated_delta_recurrence, double> inputs() const {
        return {alpha.view(), k.view(), v.view(), beta.view(), q.view()};
    }
};

TEST_CASE("recur: the selective scan as a recurrence is the selective scan") {
    const index B = 2, T = 35, D = 7, N = 3;
    auto delta = normal({B, T, D}, 1);
    for (double& x : delta) x = std::exp(0.3 * x - 1);
    const auto b = normal({B, T, N}, 2), c = normal({B, T, N}, 3), u = normal({B, T, D}, 4), H = normal({B, N, D}, 5);
    const auto omega = normal({N, D}, 6), y_bar = normal({B, T, D}, 7), H_bar = normal({B, N, D}, 8);
    const auto flat = [](const tensor<double>& x, fprnn::shape s) { return view<const double>(x.data(), s); };
    const auto expected = fprnn::selective_scan(delta, omega, b, c, u, H);
    const fprnn::recurrence_inputs<selective_scan_recurrence, double> x{delta.view(), b.view(), c.view(), u.view()};
    const auto S = flat(H, {B, N * D});
    const auto got = fprnn::recur<selective_scan_recurrence, double>(x, flat(omega, {N * D}), S);
    CHECK(distance(got.y, expected.y) < 1e-14);
    fprnn::selective_scan_cotangents<double> into(u.shape(), N);
    fprnn::selective_scan_back(delta, omega, b, c, u, H, y_bar, H_bar, into);
    fprnn::recurrence_cotangents<selective_scan_recurrence, double> bars(x, flat(omega, {N * D}));
    fprnn::recur_back<selective_scan_recurrence, double>(x, flat(omega, {N * D}), S, y_bar.view(),
                                                         flat(H_bar, {B, N * D}), bars);
    CHECK(distance(bars.x[0], into.delta) < 1e-12);
    CHECK(distance(bars.x[1], into.b) < 1e-12);
    CHECK(distance(bars.x[2], into.c) < 1e-12);
    CHECK(distance(bars.x[3], into.u) < 1e-12);
    for (index i = 0; i < bars.parameters.size(); ++i) CHECK(std::abs(bars.parameters[i] - into.omega[i]) < 1e-12);
    for (index i = 0; i < bars.S.size(); ++i) CHECK(std::abs(bars.S[i] - into.H[i]) < 1e-12);
}

TEST_CASE("recur: gradients of the gated delta rule are difference quotients, and bits do not depend on threads") {
    delta_rule r(2, 18);
    const auto y_bar = normal({2, 18, 10}, 7), S_bar = normal(r.S.shape(), 8);
    const auto back = [&](auto backend) {
        fprnn::recurrence_cotangents<gated_delta_recurrence, double> bars(r.inputs());
        fprnn::recur_back<gated_delta_recurrence, double>(r.inputs(), {}, r.S.view(), y_bar.view(), S_bar.view(), bars,
                                                          backend);
        return bars;
    };
    const auto bars = back(fprnn::eigen(1)), other = back(fprnn::eigen(2));
    for (std::size_t k = 0; k < 5; ++k) CHECK(same_bits(bars.x[k], other.x[k]));
    CHECK(same_bits(bars.S, other.S));
    const auto loss = [&] {
        const auto to = fprnn::recur<gated_delta_recurrence, double>(r.inputs(), {}, r.S.view());
        double sum = 0;
        for (index i = 0; i < to.y.size(); ++i) sum += to.y[i] * y_bar[i];
        for (index i = 0; i < to.S.size(); ++i) sum += to.S[i] * S_bar[i];
        return sum;
    };
    const auto result = fprnn::gradcheck(loss, {{"alpha", r.alpha.view(), std::as_const(bars.x[0]).view()},
                                                {"k", r.k.view(), std::as_const(bars.x[1]).view()},
                                                {"v", r.v.view(), std::as_const(bars.x[2]).view()},
                                                {"beta", r.beta.view(), std::as_const(bars.x[3]).view()},
                                                {"q", r.q.view(), std::as_const(bars.x[4]).view()},
                                                {"S", r.S.view(), std::as_const(bars.S).view()}});
    INFO(result.to_string());
    CHECK(result.error < 1e-8);
}

TEST_CASE("recur: without sequences or tokens there is nothing to do") {
    for (const auto& [B, T] : {std::pair<index, index>{0, 4}, {3, 0}}) {
        const delta_rule r(B, T);
        const auto to = fprnn::recur<gated_delta_recurrence, double>(r.inputs(), {}, r.S.view());
        CHECK(to.y.shape() == fprnn::shape{B, T, 10});
        CHECK(same_bits(to.S, r.S));
        fprnn::recurrence_cotangents<gated_delta_recurrence, double> bars(r.inputs());
        const tensor<double> y_bar({B, T, 10});
        fprnn::recur_back<gated_delta_recurrence, double>(r.inputs(), {}, r.S.view(), y_bar.view(), r.S.view(), bars);
        CHECK(same_bits(bars.S, r.S));
    }
}

TEST_CASE("recur: arguments that do not fit are refused") {
    const delta_rule r;
    const auto call = [&](const tensor<double>& k, view<const double> p, view<const double> S) {
        return fprnn::recur<gated_delta_recurrence, double>(
            {r.alpha.view(), k.view(), r.v.view(), r.beta.view(), r.q.view()}, p, S);
    };
    CHECK_THROWS_WITH_AS(call(normal({3, 36, 8}, 1), {}, {}), "gated_delta: input 1 must be [3,37,8], got [3,36,8]",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(call(normal({3, 8}, 1), {}, {}), doctest::Contains("gated_delta: input 1 must be [B,T,width]"),
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(call(r.k, r.q.view(), {}), doctest::Contains("gated_delta: parameters must be 0 numbers, got"),
                         fprnn::argument_error);
    const auto scan = [](index of_delta, index of_c) {
        const auto delta = normal({2, 3, of_delta}, 1), b = normal({2, 3, 4}, 2), c = normal({2, 3, of_c}, 3),
                   u = normal({2, 3, 6}, 4), omega = normal({4, 6}, 5);
        return fprnn::recur<fprnn::selective_scan_recurrence, double>({delta.view(), b.view(), c.view(), u.view()},
                                                                      omega.view());
    };
    CHECK_THROWS_WITH_AS(scan(2, 4), "selective_scan: delta must be as wide as u, 6, got 2", fprnn::argument_error);
    CHECK_THROWS_WITH_AS(scan(6, 3), "selective_scan: c must be as wide as b, 4, got 3", fprnn::argument_error);
    CHECK_NOTHROW(scan(6, 4));
    CHECK_THROWS_WITH_AS(call(r.k, {}, r.q.view()), doctest::Contains("gated_delta: S must be [3,40], got"),
                         fprnn::argument_error);
}

}  // namespace
