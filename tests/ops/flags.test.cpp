#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/embedding.hpp>
#include <fprnn/ops/l2_normalise.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/linear.hpp>
#include <fprnn/ops/rms_norm.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/ops/shift.hpp>

#include <ops/checks.hpp>
#include <raised.hpp>

namespace {

using checks::random;
using fprnn::eigen;
using fprnn::index;
using fprnn::reference;
using fprnn::tensor;
using fprnn::testing::raised;

/// No operand is invalid, and no result is large: neither are intermediate results, nor those in places of a
/// register that hold no channel.
template <class T, class Backend>
void check_flags(index D, double magnitude, Backend backend) {
    CAPTURE(D);
    CAPTURE(magnitude);
    const index B = 2, tokens = 5, N = 3;
    const auto x = random<T>({B, tokens, D}, 1, magnitude), y_bar = random<T>({B, tokens, D}, 2);
    const auto weight = random<T>({D}, 3), bias = random<T>({D}, 4), W = random<T>({D, D}, 5);
    tensor<T> x_bar(x.shape()), weight_bar({D}), bias_bar({D}), W_bar({D, D});

    const auto elementwise = [&](const char* name, auto value, auto back) {
        CAPTURE(std::string(name));
        CHECK(raised([&] { value(x, backend); }) == "");
        CHECK(raised([&] { back(x, y_bar, x_bar, backend); }) == "");
    };
#define FPRNN_FUNCTION(NAME) \
    elementwise(             \
        #NAME, [](auto&&... a) { return fprnn::NAME(a...); }, [](auto&&... a) { fprnn::NAME##_back(a...); })
    FPRNN_FUNCTION(sigmoid);
    FPRNN_FUNCTION(silu);
    FPRNN_FUNCTION(softplus);
    FPRNN_FUNCTION(tanh);
    if (magnitude < 10) FPRNN_FUNCTION(exp);
    FPRNN_FUNCTION(l2_normalise);
#undef FPRNN_FUNCTION

    CHECK(raised([&] { rms_norm(x, weight, backend); }) == "");
    CHECK(raised([&] { rms_norm_back(x, weight, y_bar, x_bar, weight_bar, backend); }) == "");
    CHECK(raised([&] { layer_norm(x, weight, bias, backend); }) == "");
    CHECK(raised([&] { layer_norm_back(x, weight, y_bar, x_bar, weight_bar, bias_bar, backend); }) == "");
    CHECK(raised([&] { linear(x, W, bias, backend); }) == "");
    CHECK(raised([&] { linear_back(x, W, y_bar, x_bar, W_bar, bias_bar, backend); }) == "");
    CHECK(raised([&] { shift(x, {}, backend); }) == "");

    tensor<std::int32_t> targets({B, tokens});
    targets.fill(1);
    targets[3] = fprnn::ignored_target;
    CHECK(raised([&] { cross_entropy(x, std::as_const(targets).view(), x_bar, backend); }) == "");
    CHECK(raised([&] { cross_entropy_back(x, std::as_const(targets).view(), T(1), x_bar, backend); }) == "");
    targets.fill(2);
    CHECK(raised([&] { embedding(W, std::as_const(targets).view(), x_bar, backend); }) == "");
    CHECK(raised([&] { embedding_back(std::as_const(targets).view(), y_bar, W_bar, backend); }) == "");

    const auto lambda = sigmoid(x, backend), delta = softplus(x, backend);
    const auto b = random<T>({B, tokens, N}, 6), c = random<T>({B, tokens, N}, 7), omega = random<T>({N, D}, 8);
    tensor<T> h;
    CHECK(raised([&] { h = scan(lambda, x, {}, fprnn::direction::forward, backend); }) == "");
    fprnn::scan_cotangents<T> scanned(x.shape());
    CHECK(raised([&] { scan_back(lambda, h, {}, y_bar, {}, scanned, fprnn::direction::forward, backend); }) == "");
    CHECK(raised([&] { selective_scan(delta, omega, b, c, x, {}, backend); }) == "");
    fprnn::selective_scan_cotangents<T> bars(x.shape(), N);
    CHECK(raised([&] { selective_scan_back(delta, omega, b, c, x, {}, y_bar, {}, bars, backend); }) == "");
}

TEST_CASE_TEMPLATE("flags: operations on ordinary numbers raise no invalid operation, division by zero or overflow", T,
                   float, double) {
    for (const index D : {5, 17})
        for (const double magnitude : {1.0, 30.0, 200.0, 2000.0}) {
            SUBCASE("eigen") { check_flags<T>(D, magnitude, eigen(1)); }
            SUBCASE("reference") { check_flags<T>(D, magnitude, reference{}); }
        }
}

}  // namespace
