// Layers of float on a GPU, against those on the host and by their laws.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "laws_check.hpp"
#include "layer_expressions_check.hpp"

namespace layers {

TEST_CASE("cuda layer: FP-RNN of float is equivalent to the CPU's, there and back, whatever schedule and adjoint") {
    check_all<float>(fprnn::models::fp_rnn<1>(), {5, 3, 4});
}
TEST_CASE("cuda layer: FP-Mamba of float is equivalent to the CPU's, there and back, whatever schedule and adjoint") {
    check_all<float>(fprnn::models::fp_mamba<2>(), {5, 3, 4});
}
TEST_CASE("cuda layer: a chain behind a scan whose step, b and c see x alone is in the adjoint's iterations, too") {
    check_equivalent<float>(gated_scan_of_mixed(), {.length = 2, .tolerance = tolerance<float>, .ell_max = 200},
                            fprnn::implicit{.tolerance = adjoint_tolerance<float>}, {2, 3, 4});
}
TEST_CASE("cuda layer: a scan of float whose time is cut into chunks is equivalent to the CPU's") {
    using namespace fprnn::symbols;
    check_equivalent<float>(scan(sigmoid(affine<"lambda">(in)), linear<"u">(in)), {}, fprnn::implicit{}, {2, 700, 4});
}
TEST_CASE("cuda laws: schedules of float reach one fixed point, and one gradient") {
    laws::check_schedules<float>(fprnn::models::fp_rnn<1>());
}
TEST_CASE("cuda laws: calls of float that go on from each other give what one call does") {
    laws::check_streaming<float>(fprnn::models::fp_rnn<1>());
}

}  // namespace layers
