// Where CUDA's headers are: iterations of many tokens that are started as graphs, over a runtime and kernels of the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"

#include <ops/checks.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace {

using fprnn::index;
namespace cuda = fprnn::cuda;

TEST_CASE("cuda graph: what is written down happens when it is started, as often as it is, in memory of its own") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {3});
    x.clear();
    {
        const cuda::detail::graph add_two(gpu, [&] {
            auto two = cuda::tensor<double>(gpu, {3});
            gpu.fill(3, two.data(), 2.0);
            gpu.row<double>(fprnn::body::add<double>{3, two.data(), x.data()});
        });
        CHECK(cuda::copy_to_host(x)[1] == 0);
        add_two.start();
        add_two.start();
    }
    CHECK(cuda::copy_to_host(x)[1] == 4);
}

TEST_CASE("cuda graph: what is thrown while it is written down comes out, and the stream goes on") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {3});
    x.clear();
    CHECK_THROWS_WITH_AS(cuda::detail::graph(gpu, [&] { throw std::runtime_error("so it is"); }), "so it is",
                         std::runtime_error);
    // The host cannot wait for what does not happen yet.
    CHECK_THROWS_WITH_AS(cuda::detail::graph(gpu, [&] { (void)gpu.any(3, std::as_const(x).data()); }),
                         "cudaStreamSynchronize(GPU 0): its words (itsName)", cuda::error);
    gpu.fill(3, x.data(), 1.0);
    CHECK(cuda::copy_to_host(x)[2] == 1);
}

/// A layer in chunks of three tokens, the last of two.
struct solved {
    fprnn::layer<decltype(fprnn::models::fp_mamba<2>())> layer{fprnn::models::fp_mamba<2>(),
                                                               {.length = 3, .tolerance = 1e-12, .ell_max = 200},
                                                               fprnn::implicit{.tolerance = 1e-12}};
    fprnn::dims size{.d_in = 4, .d_inner = 6, .d_state = 3};
    fprnn::layer_parameters<double> theta = fprnn::init<double>(layer, size, fprnn::seed{4});

    layers::outcome on(const cuda::device_options& options) const {
        return layers::differentiate(layer, theta, gpu::random<double>({5, 8, 4}, 1),
                                     gpu::random<double>({5, layer.carry_width(size)}, 2, 0.3),
                                     gpu::random<double>({5, 8, 4}, 3), cuda::device(0, options));
    }
};

TEST_CASE("cuda graph: iterations that the host does not look at change nothing, and there are few that it does") {
    const host::guarded_devices guard;
    const solved problem;
    const auto count = [&](bool graphs, int& looks, int& calls) {
        fake::state.calls_of.clear();
        const int before = host::launches;
        auto out = problem.on({.graphs = graphs});
        looks = fake::state.calls_of["cudaStreamSynchronize"];
        calls = host::launches - before;
        for (const char* name :
             {"cudaGraphLaunch", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
              "cublasDgemm", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaMallocFromPoolAsync"})
            calls += fake::state.calls_of[name];
        return out;
    };
    int looks, calls, all_looks, all_calls;
    const auto got = count(true, looks, calls), expected = count(false, all_looks, all_calls);
    CHECK(checks::same_bits(got.value, expected.value));
    CHECK(checks::same_bits(got.carry, expected.carry));
    CHECK(checks::same_bits(got.x_bar, expected.x_bar));
    CHECK(checks::same_bits(got.theta_bar, expected.theta_bar));
    CHECK(got.forward.iterations == expected.forward.iterations);
    CHECK(got.forward.residual == expected.forward.residual);
    CHECK(got.back.iterations == expected.back.iterations);
    MESSAGE("looks of the host ", looks, " instead of ", all_looks, ", calls ", calls, " instead of ", all_calls);
    CHECK(looks < all_looks / 2);
    CHECK(calls < all_calls / 4);
}

TEST_CASE("cuda graph: whichever call fails, its name is in the error, and the device has its memory back") {
    const fprnn::layer layer(fprnn::models::fp_rnn<1>(), fprnn::parallel({.tolerance = 1e-12, .ell_max = 9}),
                             fprnn::implicit{.tolerance = 1e-12, .ell_max = 9});
    const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const auto x = gpu::random<double>({1, 2, 2}, 1), y_bar = gpu::random<double>({1, 2, 2}, 2);
    const auto use = [&] { layers::differentiate(layer, theta, x, fprnn::tensor<double>(), y_bar, cuda::device()); };
    fake::state = {};
    use();
    CHECK(fake::state.calls_of["cudaGraphLaunch"] > 2);
    CHECK(host::check_failures(use) > 100);
}

}  // namespace

#endif
