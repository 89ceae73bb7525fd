#pragma once

#include "fixed_point/tools.hpp"

#include <doctest/doctest.h>

/// The paper's tab. h_t-1: λ (through Δ), Q, b and c each see x alone or y_{t−1} as well, made by writing
/// `in` or `cat(in, shift(prev))`.
namespace fprnn::testing {

template <bool Sees>
constexpr auto source() {
    using namespace symbols;
    if constexpr (Sees)
        return cat(in, shift(prev));
    else
        return in;
}

template <bool Lambda, bool Q, bool B, bool C>
void check_combination() {
    CAPTURE(Lambda);
    CAPTURE(Q);
    CAPTURE(B);
    CAPTURE(C);
    using namespace symbols;
    const auto depends = [](bool sees) { return sees ? dependence::shifted : dependence::input; };
    auto mixer = householder<2, "Q">(source<Q>());
    auto delta = softplus(affine<"delta">(source<Lambda>()));
    auto b = normalise(linear<"b", d_state>(source<B>()));
    auto c = normalise(linear<"c", d_state>(source<C>()));
    auto x_tilde = mixer * linear<"x">(in) + (I - mixer) * prev;
    auto y = layer_norm<"y_norm">(selective_scan<"ssm">(delta, b, c, x_tilde) + parameter<"D">() * x_tilde);
    static_assert(decltype(delta)::depends == (Lambda ? dependence::shifted : dependence::input));
    static_assert(prepared_node<decltype(mixer)>::depends == (Q ? dependence::shifted : dependence::input));
    CHECK(decltype(b)::depends == depends(B));
    CHECK(decltype(c)::depends == depends(C));
    static_assert(decltype(x_tilde)::depends == dependence::current && decltype(y)::depends == dependence::current);

    layer l(fixed_point(y), chunked{.length = 1, .tolerance = 1e-13, .ell_max = 3000},
            implicit{.tolerance = 1e-13, .ell_max = 3000});
    const dims size{.d_in = 3, .d_inner = 5, .d_state = 2};
    auto theta = init<double>(l, size, seed{2});
    shake(theta, 0.1);
    for (double& w : theta["y_norm.weight"]) w *= 0.2;  // contracts: one fixed point
    const auto width = [](bool sees) { return sees ? index{8} : index{3}; };
    CHECK(theta["Q.u"].shape() == shape{10, width(Q)});
    CHECK(theta["Q.alpha"].shape() == shape{2, width(Q)});
    CHECK(theta["delta"].shape() == shape{5, width(Lambda)});
    CHECK(theta["b"].shape() == shape{2, width(B)});
    CHECK(theta["c"].shape() == shape{2, width(C)});

    auto x = normal({2, 4, 3}, 1);
    const auto y_bar = normal({2, 4, 5}, 2);
    const auto value = [&] { return l(theta, x).value; };
    const auto got = differentiate(l, theta, x, y_bar);
    CHECK(got.sol.all_converged());
    const index iterated = 2 * Q + Lambda + B + C;
    CHECK(got.sol.work.matrix_products == iterated * 4);
    CHECK(got.sol.work.hoisted_products == 6);  // x, Q.u, Q.alpha, delta, b, c

    // The first, the last and a middle entry of every parameter, whose columns may see either half.
    double worst = 0;
    for (const auto& p : theta.entries()) {
        CAPTURE(p.name);
        const index n = p.shape.count();
        const double scale = largest(view<const double>(got.theta_bar.data() + p.offset, p.shape));
        CHECK(scale > 0);
        for (const index i : {index{0}, n / 2, n - 1}) {
            const double expected = slope(value, y_bar, theta.data()[p.offset + i], 1e-4);
            worst = larger(worst, std::abs(got.theta_bar.data()[p.offset + i] - expected) / scale);
        }
    }
    for (const index i : {index{0}, index{7}, x.size() - 1})
        worst = larger(worst, std::abs(got.x_bar[i] - slope(value, y_bar, x[i], 1e-4)) / largest(got.x_bar));
    CHECK(worst <= 1e-7);

    l.schedule.length = whole_sequence;
    const auto parallel = differentiate(l, theta, x, y_bar);
    CHECK(distance(parallel.sol.value, got.sol.value) <= 1e-10 * largest(got.sol.value));
    CHECK(compare(parallel, got).worst <= 1e-9);
    MESSAGE("gradient - differences: " << worst << ", parallel - sequential: " << compare(parallel, got).worst);
}

}  // namespace fprnn::testing
