#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/head_scan.hpp>

#include <doctest/doctest.h>

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
                [](const M::sizes& of, const numbers&, const auto& x, numbers& S) {
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

}  // namespace
