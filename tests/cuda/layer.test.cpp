// Where CUDA's headers are: layers on cuda::device, whose memory is out of the host's reach and whose kernels
// run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"

#include <string>
#include <utility>
#include <vector>

namespace {

using fprnn::tensor;
using layers::adjoint;
using layers::check_all;
using layers::check_equivalent;
using layers::chunked;
using layers::index;
using layers::most;
using layers::shape;
namespace cuda = fprnn::cuda;

static_assert(fprnn::backend_for<cuda::device, float> && fprnn::backend_for<cuda::device, double>);

TEST_CASE("cuda layer: FP-RNN is equivalent to the CPU's, there and back, whatever schedule and adjoint") {
    const host::guarded_devices gpu;
    check_all(fprnn::models::fp_rnn<2>(), {5, 3, 4});
}
TEST_CASE("cuda layer: FP-Mamba is equivalent to the CPU's, there and back, whatever schedule and adjoint") {
    const host::guarded_devices gpu;
    check_all(fprnn::models::fp_mamba<2>(), {5, 3, 4});
}
TEST_CASE("cuda layer: Mamba, which has no iterations, is equivalent to the CPU's") {
    const host::guarded_devices gpu;
    check_equivalent(fprnn::models::mamba(), {}, fprnn::implicit{}, {3, 20, 4});
}
TEST_CASE("cuda layer: a token that its own iterate does not enter has converged after one evaluation") {
    const host::guarded_devices gpu;
    using namespace fprnn::symbols;
    const auto f = fixed_point(tanh(linear<"B">(in) + linear<"A">(shift(prev))));
    const fprnn::layer layer(f, fprnn::method{.schedule = {.length = 1}, .stop = fprnn::iterations{5}});
    const auto theta = fprnn::init<double>(layer, {.d_in = 3, .d_inner = 4}, fprnn::seed{4});
    const auto x = gpu::random<double>({2, 7, 3}, 1), y_bar = gpu::random<double>({2, 7, 4}, 2);
    const auto carry = gpu::random<double>({2, layer.carry_width({.d_in = 3, .d_inner = 4})}, 3);
    const auto got = layers::differentiate(layer, theta, x, carry, y_bar, cuda::device());
    CHECK(got.forward.status == std::vector<fprnn::status>(2, fprnn::status::converged));
    CHECK(got.forward.iterations == std::vector<int>(2, 1));
    CHECK(got.forward.tokens_converged == std::vector<index>(2, 7));
}
TEST_CASE("cuda layer: a selective scan is the kernel of its own, unless a thread has no registers for its states") {
    const host::guarded_devices gpu;
    const auto count = [](const auto& expression, const chunked& schedule, index states) {
        host::selective_scans = host::selective_scans_back = 0;
        check_equivalent(expression, schedule, fprnn::implicit{.ell_max = 9}, {3, 5, 4}, 6, states);
        return std::pair{host::selective_scans, host::selective_scans_back};
    };
    const chunked whole = fprnn::parallel({.tolerance = 1e-14, .ell_max = 9});
    // b and c see y_{t−1}, so that the adjoint's iterations go through everything, and once more in the end.
    const auto fp_mamba = fprnn::models::fp_mamba<1>();
    CHECK(count(fp_mamba, whole, 3) == std::pair{9, 9 + 1});
    CHECK(count(fp_mamba, whole, 17) == std::pair{9, 0});
    CHECK(count(fp_mamba, whole, 33) == std::pair{0, 0});
    CHECK(count(fp_mamba, {.length = 1}, 3) == std::pair{0, 0});  // a token is opened

    using namespace fprnn::symbols;
    const auto b = linear<"b", fprnn::d_state>(in);
    const auto c = linear<"c", fprnn::d_state>(in);
    const auto Q = fprnn::householder<1, "Q">(cat(in, shift(prev)));
    const auto mixed = Q * linear<"x">(in) + (I - Q) * prev;
    const auto of_input =
        fixed_point(layer_norm<"norm">(selective_scan<"ssm">(softplus(affine<"delta">(in)), b, c, mixed)));
    CHECK(count(of_input, whole, 3) == std::pair{9 + 9, 1});
}
TEST_CASE("cuda layer: time is cut into chunks where channels are few, and tokens are not") {
    const host::guarded_devices gpu;
    const auto count = [](const auto& expression, const chunked& schedule, index tokens, index sequences = 3) {
        host::scans = 0;
        // Compositions of maps round otherwise than token after token.
        check_equivalent(expression, schedule, fprnn::implicit{.ell_max = 9}, {sequences, tokens, 4}, 6, 3, 1e-12);
        return host::scans;
    };
    using namespace fprnn::symbols;
    const auto diagonal = scan(sigmoid(affine<"lambda">(in)), linear<"u">(in));
    CHECK(count(diagonal, {}, 70) == 2);
    CHECK(count(diagonal, {}, 63) == 0);
    const chunked whole = fprnn::parallel({.tolerance = 1e-14, .ell_max = 9});
    CHECK(count(fprnn::models::fp_rnn<2>(), whole, 64) == 9 + 9 + 1);
    CHECK(count(fprnn::models::fp_rnn<2>(), {.length = 4}, 64) == 0);
    CHECK(count(diagonal, {}, 64, 400) == 0);  // the tests' device has a multiprocessor, and room for 2,048 threads
}
TEST_CASE(
    "cuda layer: rows and channels are executed by several threads at a time, which share nothing but what they say") {
    const host::guarded_devices gpu;
    host::threads = {.of_row = 2, .rows = 2, .of_grid = 2};
    const chunked token{.length = 1, .tolerance = 1e-4, .ell_max = 5},
        two{.length = 2, .tolerance = 1e-4, .ell_max = 5};
    // 1.4e-14 apart: sums over more sequences, whose last products round once on the host.
    check_equivalent(fprnn::models::fp_mamba<2>(), token, fprnn::implicit{}, {17, 2, 4}, 7, 3, 5e-14);
    check_equivalent(fprnn::models::fp_mamba<2>(), two, fprnn::implicit{.ell_max = 4}, {3, 3, 4});
    check_equivalent(fprnn::models::fp_rnn<2>(), token, fprnn::implicit{}, {3, 2, 4});
    // The adjoint's blocks of 16 tokens, and what other adjoints ask for.
    check_equivalent(fprnn::models::mamba(), {}, fprnn::implicit{}, {2, 20, 4});
    check_equivalent(fprnn::models::fp_mamba<2>(), two, fprnn::one_step{}, {2, 3, 4});
    check_equivalent(fprnn::models::fp_rnn<2>(), two, fprnn::unrolled{}, {2, 3, 4});
    // Neither channels nor rows are as many for each thread and team.
    host::threads = {.of_row = 5, .rows = 3, .of_grid = 3};
    check_equivalent(fprnn::models::fp_mamba<2>(), token, fprnn::implicit{}, {5, 2, 4}, 6);
    check_equivalent(fprnn::models::fp_rnn<2>(), two, fprnn::implicit{.ell_max = 4}, {2, 2, 4}, 6);
    check_equivalent(fprnn::models::mamba(), {}, fprnn::implicit{}, {2, 5, 4}, 6);
}
TEST_CASE("cuda layer: a single token, a single sequence, more rows than workers, and none") {
    const host::guarded_devices gpu;
    for (const shape& s : {shape{1, 1, 4}, shape{1, 4, 4}, shape{19, 1, 4}, shape{0, 3, 4}, shape{3, 0, 4}})
        check_equivalent(fprnn::models::fp_rnn<2>(), {.length = 1, .tolerance = 1e-12, .ell_max = 200},
                         fprnn::implicit{.tolerance = 1e-13}, s);
}

/// The user's call, and generation token by token.
TEST_CASE("cuda layer: a layer runs where its parameters and its input are, and goes on from its carry") {
    const host::guarded_devices guard;
    const fprnn::layer layer(fprnn::models::fp_rnn<2>(), {.length = 1, .tolerance = 1e-12, .ell_max = 200});
    const auto theta = fprnn::init<double>(layer, {.d_in = 4, .d_inner = 6}, fprnn::seed{4});
    const auto x = gpu::random<double>({2, 1, 4}, 1), next = gpu::random<double>({2, 1, 4}, 2);
    const auto expected = layer(theta, x), then = layer(theta, next, expected.carry);

    const cuda::device gpu;
    const auto parameters = gpu.copy(theta);
    const auto got = layer(parameters, gpu.copy(x), gpu);
    const auto later = layer(parameters, gpu.copy(next), got.carry, gpu);
    CHECK(gpu::distance(cuda::copy_to_host(got.value), expected.value) <= layers::most);
    CHECK(gpu::distance(cuda::copy_to_host(later.value), then.value) <= layers::most);
    CHECK(gpu::distance(cuda::copy_to_host(later.carry), then.carry) <= layers::most);
}

TEST_CASE("cuda device: products are shortened to TF32 where that is asked for, and nowhere else") {
    const host::guarded_devices guard;
    const auto multiply = [&](const cuda::device& gpu) {
        const auto x = gpu.copy(fprnn::tensor<float>({1, 1}, {2}));
        cuda::tensor<float> y(gpu, {1, 1});
        gpu.multiply(fprnn::matrix<float>{y.data(), 1, 1, 1}, fprnn::matrix<const float>{x.data(), 1, 1, 1},
                     fprnn::matrix<const float>{x.data(), 1, 1, 1}, true);
        CHECK(cuda::copy_to_host(y)[0] == 4);
    };
    multiply(cuda::device());
    CHECK(fake::math == CUBLAS_DEFAULT_MATH);
    multiply(cuda::device(0, {.tf32 = true}));
    CHECK(fake::math == CUBLAS_TF32_TENSOR_OP_MATH);
}

TEST_CASE("cuda layer: the host's tensors go there and the results come back, whoever names the device") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    const fprnn::layer layer(fprnn::models::fp_rnn<1>());
    const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const auto x = gpu::random<double>({2, 5, 2}, 1);
    const auto expected = layer(theta, x), got = layer(theta, x, gpu);
    CHECK(gpu::distance(got.value, expected.value) <= most);
    CHECK(gpu::distance(got.carry, expected.carry) <= most);
    CHECK(got.status == expected.status);
    CHECK(got.iterations == expected.iterations);
    CHECK(got.work.evaluations > 0);
    const auto next = layer(theta, x, expected.carry), there = layer(theta, x, got.carry, gpu);
    CHECK(gpu::distance(there.value, next.value) <= most);
    CHECK(gpu::distance(layer(theta, x.view(), got.carry.view(), gpu).value, next.value) <= most);
    CHECK(layer(theta, tensor<double>({0, 5, 2}), gpu).value.shape() == shape{0, 5, 2});
    CHECK_THROWS_WITH_AS((void)layer(theta, tensor<double>({2, 5, 3}), gpu), "layer: x must be [B,T,2], got [2,5,3]",
                         fprnn::argument_error);
}

