#include <doctest/doctest.h>

#include <fixed_point/tools.hpp>

/// Layers whose iterate enters in one place alone. The models use every place at once, which hides what one
/// of them lacks.
namespace {

using namespace fprnn::testing;
using namespace fprnn::symbols;
using fprnn::chunked;
using fprnn::implicit;
using fprnn::index;
using fprnn::tensor;
using fprnn::unrolled;

constexpr auto s = cat(in, shift(prev));

/// Values of all schedules agree, the implicit gradient is that of central differences, and so is the
/// unrolled one.
template <class Root>
void check_schedules_and_gradients(Root root) {
    const index T = 5;
    fprnn::layer l(root, chunked{.length = 1, .tolerance = 1e-14, .ell_max = 2000},
                   implicit{.tolerance = 1e-13, .ell_max = 2000});
    auto theta = fprnn::init<double>(l, {.d_in = 4, .d_inner = 5, .d_state = 3});
    shake(theta, 0.3);
    auto x = normal({2, T, 4}, 1);
    const auto sequential = l(theta, x);
    REQUIRE(sequential.all_converged());
    const auto y_bar = normal(sequential.value.shape(), 2);
    const auto expected = by_differences(theta, x, y_bar, [&] { return l(theta, x).value; });
    for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
        CAPTURE(C);
        l.schedule.length = C;
        l.adjoint = implicit{.tolerance = 1e-13, .ell_max = 2000};
        const auto exact = differentiate(l, theta, x, y_bar);
        REQUIRE(exact.sol.all_converged());
        REQUIRE(exact.adjoint.all_converged());
        CHECK(distance(exact.sol.value, sequential.value) <= 1e-11 * largest(sequential.value));
        CHECK(distance(exact.sol.carry, sequential.carry) <= 1e-11 * largest(sequential.carry));
        const auto error = compare(exact, expected);
        CAPTURE(error.where);
        CHECK(error.worst <= 1e-7);
        l.adjoint = unrolled{};
        const auto through_all = compare(differentiate(l, theta, x, y_bar), exact);
        CAPTURE(through_all.where);
        CHECK(through_all.worst <= 1e-9);
    }
}

TEST_CASE("layer: a selective scan may see the iterate through b and c alone") {
    check_schedules_and_gradients(fprnn::fixed_point(
        fprnn::selective_scan<"ssm">(softplus(fprnn::affine<"delta">(in)), fprnn::linear<"b", fprnn::d_state>(s),
                                     fprnn::linear<"c", fprnn::d_state>(s), fprnn::linear<"x">(in))));
}

TEST_CASE("layer: a scan may see the previous token's iterate through lambda alone") {
    check_schedules_and_gradients(
        fprnn::fixed_point(scan(sigmoid(fprnn::linear<"lambda">(s)), fprnn::linear<"B">(in))));
}

TEST_CASE("layer: a scan may see its own iterate through lambda alone") {
    check_schedules_and_gradients(fprnn::fixed_point(
        scan(fprnn::constant<1, 2>() * sigmoid(fprnn::linear<"lambda">(prev)), fprnn::linear<"B">(in))));
}

TEST_CASE("layer: a linear map may read the fixed point directly") {
    const auto y = fprnn::fixed_point(
        scan(sigmoid(fprnn::linear<"lambda">(s)), fprnn::constant<1, 2>() * tanh(fprnn::linear<"B">(cat(in, prev)))));
    check_schedules_and_gradients(fprnn::linear<"out">(cat(y, in)));
}

TEST_CASE("layer: a linear map may have the same part twice") {
    const auto before = shift(prev);
    const auto twice = fprnn::linear<"B">(cat(before, in, before, prev, prev));
    check_schedules_and_gradients(fprnn::fixed_point(
        scan(sigmoid(fprnn::linear<"lambda">(cat(before, before))), fprnn::constant<1, 4>() * tanh(twice))));
}

}  // namespace
