#include "fixed_point/tools.hpp"

#include <doctest/doctest.h>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::dims;
using fprnn::layer;
using fprnn::layer_parameters;
using fprnn::one_step;
using fprnn::parameter_tree;
using fprnn::tensor;

/// FP-RNN as a function of the iterate, so that something else may stand in its place.
auto rnn = [](auto y, auto y_before) {
    using namespace fprnn::symbols;
    auto s = cat(in, y_before);
    auto Q = fprnn::householder<2, "Q">(s);
    auto lambda = sigmoid(fprnn::affine<"lambda">(s));
    return scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * y));
};
/// FP-Mamba in the same way; b and c see y_{t−1}, Δ sees x alone.
auto mamba = [](auto y, auto y_before) {
    using namespace fprnn::symbols;
    auto s = cat(in, y_before);
    auto Q = fprnn::householder<2, "Q">(s);
    auto delta = softplus(fprnn::affine<"delta">(in));
    auto b = normalise(fprnn::linear<"b", fprnn::d_state>(s));
    auto c = normalise(fprnn::linear<"c", fprnn::d_state>(s));
    auto x_tilde = Q * fprnn::linear<"x">(in) + (I - Q) * y;
    return fprnn::layer_norm<"y_norm">(fprnn::selective_scan<"ssm">(delta, b, c, x_tilde) +
                                       fprnn::parameter<"D">() * x_tilde);
};

/// Parameters of the equation whose input is [x, y]: maps of x get columns of zeros for y, and "iterate" picks y.
void widen(const parameter_tree<double>& from, const dims& size, parameter_tree<double>& to) {
    for (const auto& p : from.entries()) {
        const auto source = from[p.name];
        const auto target = to[p.name];
        if (source.shape() == target.shape()) {
            std::copy(source.begin(), source.end(), target.begin());
            continue;
        }
        REQUIRE(target.shape()[1] == source.shape()[1] + size.d_inner);
        for (fprnn::index i = 0; i < source.shape()[0]; ++i)
            for (fprnn::index j = 0; j < target.shape()[1]; ++j) {
                const bool is_y = j >= size.d_in && j < size.d_in + size.d_inner;
                target(i, j) = is_y ? 0.0 : source(i, j < size.d_in ? j : j - size.d_inner);
            }
    }
    const auto iterate = to["iterate"];
    for (fprnn::index i = 0; i < size.d_inner; ++i)
        for (fprnn::index j = 0; j < iterate.shape()[1]; ++j) iterate(i, j) = j == size.d_in + i ? 1.0 : 0.0;
}

template <class Equation>
void check(Equation equation, const dims& size) {
    using namespace fprnn::symbols;
    const fprnn::index B = 2, T = 6;
    auto live = fixed_point(equation(prev, shift(prev)));
    auto y = fprnn::linear<"iterate">(in);
    layer frozen(equation(y, shift(y)));

    layer solver(live, chunked{.length = 1, .tolerance = 1e-13, .ell_max = 1000}, one_step{});
    auto theta = fprnn::init<double>(solver, size, fprnn::seed{2});
    shake(theta, 0.1);
    auto x = normal({B, T, size.d_in}, 1);
    const auto y_bar = normal({B, T, size.d_inner}, 2);
    const auto solved = solver(theta, x);
    REQUIRE(solved.all_converged());

    const dims wide{size.d_in + size.d_inner, size.d_inner, size.d_state};
    auto wide_theta = fprnn::init<double>(frozen, wide);
    const auto f = [&] {
        widen(theta, size, wide_theta);
        tensor<double> both({B, T, wide.d_in});
        for (fprnn::index i = 0; i < B * T; ++i) {
            std::copy_n(x.data() + i * size.d_in, size.d_in, both.data() + i * wide.d_in);
            std::copy_n(solved.value.data() + i * size.d_inner, size.d_inner, both.data() + i * wide.d_in + size.d_in);
        }
        return frozen(wide_theta, both).value;
    };
    REQUIRE(distance(f(), solved.value) <= 1e-12 * largest(solved.value));
    const differences expected = by_differences(theta, x, y_bar, f);

    double worst = 0, between = 0;
    const auto of_sequential = differentiate(solver, theta, x, y_bar);
    for (const fprnn::index C : {fprnn::index{1}, fprnn::index{2}, fprnn::index{5}, fprnn::whole_sequence}) {
        CAPTURE(C);
        solver.schedule.length = C;
        const auto got = differentiate(solver, theta, x, y_bar);
        const auto e = compare(got, expected);
        CAPTURE(e.where);
        CHECK(e.worst <= 1e-7);
        CHECK(compare(got, of_sequential).worst <= 1e-10);
        worst = std::max(worst, e.worst);
        between = std::max(between, compare(got, of_sequential).worst);
    }
    solver.adjoint = fprnn::implicit{.tolerance = 1e-13, .ell_max = 1000};
    CHECK(compare(differentiate(solver, theta, x, y_bar), expected).worst > 1e-3);  // the test can tell them apart
    MESSAGE("one_step - differences: " << worst << "; between schedules: " << between);
}

TEST_CASE("one_step: it is the vjp of one application of f with y* held, for every schedule, FP-RNN") {
    check(rnn, {.d_in = 4, .d_inner = 5});
}

TEST_CASE("one_step: it is the vjp of one application of f with y* held, for every schedule, FP-Mamba") {
    check(mamba, {.d_in = 4, .d_inner = 5, .d_state = 3});
}

}  // namespace
