// Where CUDA's headers are: expressions that the models do not have, on cuda::device, whose kernels run on
// the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_expressions_check.hpp"

#include <cmath>
#include <vector>

namespace {

using fprnn::index;

/// With two threads a row and two rows at a time.
template <class Expression>
void check(Expression expression, double apart, index d_inner = 7) {
    const host::guarded_devices guard;
    host::threads = {.of_row = 2, .rows = 2, .of_grid = 2};
    layers::check_expression(expression, apart, d_inner);
}

TEST_CASE("cuda layer: a token without R numbers is iterated row by row, there and back") {
    check(layers::without_reduced_numbers(), 1e-12);
}
TEST_CASE("cuda layer: a mixer under a function, a scan and a norm are iterated through the function") {
    check(layers::mixer_under_functions(), 1e-12);
}
TEST_CASE("cuda layer: the mixer of the tutorial is equivalent to the CPU's") {
    check(layers::mixer_of_the_tutorial(), 1e-12, 6);
}
TEST_CASE(
    "cuda layer: mixers of full rank, bounded, in blocks, and the same for all tokens are equivalent to the CPU's") {
    check(layers::mixers_of_every_kind(), 1e-12, 6);
}
TEST_CASE("cuda layer: a product of the iterate comes between the rows' bodies") {
    check(layers::product_of_iterate(), 1e-12);
}
TEST_CASE("cuda layer: a recurrence without a kernel of its own is one of rows") {
    check(layers::delta_rule_of_iterate(), 1e-12, 6);
    check(layers::convolutions(), 1e-12, 6);
}
TEST_CASE("cuda layer: heads with a decay each are equivalent to the CPU's") {
    const host::guarded_devices guard;
    layers::check_heads();
}
TEST_CASE("cuda layer: a map that never sees its own value needs no iteration") { check(fprnn::models::lstm(), 1e-13); }

TEST_CASE("cuda layer: the adjoint of a token is solved, whether its iteration contracts or not") {
    const host::guarded_devices gpu;
    layers::check_expanding();
}
TEST_CASE("cuda layer: several threads and rows at a time solve for it") {
    const host::guarded_devices gpu;
    host::threads = {.of_row = 5, .rows = 3, .of_grid = 3};
    layers::check_equivalent(layers::expanding_mixer(), {.length = 1, .tolerance = 1e-12, .ell_max = 9},
                             fprnn::implicit{.tolerance = 1e-11, .ell_max = 40}, {4, 2, 4}, 6, 3, 1e-9);
}
TEST_CASE("cuda layer: damped iterations are those of the CPU, and what is the CPU's alone is refused") {
    const host::guarded_devices guard;
    const auto x = gpu::random<double>({5, 4, 4}, 1);
    for (const index C : {1, 2}) {
        const fprnn::method damped{.schedule = {.length = C},
                                   .solver = fprnn::damped{.start = 0.8, .decay = 0.5, .patience = 2},
                                   .stop = fprnn::residual{1e-9} || fprnn::iterations{60}};
        const fprnn::layer layer(layers::product_of_iterate(), damped);
        const auto theta = fprnn::init<double>(layer, {.d_in = 4, .d_inner = 6});
        const auto here = layer(theta, x), there = layer(theta, x, fprnn::cuda::device());
        CHECK(there.total_iterations == here.total_iterations);
        for (index i = 0; i < here.value.size(); ++i) CHECK(std::abs(here.value[i] - there.value[i]) < 1e-12);

        auto other = damped;
        other.solver = fprnn::anderson{};
        CHECK_THROWS_WITH_AS(fprnn::layer(layers::product_of_iterate(), other)(theta, x, fprnn::cuda::device()),
                             doctest::Contains("layer: solvers, stops and adjoints of one's own"),
                             fprnn::argument_error);
    }
    const fprnn::layer layer(layers::product_of_iterate());
    const std::vector<index> n{4, 3, 0, 4, 1};
    CHECK_THROWS_WITH_AS(layer(fprnn::init<double>(layer, {.d_in = 4, .d_inner = 6}), x, n, fprnn::tensor<double>(),
                               fprnn::cuda::device()),
                         "layer: sequences of unequal lengths are the CPU's; expected no lengths on a device",
                         fprnn::argument_error);
}
TEST_CASE("cuda layer: an operation by itself is a layer, with its adjoint") {
    using namespace fprnn::symbols;
    const host::guarded_devices guard;
    host::threads = {.of_row = 2, .rows = 2, .of_grid = 2};
    const auto check_operation = [](auto operation) {
        for (const index tokens : {1, 5})
            layers::check_equivalent(operation, {}, fprnn::implicit{}, {3, tokens, 4}, 6, 3, 1e-13);
    };
    check_operation(silu(in));
    check_operation(shift(in));
    check_operation(normalise(in));
    check_operation(affine<"W">(in));
}

}  // namespace

#endif
