// Layers on a GPU against the same on the host.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "layer_check.hpp"

#include <cstdint>

// Not in an anonymous namespace, for the types of kernels must have names that nvcc can spell.
namespace layers {

TEST_CASE("layer: FP-RNN on a GPU is equivalent to the host's, there and back, whatever schedule and adjoint") {
    check_all(fprnn::models::fp_rnn<2>(), {5, 3, 4});
}
TEST_CASE("layer: FP-Mamba on a GPU is equivalent to the host's, there and back, whatever schedule and adjoint") {
    check_all(fprnn::models::fp_mamba<2>(), {5, 3, 4});
}
/// More sequences than the 24 workers of the interpreter's 3 multiprocessors, so that some rows have a
/// worker's scratch after another one, and scratch that two workers write into is raced for.
TEST_CASE("layer: tokens of some sequences, each of which goes through its programs by itself") {
    check_equivalent(fprnn::models::fp_mamba<2>(), {.length = 1, .tolerance = 1e-12, .ell_max = 200},
                     fprnn::implicit{.tolerance = 1e-13}, {27, 2, 4});
}
TEST_CASE("layer: many sequences, one long one, and more channels than a block has threads") {
    const chunked schedule{.length = 1, .tolerance = 1e-12, .ell_max = 200};
    const adjoint method = fprnn::implicit{.tolerance = 1e-13};
    check_equivalent(fprnn::models::fp_mamba<2>(), schedule, method, {600, 2, 4});
    check_equivalent(fprnn::models::fp_mamba<2>(), schedule, method, {1, 100, 4});
    check_equivalent(fprnn::models::fp_mamba<2>(), schedule, method, {3, 20, 4}, 300);
    check_equivalent(fprnn::models::fp_mamba<2>(), {.length = 20, .tolerance = 1e-12, .ell_max = 200}, method,
                     {3, 20, 4}, 300);
}

TEST_CASE("layer: kernels of their own that scan many tokens, there and back") {
    using namespace fprnn::symbols;
    const chunked whole = fprnn::parallel({.tolerance = 1e-12, .ell_max = 200});
    const adjoint method = fprnn::implicit{.tolerance = 1e-13};
    const auto lambda = sigmoid(affine<"lambda">(in));
    check_equivalent(scan(lambda, linear<"u">(in)), {}, method, {2, 700, 4});
    const auto b = linear<"b", fprnn::d_state>(in);
    const auto c = linear<"c", fprnn::d_state>(in);
    const auto Q = fprnn::householder<1, "Q">(in);
    const auto mixed = Q * linear<"x">(in) + (I - Q) * prev;
    check_equivalent(fixed_point(selective_scan<"ssm">(softplus(affine<"delta">(in)), b, c, mixed)), whole, method,
                     {3, 20, 4});
    check_equivalent(fixed_point(scan(lambda, (1 - lambda) * mixed)), whole, method, {2, 300, 4});
}

/// What graphs write down of cuBLAS and of memory the host's tests cannot show.
TEST_CASE("layer: graphs of iterations give the bits of calling them") {
    const fprnn::layer layer(fprnn::models::fp_mamba<2>(), {.length = 10, .tolerance = 1e-12, .ell_max = 200},
                             fprnn::implicit{.tolerance = 1e-12});
    const dims size{.d_in = 4, .d_inner = 6, .d_state = 3};
    const auto theta = fprnn::init<double>(layer, size, fprnn::seed{4});
    const auto use = [&](bool graphs) {
        return differentiate(layer, theta, gpu::random<double>({5, 24, 4}, 1),
                             gpu::random<double>({5, layer.carry_width(size)}, 2, 0.3),
                             gpu::random<double>({5, 24, 4}, 3), cuda::device(0, {.graphs = graphs}));
    };
    const auto got = use(true), expected = use(false);
    CHECK(gpu::distance(got.value, expected.value) == 0);
    CHECK(gpu::distance(got.theta_bar, expected.theta_bar) == 0);
    CHECK(got.forward.iterations == expected.forward.iterations);
}

/// From the second time on a pass of tokens one by one is a graph, in which the numbers of before are
/// replaced.
TEST_CASE("layer: a pass that is a graph gives the bits of calling it, each time with the numbers that it has then") {
    const fprnn::layer layer(fprnn::models::fp_mamba<2>(), {.length = 1, .tolerance = 1e-12, .ell_max = 200},
                             fprnn::implicit{.tolerance = 1e-12});
    const dims size{.d_in = 4, .d_inner = 6, .d_state = 3};
    const cuda::device graphs, plain(0, {.graphs = false});
    for (const std::uint64_t time : {1, 2, 3}) {
        CAPTURE(time);
        const auto theta = fprnn::init<double>(layer, size, fprnn::seed{time});
        const auto x = gpu::random<double>({5, 8, 4}, 3 * time), y_bar = gpu::random<double>({5, 8, 4}, 3 * time + 1);
        const auto carry = gpu::random<double>({5, layer.carry_width(size)}, 3 * time + 2, 0.3);
        const auto use = [&](const cuda::device& on) { return differentiate(layer, theta, x, carry, y_bar, on); };
        const auto got = use(graphs), expected = use(plain);
        CHECK(gpu::distance(got.value, expected.value) == 0);
        CHECK(gpu::distance(got.carry, expected.carry) == 0);
        CHECK(gpu::distance(got.x_bar, expected.x_bar) == 0);
        CHECK(gpu::distance(got.theta_bar, expected.theta_bar) == 0);
        CHECK(got.forward.iterations == expected.forward.iterations);
        CHECK(got.forward.residual == expected.forward.residual);
        CHECK(got.back.iterations == expected.back.iterations);
    }
}

/// Programs of rows take addresses of functions and parameters of kernels, which the host's tests cannot
/// show.
TEST_CASE("layer: programs of rows give the numbers of a kernel a body") {
    const fprnn::layer layer(fprnn::models::fp_mamba<2>(), {.length = 1, .tolerance = 1e-12, .ell_max = 200},
                             fprnn::implicit{.tolerance = 1e-13});
    const fprnn::dims size{.d_in = 4, .d_inner = 300, .d_state = 3};
    const auto theta = fprnn::init<double>(layer, size, fprnn::seed{4});
    const auto x = gpu::random<double>({600, 5, 4}, 1), y_bar = gpu::random<double>({600, 5, 4}, 3);
    const auto use = [&](bool programs) {
        return differentiate(layer, theta, x, tensor<double>({600, layer.carry_width(size)}), y_bar,
                             cuda::device(0, {.programs = programs, .graphs = false}));
    };
    const auto expected = use(false), got = use(true);
    CHECK(::gpu::distance(got.value, expected.value) <= most);
    CHECK(::gpu::distance(got.x_bar, expected.x_bar) <= most);
    CHECK(::gpu::distance(got.theta_bar, expected.theta_bar) <= most);
    CHECK(got.forward.status == expected.forward.status);
    CHECK(nearly(got.forward.iterations, expected.forward.iterations));
}

}  // namespace layers
