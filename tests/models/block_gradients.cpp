#include "models/block_gradients.hpp"

#include <algorithm>

namespace fprnn::testing {

void check_block_gradients(const block_plans& block, const dims& size, index B, index T, double shake_by,
                           double y_weight) {
    constexpr double tight = 1e-13;
    constexpr int most = 3000;
    const graph::view& nodes = block.on_eigen.nodes;
    layer_parameters<double> theta;
    theta.widths = size;
    graph::add_parameters(nodes, theta, size, "", seed{5});
    shake(theta, shake_by);
    if (theta.contains("y_norm.weight"))
        for (double& w : theta["y_norm.weight"]) w *= y_weight;
    auto x = normal({B, T, size.d_in}, 1);
    const auto y_bar = normal({B, T, nodes[nodes.root()].width.of(size)}, 2);

    bool all_solved = true;
    reference plain;
    const method token_by_token{.schedule = {.length = 1, .tolerance = tight, .ell_max = most}};
    const engine::layer_on<double, reference> truth{block.on_reference, token_by_token};
    const auto value = [&] {
        solution<double> sol;
        truth.run(size, theta.data(), x.view(), {}, plain, nullptr, sol, std::span<const index>{});
        all_solved = all_solved && sol.all_converged();
        return std::move(sol.value);
    };
    const differences expected = by_differences(theta, x, y_bar, value);
    REQUIRE(all_solved);
    const tensor<double> y = value();

    double worst_value = 0, worst_implicit = 0, worst_unrolled = 0;
    const auto check = [&](index C, const auto& differentiate_by) {
        CAPTURE(C);
        method how{.schedule = {.length = C, .tolerance = tight, .ell_max = most},
                   .adjoint = implicit{.tolerance = tight, .ell_max = most}};
        const auto exact = differentiate_by(how);
        REQUIRE(exact.sol.all_converged());
        REQUIRE(exact.adjoint.all_converged());
        worst_value = larger(worst_value, distance(exact.sol.value, y) / largest(y));
        CHECK(distance(exact.sol.value, y) <= 1e-10 * largest(y));
        const auto against_differences = compare(exact, expected);
        CAPTURE(against_differences.where);
        CHECK(against_differences.worst <= 1e-7);
        worst_implicit = larger(worst_implicit, against_differences.worst);
        if (!block.on_eigen.has_fixed_point()) return;

        how.adjoint = unrolled{};
        const auto through_all = differentiate_by(how);
        const auto against_unrolled = compare(exact, through_all);
        CAPTURE(against_unrolled.where);
        CHECK(against_unrolled.worst <= 1e-9);
        CHECK(compare(through_all, expected).worst <= 1e-7);
        worst_unrolled = larger(worst_unrolled, against_unrolled.worst);
        if (C != 2) return;  // tests/fixed_point/adjoint.test.cpp has the other schedules
        const int ell = *std::max_element(exact.sol.iterations.begin(), exact.sol.iterations.end());
        how.adjoint = truncated{ell};
        const auto as_far = differentiate_by(how);
        CHECK(same_bits(as_far.x_bar, through_all.x_bar));
        CHECK(same_bits(as_far.theta_bar, through_all.theta_bar));
        how.adjoint = neumann{2 * ell};
        CHECK(compare(differentiate_by(how), exact).worst <= 1e-9);
    };
    for (const index C : {index{1}, index{2}, index{5}, T, whole_sequence}) {
        check(C, [&](const method& how) {
            return differentiate(engine::layer_on<double, reference>{block.on_reference, how}, theta, x, y_bar);
        });
        check(C, [&](const method& how) {
            return differentiate(engine::layer_on<double, eigen>{block.on_eigen, how}, theta, x, y_bar, eigen{2});
        });
    }
    MESSAGE("schedules differ by " << worst_value << "; implicit - differences: " << worst_implicit
                                   << "; implicit - unrolled: " << worst_unrolled);
}

}  // namespace fprnn::testing
