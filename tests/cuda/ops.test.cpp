// Where CUDA's headers are: operations by themselves on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "ops_check.hpp"

#include <ops/checks.hpp>

#include <cstdint>
#include <limits>
#include <string>
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
    refused("embedding: y", [&] { fprnn::embedding(W, tokens, far_bar, gpu); });
    refused("embedding_back: y_bar", [&] { fprnn::embedding_back(tokens, far, w_bar, gpu); });
    refused("embedding_back: table_bar", [&] { fprnn::embedding_back(tokens, x, far_bar, gpu); });
    refused("cross_entropy: logits", [&] { (void)fprnn::cross_entropy(far, tokens, {}, gpu); });
    refused("cross_entropy: logits_bar", [&] {
        fprnn::cross_entropy_result<float> result;
        fprnn::cross_entropy(x, tokens, far_bar, gpu, result);
    });
    refused("cross_entropy_back: logits_bar", [&] { fprnn::cross_entropy_back(x, tokens, 1.0f, far_bar, gpu); });
    refused("scan: lambda", [&] { (void)fprnn::scan(far, far, {}, fprnn::direction::forward, gpu); });
    CHECK_THROWS_WITH_AS((void)fprnn::linear(x, w, {}, gpu), "linear: W must be [n,k], got [3]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::silu_back(x, w, x_bar, gpu), "silu_back: x is [1,2,3] but y_bar is [3]",
                         argument_error);
}

/// What adjoints read, and what they add to.
struct arguments {
    cuda::tensor<double> x, y_bar, out_bar, W, w, row, delta, omega, b, c, H;
    cuda::tensor<double> x_bar, W_bar, b_bar, w_bar, bias_bar, row_bar;
    cuda::scan_cotangents<double> scan;
    cuda::selective_scan_cotangents<double> selective_scan;
    tensor<std::int32_t> tokens{{2, 3}, {3, 0, 1, 3, 2, 3}};

    explicit arguments(const cuda::device& gpu) {
        std::uint64_t stream = 0;
        const auto number = [&](const shape& s, double deviation = 1, double mean = 0) {
            return gpu.copy(gpu::random<double>(s, ++stream, deviation, mean));
        };
        const shape s{2, 3, 4}, n{2, 3, 2}, state{2, 2, 4};
        x = number(s), y_bar = number(s), out_bar = number({2, 3, 5}), W = number({5, 4}), w = number({4});
        row = number({2, 4}), delta = number(s, 0.1, 0.5), omega = number({2, 4}), b = number(n), c = number(n);
        H = number(state);
        x_bar = number(s), W_bar = number({5, 4}), b_bar = number({5}), w_bar = number({4}), bias_bar = number({4});
        row_bar = number({2, 4});
        scan.lambda = number(s), scan.u = number(s), scan.carry = number({2, 4});
        auto& of = selective_scan;
        of.delta = number(s), of.omega = number({2, 4}), of.b = number(n), of.c = number(n), of.u = number(s);
        of.H = number(state);
    }
    /// All that is added to, one after the other.
    std::vector<double> written() const {
        std::vector<double> all;
        const auto& of = selective_scan;
        for (const auto* bar : {&x_bar, &W_bar, &b_bar, &w_bar, &bias_bar, &row_bar, &scan.lambda, &scan.u, &scan.carry,
                                &of.delta, &of.omega, &of.b, &of.c, &of.u, &of.H}) {
            const auto here = copy_to_host(*bar);
            all.insert(all.end(), here.begin(), here.end());
        }
        return all;
    }
};

TEST_CASE("cuda ops: an adjoint adds all or nothing, whichever of its calls fails, also the first time") {
    const host::guarded_devices guard;
    const auto check = [](const std::string& name, const auto& back) {
        INFO(name);
        const auto call = [&](int failing, std::vector<double>& before, std::vector<double>& after) {
            cuda::device gpu;
            arguments of(gpu);
            before = of.written();
            fake::state.calls = 0;
            fake::state.failing = failing;
            fake::state.is_called_again = false;
            bool fails = false;
            try {
                back(of, gpu);
            } catch (const cuda::error&) {
                fails = true;
            }
            fake::state.failing = std::numeric_limits<int>::max();
            after = of.written();
            return !fails;
        };
        std::vector<double> before, all, after;
        REQUIRE(call(std::numeric_limits<int>::max(), before, all));
        CHECK(all != before);
        int n = 0, half_written = 0;
        for (;; ++n) {
            const bool succeeds = call(n, before, after);
            half_written += after != all && (succeeds || after != before);
            if (succeeds && !fake::state.is_called_again) break;
        }
        CHECK(n > 0);
        CHECK(half_written == 0);
        return n;
    };
    using of_all = arguments&;
    using device = cuda::device&;
    check("sigmoid", [](of_all of, device gpu) { fprnn::sigmoid_back(of.x, of.y_bar, of.x_bar, gpu); });
    check("silu", [](of_all of, device gpu) { fprnn::silu_back(of.x, of.y_bar, of.x_bar, gpu); });
    check("softplus", [](of_all of, device gpu) { fprnn::softplus_back(of.x, of.y_bar, of.x_bar, gpu); });
    check("exp", [](of_all of, device gpu) { fprnn::exp_back(of.x, of.y_bar, of.x_bar, gpu); });
    check("tanh", [](of_all of, device gpu) { fprnn::tanh_back(of.x, of.y_bar, of.x_bar, gpu); });
    check("l2_normalise", [](of_all of, device gpu) { fprnn::l2_normalise_back(of.x, of.y_bar, of.x_bar, gpu); });
    check("rms_norm",
          [](of_all of, device gpu) { fprnn::rms_norm_back(of.x, of.w, of.y_bar, of.x_bar, of.w_bar, gpu); });
    CHECK(check("layer_norm", [](of_all of, device gpu) {
              fprnn::layer_norm_back(of.x, of.w, of.y_bar, of.x_bar, of.w_bar, of.bias_bar, gpu);
          }) > 8);
    CHECK(check("linear", [](of_all of, device gpu) {
              fprnn::linear_back(of.x, of.W, of.out_bar, of.x_bar, of.W_bar, of.b_bar, gpu);
          }) > 8);
    check("shift", [](of_all of, device gpu) { fprnn::shift_back(of.y_bar, of.row, of.x_bar, of.row_bar, gpu); });
    check("embedding", [](of_all of, device gpu) { fprnn::embedding_back(of.tokens, of.y_bar, of.W_bar, gpu); });
    check("cross_entropy", [](of_all of, device gpu) { (void)fprnn::cross_entropy(of.x, of.tokens, of.x_bar, gpu); });
    check("cross_entropy, its adjoint",
          [](of_all of, device gpu) { fprnn::cross_entropy_back(of.x, of.tokens, 0.5, of.x_bar, gpu); });
    check("scan", [](of_all of, device gpu) {
        fprnn::scan_back(of.delta, of.x, of.row, of.y_bar, of.row, of.scan, fprnn::direction::forward, gpu);
    });
    check("selective_scan", [](of_all of, device gpu) {
        fprnn::selective_scan_back(of.delta, of.omega, of.b, of.c, of.x, of.H, of.y_bar, of.H, of.selective_scan, gpu);
    });
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