TEST_CASE("cuda layer: what lies on another device is refused, and named") {
    const host::guarded_devices guard;
    const fprnn::layer layer(fprnn::models::fp_rnn<1>());
    const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const cuda::device gpu(0), other(1);
    const auto x = gpu::random<double>({1, 1, 2}, 1);
    CHECK_THROWS_WITH_AS(layer(gpu.copy(theta), other.copy(x), gpu), "layer: x is on GPU 1 but the call names GPU 0",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(layer(other.copy(theta), gpu.copy(x), gpu),
                         "layer: theta is on GPU 1 but the call names GPU 0", fprnn::argument_error);
    CHECK(layer(gpu.copy(theta), gpu.copy(x), gpu).all_converged());
}

TEST_CASE("cuda layer: whichever call fails, its name is in the error, and the device has its memory back") {
    const fprnn::layer layer(fprnn::models::fp_rnn<1>(), {.length = 1, .tolerance = 1e-3, .ell_max = 2});
    const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const auto x = gpu::random<double>({1, 1, 2}, 1), y_bar = gpu::random<double>({1, 1, 2}, 2);
    const auto use = [&] { layers::differentiate(layer, theta, x, fprnn::tensor<double>(), y_bar, cuda::device()); };
    CHECK(host::check_failures(use) > 200);
}

}  // namespace

#endif
