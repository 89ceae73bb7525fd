#include "fixed_point/tools.hpp"

#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/head_scan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using fprnn::index;
using numbers = std::vector<double>;

std::size_t at(index i) { return static_cast<std::size_t>(i); }

template <int G>
fprnn::recurrence_claims<fprnn::head_scan_recurrence<G>> claims() {
    using M = fprnn::head_scan_recurrence<G>;
    return {.widths = {{G, G, G, G}, {2 * G, 3 * G, 8 * G, 3 * G}, {G, 2 * G, 17 * G, 2 * G}},
            .plain =
                [](const typename M::sizes& of, const numbers&, const auto& x, numbers& S) {
                    const auto& [a, b, u, c] = x;
                    const index H = of.heads, N = of.states, P = of.channels;
                    numbers y(at(H * P));
                    for (index h = 0; h < H; ++h) {
                        const index g = h / (H / G);
                        for (index n = 0; n < N; ++n)
                            for (index i = 0; i < P; ++i) {
                                double& s = S[at((h * N + n) * P + i)];
                                s = a[at(h)] * s + b[at(g * N + n)] * u[at(h * P + i)];
                                y[at(h * P + i)] += c[at(g * N + n)] * s;
                            }
                    }
                    return y;
                },
            .range = [](std::size_t k, double x) { return k == 0 ? 1 / (1 + std::exp(-x)) : x; }};
}
TEST_CASE_TEMPLATE("head_scan: the laws of a recurrence", Groups, std::integral_constant<int, 1>,
                   std::integral_constant<int, 2>) {
    const auto v = fprnn::check_recurrence(claims<Groups::value>());
    INFO(v.to_string());
    CHECK(v.ok());
}

TEST_CASE("head_scan: widths that do not fit are refused") {
    using M = fprnn::head_scan_recurrence<2>;
    CHECK_THROWS_WITH_AS(M::of({3, 4, 6, 4}),
                         "head_scan: a must have a multiple of 2 channels, as many for each group, got 3",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(M::of({2, 3, 6, 3}),
                         "head_scan: b must have a multiple of 2 channels, as many for each group, got 3",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(M::of({4, 4, 6, 4}),
                         "head_scan: u must have a multiple of 4 channels, as many for each of a's heads, got 6",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(M::of({2, 4, 6, 6}), "head_scan: c must have 4 channels, as b, got 6", fprnn::argument_error);
}

TEST_CASE("head_scan: with one decay for a head it is the selective scan whose rates are those of its head") {
    using namespace fprnn::symbols;
    using namespace fprnn::testing;
    using fprnn::affine, fprnn::d_state, fprnn::heads, fprnn::linear, fprnn::repeat;
    using of_a_head = fprnn::quotient_width<fprnn::d_inner, heads>;
    const auto x = linear<"x">(in);
    const auto b = linear<"b", d_state>(in);
    const auto c = linear<"c", d_state>(in);
    const auto delta = softplus(affine<"delta", heads>(in));
    const auto a = exp(-(exp(fprnn::parameter<"A", heads, fprnn::start::log_uniform<1, 16>>()) * delta));
    const fprnn::layer one(fprnn::head_scan(a, b, repeat<of_a_head>(delta) * x, c));
    const fprnn::layer other(fprnn::selective_scan<"ssm">(repeat<of_a_head>(delta), b, c, x));
    const fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .heads = 2};
    const auto theta = fprnn::init<double>(one, sizes, fprnn::seed{1});
    auto tied = fprnn::init<double>(other, sizes);
    for (const auto& p : tied.entries()) {
        if (p.name != "ssm.omega") std::copy_n(theta[p.name].data(), p.shape.count(), tied[p.name].data());
        for (index i = 0; p.name == "ssm.omega" && i < p.shape.count(); ++i)
            tied[p.name].data()[i] = theta["A"][i % 6 / 3];
    }
    const auto u = normal({3, 9, 4}, 2), y_bar = normal({3, 9, 6}, 3);
    const auto of_heads = differentiate(one, theta, u, y_bar), of_channels = differentiate(other, tied, u, y_bar);
    CHECK(distance(of_heads.sol.value, of_channels.sol.value) <= 1e-13 * largest(of_channels.sol.value));
    CHECK(distance(of_heads.x_bar, of_channels.x_bar) <= 1e-13 * largest(of_channels.x_bar));
    for (const index h : {0, 1}) {  // the cotangent of a head's A is the sum of its ω's
        double sum = 0;
        for (index n = 0; n < 3; ++n)
            for (index i = 0; i < 3; ++i) sum += of_channels.theta_bar["ssm.omega"][n * 6 + h * 3 + i];
        CHECK(of_heads.theta_bar["A"][h] == doctest::Approx(sum).epsilon(1e-14));
    }
}

}  // namespace
