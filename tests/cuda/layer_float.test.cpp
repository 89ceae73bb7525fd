// Where CUDA's headers are: layers of float on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"

namespace {

TEST_CASE("cuda layer: FP-RNN of float is equivalent to the CPU's, there and back, whatever schedule and adjoint") {
    const host::guarded_devices gpu;
    layers::check_all<float>(fprnn::models::fp_rnn<1>(), {5, 3, 4});
}
TEST_CASE("cuda layer: FP-Mamba of float is equivalent to the CPU's, there and back, whatever schedule and adjoint") {
    const host::guarded_devices gpu;
    layers::check_all<float>(fprnn::models::fp_mamba<2>(), {5, 3, 4});
}
TEST_CASE("cuda layer: a scan of float whose time is cut into chunks is equivalent to the CPU's") {
    using namespace fprnn::symbols;
    const host::guarded_devices gpu;
    layers::check_equivalent<float>(scan(sigmoid(affine<"lambda">(in)), linear<"u">(in)), {}, fprnn::implicit{},
                                    {2, 700, 4});
}

}  // namespace

#endif
