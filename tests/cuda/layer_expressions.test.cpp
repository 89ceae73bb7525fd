// Where CUDA's headers are: expressions that the models do not have, on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"

#include <fprnn/models/lstm.hpp>

namespace {

using layers::adjoint;
using layers::chunked;
using layers::index;
using namespace fprnn::symbols;

/// With two threads a row and two rows at a time. Where a CPU has GMRES a GPU repeats: the adjoint is as near as its tolerance.
template <class Expression>
void check(Expression expression, double most) {
    const host::guarded_devices guard;
    host::threads = {.of_row = 2, .rows = 2, .of_grid = 2};
    const adjoint exact = fprnn::implicit{.tolerance = 1e-14};
    for (const index C : {index(1), index(2)})
        layers::check_equivalent(expression, {.length = C, .tolerance = 1e-13, .ell_max = 300}, exact, {5, 3, 4}, 6, 3,
                                 most);
    // Sequences that are done at other times, and one that is not.
    layers::check_equivalent(expression, {.length = 1, .tolerance = 1e-3, .ell_max = 6}, fprnn::one_step{}, {5, 3, 4},
                             6, 3, 1e-14);
}

TEST_CASE("cuda layer: a token without R numbers is iterated row by row, there and back") {
    const auto s = cat(in, shift(prev));
    check(fixed_point(tanh(affine<"A">(s) + sigmoid(affine<"gate">(in)) * prev)), 1e-12);
}
TEST_CASE("cuda layer: a mixer under a function, a scan and a norm are iterated through the function") {
    const auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    const auto lambda = sigmoid(affine<"lambda">(in));
    check(fixed_point(layer_norm<"norm">(scan(lambda, tanh(Q * linear<"B">(in) + (I - Q) * prev)))), 1e-12);
}
TEST_CASE("cuda layer: a product of the iterate comes between the rows' bodies") {
    check(fixed_point(tanh(affine<"B">(in) + fprnn::constant<1, 5>() * linear<"R">(prev) + linear<"S">(shift(prev)))),
          1e-12);
}
TEST_CASE("cuda layer: a map that never sees its own value needs no iteration") { check(fprnn::models::lstm(), 1e-13); }

}  // namespace

#endif
