// Where CUDA's headers are: sequences stored as bf16, on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "bf16_check.hpp"
#include "host_backend.hpp"

#include <fprnn/ops/selective_scan.hpp>

#include <cmath>
#include <cstdint>

namespace {

namespace cuda = fprnn::cuda;

TEST_CASE("cuda bf16: layers of sequences that are stored so are those of float, whatever schedule and adjoint") {
    const host::guarded_devices guard;
    bf16_layers::check_all();
}

TEST_CASE("cuda bf16: a model whose sequences are stored so has the gradient and the training of float") {
    const host::guarded_devices guard;
    bf16_layers::check_training();
}

TEST_CASE("cuda bf16: several threads and rows at a time share nothing of what is stored so") {
    const host::guarded_devices guard;
    host::threads = {.of_row = 5, .rows = 3, .of_grid = 3};
    const fprnn::chunked token{.length = 1, .tolerance = 1e-5, .ell_max = 200};
    bf16_layers::check_equivalent(fprnn::models::fp_mamba<1>(), token, fprnn::implicit{.tolerance = 1e-6}, {4, 2, 4});
    bf16_layers::check_gradient(5, 2, bf16_layers::rounding);
}

TEST_CASE("cuda bf16: what lies elsewhere or has another shape is named as ever") {
    const host::guarded_devices guard;
    const fprnn::layer layer(fprnn::models::fp_rnn<1>());
    const auto theta = fprnn::init<float>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const cuda::device gpu(0), other(1);
    const auto x = [](fprnn::index D) { return fprnn::tensor<cuda::bf16>({1, 1, D}); };
    CHECK_THROWS_WITH_AS(layer(gpu.copy(theta), other.copy(x(2)), gpu), "layer: x is on GPU 1 but the call names GPU 0",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(layer(gpu.copy(theta), gpu.copy(x(3)), gpu), "layer: x must be [B,T,2], got [1,1,3]",
                         fprnn::argument_error);
    CHECK(layer(gpu.copy(theta), gpu.copy(x(2)), gpu).all_converged());
    CHECK(layer(gpu.copy(theta), gpu.copy(fprnn::tensor<cuda::bf16>({0, 4, 2})), gpu).value.empty());
}

TEST_CASE("cuda bf16: the selective scan and its adjoint carry on in float what is stored so") {
    fake::state = {};
    const cuda::device gpu;
    using fprnn::index;
    constexpr index N = 4;
    const fprnn::shape s{2, 19, 11}, n{2, 19, N};
    const auto stored = [](const fprnn::shape& extents, std::uint64_t stream, double deviation) {
        return cuda::round_to_bf16(gpu::random<float>(extents, stream, deviation));
    };
    auto delta = stored(s, 1, 0.5);
    for (auto& x : delta) x = static_cast<cuda::bf16>(std::abs(static_cast<float>(x)));
    const auto u = stored(s, 2, 1), omega = stored({N, s[2]}, 3, 0.3), b = stored(n, 4, 1), c = stored(n, 5, 1),
               y_bar = stored(s, 6, 1);
    const auto wide = [](const auto& x) { return cuda::to_float(x); };
    const auto near = [](const cuda::tensor<cuda::bf16>& got, const fprnn::tensor<float>& expected) {
        return gpu::distance(cuda::to_float(cuda::copy_to_host(got)), expected) <= bf16_layers::rounding;
    };
    const auto expected = fprnn::selective_scan(wide(delta), wide(omega), wide(b), wide(c), wide(u));
    const auto got = cuda::selective_scan(gpu.copy(delta), gpu.copy(omega), gpu.copy(b), gpu.copy(c), gpu.copy(u));
    CHECK(near(got.y, expected.y));
    CHECK(near(got.H, expected.H));
    fprnn::selective_scan_cotangents<float> bars(s, N);
    fprnn::selective_scan_back(wide(delta), wide(omega), wide(b), wide(c), wide(u), {}, wide(y_bar), {}, bars);
    cuda::selective_scan_cotangents<cuda::bf16> into(gpu, s, N);
    cuda::selective_scan_back(gpu.copy(delta), gpu.copy(omega), gpu.copy(b), gpu.copy(c), gpu.copy(u), {},
                              gpu.copy(y_bar), {}, into);
    CHECK(near(into.delta, bars.delta));
    CHECK(near(into.omega, bars.omega));
    CHECK(near(into.b, bars.b));
    CHECK(near(into.c, bars.c));
    CHECK(near(into.u, bars.u));
    CHECK(near(into.H, bars.H));
}

}  // namespace

#endif
