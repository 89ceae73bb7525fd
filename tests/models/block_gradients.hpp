#pragma once

#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

namespace fprnn::testing {

/// Every entry of every gradient of a block, against central differences and, when it has a fixed point,
/// against the way back through every iteration; for every schedule, on both backends. For chunks of 2 also
/// truncated and neumann, with as many iterations or terms as the solve takes. `y_weight` scales the weight
/// of the norm in the loop: where the iteration has several fixed points, a smaller one makes it contract to
/// one.
template <class Root>
void check_block_gradients(Root expression, const dims& size, index B, index T, double shake_by, double y_weight = 1) {
    constexpr double tight = 1e-13;
    constexpr int most = 3000;
    layer truth(expression, chunked{.length = 1, .tolerance = tight, .ell_max = most});
    auto theta = init<double>(truth, size, seed{5});
    shake(theta, shake_by);
    if (theta.contains("y_norm.weight"))
        for (double& w : theta["y_norm.weight"]) w *= y_weight;
    auto x = normal({B, T, size.d_in}, 1);
    const auto y_bar = normal({B, T, layer<Root>::output_width(size)}, 2);

    bool all_solved = true;
    const auto value = [&] {
        auto sol = truth(theta, x, tensor<double>{}, reference{});
        all_solved = all_solved && sol.all_converged();
        return std::move(sol.value);
    };
    const differences expected = by_differences(theta, x, y_bar, value);
    REQUIRE(all_solved);
    const tensor<double> y = value();

    double worst_value = 0, worst_implicit = 0, worst_unrolled = 0;
    const auto check = [&](index C, auto backend) {
        CAPTURE(C);
        layer l(expression, chunked{.length = C, .tolerance = tight, .ell_max = most},
                implicit{.tolerance = tight, .ell_max = most});
        const auto exact = differentiate(l, theta, x, y_bar, backend);
        REQUIRE(exact.sol.all_converged());
        REQUIRE(exact.adjoint.all_converged());
        worst_value = std::max(worst_value, distance(exact.sol.value, y) / largest(y));
        CHECK(distance(exact.sol.value, y) <= 1e-10 * largest(y));
        const auto against_differences = compare(exact, expected);
        CAPTURE(against_differences.where);
        CHECK(against_differences.worst <= 1e-7);
        worst_implicit = std::max(worst_implicit, against_differences.worst);
        if constexpr (layer<Root>::has_fixed_point) {
            l.adjoint = unrolled{};
            const auto through_all = differentiate(l, theta, x, y_bar, backend);
            const auto against_unrolled = compare(exact, through_all);
            CAPTURE(against_unrolled.where);
            CHECK(against_unrolled.worst <= 1e-9);
            CHECK(compare(through_all, expected).worst <= 1e-7);
            worst_unrolled = std::max(worst_unrolled, against_unrolled.worst);
            if (C != 2) return;  // tests/fixed_point/adjoint.test.cpp has the other schedules
            const int ell = *std::max_element(exact.sol.iterations.begin(), exact.sol.iterations.end());
            l.adjoint = truncated{ell};
            const auto as_far = differentiate(l, theta, x, y_bar, backend);
            CHECK(same_bits(as_far.x_bar, through_all.x_bar));
            CHECK(same_bits(as_far.theta_bar, through_all.theta_bar));
            l.adjoint = neumann{2 * ell};
            CHECK(compare(differentiate(l, theta, x, y_bar, backend), exact).worst <= 1e-9);
        }
    };
    for (const index C : {index{1}, index{2}, index{5}, T, whole_sequence}) {
        check(C, reference{});
        check(C, eigen{2});
    }
    MESSAGE("schedules differ by " << worst_value << "; implicit - differences: " << worst_implicit
                                   << "; implicit - unrolled: " << worst_unrolled);
}

}  // namespace fprnn::testing
