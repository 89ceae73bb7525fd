// Expressions that the models do not have, on a GPU.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "layer_expressions_check.hpp"

namespace layers {

TEST_CASE("cuda layer: a token without R numbers is iterated row by row, there and back") {
    check_expression(without_reduced_numbers(), 1e-12);
}
TEST_CASE("cuda layer: a mixer under a function, a scan and a norm are iterated through the function") {
    check_expression(mixer_under_functions(), 1e-12);
}
TEST_CASE("cuda layer: the mixer of the tutorial is equivalent to the CPU's") {
    check_expression(mixer_of_the_tutorial(), 1e-12, 6);
}
TEST_CASE(
    "cuda layer: mixers of full rank, bounded, in blocks, and the same for all tokens are equivalent to the CPU's") {
    check_expression(mixers_of_every_kind(), 1e-12, 6);
}
TEST_CASE("cuda layer: a product of the iterate comes between the rows' bodies") {
    check_expression(product_of_iterate(), 1e-12);
}
TEST_CASE("cuda layer: a recurrence without a kernel of its own is one of rows") {
    check_expression(delta_rule_of_iterate(), 1e-12, 6);
    check_expression(convolutions(), 1e-12, 6);
    check_heads();
}
TEST_CASE("cuda layer: the adjoint of a token is solved, whether its iteration contracts or not") { check_expanding(); }
TEST_CASE("cuda layer: step, skip and gate of a selective scan are in its kernel") {
    for (const index tokens : {1, 20}) check_equivalent(gated_scan(), {.length = 1}, fprnn::implicit{}, {3, tokens, 4});
    check_equivalent(gated_scan_of_iterate(), {.length = 2, .tolerance = 1e-13, .ell_max = 300},
                     fprnn::implicit{.tolerance = 1e-14}, {5, 3, 4});
}
TEST_CASE("cuda layer: a map that never sees its own value needs no iteration") {
    check_expression(fprnn::models::lstm(), 1e-13);
}

}  // namespace layers
