// Where CUDA's headers are: operations by themselves on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "ops_check.hpp"

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

TEST_CASE("cuda ops: of empty sizes nothing is called") {
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
    const char* elsewhere = " is not on the device that the call names, GPU 0";
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

}  // namespace

#endif
