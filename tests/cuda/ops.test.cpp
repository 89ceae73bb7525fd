// Where CUDA's headers are: operations by themselves on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "ops_check.hpp"

#include <ops/checks.hpp>

#include <cstddef>
#include <limits>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

TEST_CASE_TEMPLATE("cuda ops: the same calls with a device for their backend have the host's results", T, float,
                   double) {
    const host::guarded_devices guard;
    host::threads = {.of_row = 2, .rows = 2, .of_grid = 3};
    ops::check_all<T>();
}

TEST_CASE("cuda ops: of empty sizes results are empty, or zero") {
    const host::guarded_devices guard;
    cuda::device gpu;
    for (const shape& s : {shape{0, 5, 3}, shape{2, 0, 3}, shape{2, 5, 0}}) {
        cuda::tensor<double> x(gpu, s), w(gpu, {s[2]}), W(gpu, {4, s[2]}), y(gpu, {s[0], s[1], 4});
        w.clear(), W.clear();
        CHECK(fprnn::silu(x, gpu).shape() == s);
        fprnn::silu_back(x, x, x, gpu);
        CHECK(fprnn::l2_normalise(x, gpu).shape() == s);
        fprnn::l2_normalise_back(x, x, x, gpu);
        CHECK(fprnn::layer_norm(x, w, w, gpu).shape() == s);
        fprnn::layer_norm_back(x, w, x, x, w, w, gpu);
        CHECK(fprnn::shift(x, {}, gpu).shape() == s);
        fprnn::shift_back(x, {}, x, {}, gpu);
        const auto of_none = copy_to_host(fprnn::linear(x, W, {}, gpu));
        CHECK(of_none.shape() == shape{s[0], s[1], 4});
        for (const double v : of_none) CHECK(v == 0);
        if (y.empty()) fprnn::linear_back(x, W, y, x, W, {}, gpu);
    }
    const auto carry = gpu.copy(tensor<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
    cuda::tensor<double> none(gpu, {2, 0, 3}), carry_bar(gpu, {2, 3});
    carry_bar.clear();
    fprnn::shift_back(none, carry, none, carry_bar, gpu);
    CHECK(gpu::distance(copy_to_host(carry_bar), copy_to_host(carry)) == 0);
}

TEST_CASE("cuda ops: shapes and tensors that lie elsewhere are named") {
    const host::guarded_devices guard;
    cuda::device gpu, other;
    const tensor<float> numbers({1, 2, 3}), row({3}), square({3, 3});
    const auto x = gpu.copy(numbers), far = other.copy(numbers), w = gpu.copy(row), far_w = other.copy(row),
               W = gpu.copy(square);
    auto x_bar = gpu.copy(numbers), w_bar = gpu.copy(row), far_bar = other.copy(numbers);
    const tensor<std::int32_t> tokens({1, 2});
    const char* elsewhere = " is on GPU 0, of another device object, but the call names GPU 0";
    const auto message = [&](const char* argument) { return argument + std::string(elsewhere); };
    const auto refused = [&](const char* argument, auto call) {
        CHECK_THROWS_WITH_AS(call(), message(argument).c_str(), argument_error);
    };
    refused("silu: x", [&] { (void)fprnn::silu(far, gpu); });
    refused("silu_back: y_bar", [&] { fprnn::silu_back(x, far, x_bar, gpu); });
    refused("silu_back: x_bar", [&] { fprnn::silu_back(x, x, far_bar, gpu); });
    refused("l2_normalise: x", [&] { (void)fprnn::l2_normalise(far, gpu); });
    refused("l2_normalise_back: x_bar", [&] { fprnn::l2_normalise_back(x, x, far_bar, gpu); });
    refused("rms_norm: weight", [&] { (void)fprnn::rms_norm(x, far_w, gpu); });
    refused("layer_norm: bias", [&] { (void)fprnn::layer_norm(x, w, far_w, gpu); });
    refused("rms_norm_back: y_bar", [&] { fprnn::rms_norm_back(x, w, far, x_bar, w_bar, gpu); });
    refused("linear: b", [&] { (void)fprnn::linear(x, W, far_w, gpu); });
    refused("linear_back: x_bar", [&] { fprnn::linear_back(x, W, x, far_bar, {}, {}, gpu); });
    refused("shift: x", [&] { (void)fprnn::shift(far, {}, gpu); });
    refused("shift_back: x_bar", [&] { fprnn::shift_back(x, {}, far_bar, {}, gpu); });
    refused("embedding: table", [&] { (void)fprnn::embedding(W, tokens, other); });
    refused("cross_entropy: logits", [&] { (void)fprnn::cross_entropy(far, tokens, {}, gpu); });
    refused("cross_entropy_back: logits_bar", [&] { fprnn::cross_entropy_back(x, tokens, 1.0f, far_bar, gpu); });
    refused("scan: lambda", [&] { (void)fprnn::scan(far, far, {}, fprnn::direction::forward, gpu); });
    CHECK_THROWS_WITH_AS((void)fprnn::linear(x, w, {}, gpu), "linear: W must be [n,k], got [3]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::silu_back(x, w, x_bar, gpu), "silu_back: x is [1,2,3] but y_bar is [3]",
                         argument_error);
}

TEST_CASE("cuda ops: what an adjoint adds to is what it was, whichever of its calls fails, also the first time") {
    const host::guarded_devices guard;
    const auto x = gpu::random<double>({2, 3, 4}, 1), y_bar = gpu::random<double>({2, 3, 5}, 2);
    const auto W = gpu::random<double>({5, 4}, 3), w = gpu::random<double>({4}, 4), b = gpu::random<double>({5}, 5);
    struct arguments {
        cuda::tensor<double> x, y_bar, W, w;
    };
    const auto failing_calls = [&](const auto& back) {
        int half_written = 0;
        for (int n = 0;; ++n) {
            cuda::device gpu;
            std::vector<cuda::tensor<double>> bars;
            for (const auto& bar : {x, W, b, w, w}) bars.push_back(gpu.copy(bar));
            const arguments there{gpu.copy(x), gpu.copy(y_bar), gpu.copy(W), gpu.copy(w)};
            fake::state.calls = 0;
            fake::state.failing = n;
            fake::state.is_called_again = false;
            bool fails = false;
            try {
                back(gpu, there, bars);
            } catch (const cuda::error&) {
                fails = true;
            }
            fake::state.failing = std::numeric_limits<int>::max();
            if (fake::state.is_called_again) continue;
            if (!fails) {
                CHECK(half_written == 0);
                return n;
            }
            std::size_t i = 0;
            for (const auto& bar : {x, W, b, w, w}) half_written += !checks::same_bits(copy_to_host(bars[i++]), bar);
        }
    };
    CHECK(failing_calls([](cuda::device& gpu, const arguments& of, auto& bars) {
              fprnn::linear_back(of.x, of.W, of.y_bar, bars[0], bars[1], bars[2], gpu);
          }) > 8);
    CHECK(failing_calls([](cuda::device& gpu, const arguments& of, auto& bars) {
              fprnn::layer_norm_back(of.x, of.w, of.x, bars[0], bars[3], bars[4], gpu);
          }) > 8);
}

TEST_CASE("cuda ops: what cannot be written down is called") {
    const host::guarded_devices guard;
    cuda::device gpu;
    const auto x = gpu::random<double>({2, 3, 4}, 1), w = gpu::random<double>({4}, 2);
    const auto there = gpu.copy(x), there_w = gpu.copy(w);
    auto x_bar = gpu.copy(x), w_bar = gpu.copy(w), expected_x = gpu.copy(x), expected_w = gpu.copy(w);
    fprnn::rms_norm_back(there, there_w, there, expected_x, expected_w, gpu);
    fake::state.loads_while_capturing = false;
    fprnn::rms_norm_back(there, there_w, there, x_bar, w_bar, gpu);
    CHECK(checks::same_bits(copy_to_host(x_bar), copy_to_host(expected_x)));
    CHECK(checks::same_bits(copy_to_host(w_bar), copy_to_host(expected_w)));

    // Nor can a product, the first of this kind.
    const auto W = gpu::random<double>({4, 4}, 3);
    const auto there_W = gpu.copy(W);
    auto W_bar = gpu.copy(W), expected_W = gpu.copy(W);
    // Whatever cuBLAS says then.
    for (const auto status : {CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_EXECUTION_FAILED,
                              CUBLAS_STATUS_INTERNAL_ERROR}) {
        CAPTURE(status);
        fake::unloaded_product = status;
        fake::state.loads_while_capturing = false;
        CHECK_NOTHROW(fprnn::linear_back(there, there_W, there, x_bar, W_bar, w_bar, gpu));
        fake::state.loads_while_capturing = true;
        fprnn::linear_back(there, there_W, there, expected_x, expected_W, expected_w, gpu);
        CHECK(checks::same_bits(copy_to_host(x_bar), copy_to_host(expected_x)));
        CHECK(checks::same_bits(copy_to_host(W_bar), copy_to_host(expected_W)));
        CHECK(checks::same_bits(copy_to_host(w_bar), copy_to_host(expected_w)));
    }
    fake::unloaded_product = CUBLAS_STATUS_NOT_INITIALIZED;
}

}  // namespace

#endif
