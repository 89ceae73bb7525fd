// Where CUDA's headers are: sequences stored as bf16, on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "bf16_check.hpp"
#include "host_backend.hpp"

namespace {

namespace cuda = fprnn::cuda;

TEST_CASE("cuda bf16: layers of sequences that are stored so are those of float, whatever schedule and adjoint") {
    const host::guarded_devices guard;
    bf16_layers::check_all();
}

TEST_CASE("cuda bf16: what lies elsewhere or has another shape is named as ever") {
    const host::guarded_devices guard;
    const fprnn::layer layer(fprnn::models::fp_rnn<1>());
    const auto theta = fprnn::init<float>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const cuda::device gpu(0), other(1);
    const auto x = [](fprnn::index D) { return fprnn::tensor<cuda::bf16>({1, 1, D}); };
    CHECK_THROWS_WITH_AS(layer(gpu.copy(theta), other.copy(x(2)), gpu),
                         "layer: x is not on the device that the call names, GPU 0", fprnn::argument_error);
    CHECK_THROWS_WITH_AS(layer(gpu.copy(theta), gpu.copy(x(3)), gpu), "layer: x must be [B,T,2], got [1,1,3]",
                         fprnn::argument_error);
    CHECK(layer(gpu.copy(theta), gpu.copy(x(2)), gpu).all_converged());
    CHECK(layer(gpu.copy(theta), gpu.copy(fprnn::tensor<cuda::bf16>({0, 4, 2})), gpu).value.empty());
}

}  // namespace

#endif
