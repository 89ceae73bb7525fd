#include "fixed_point/tools.hpp"

#include <fprnn/models/delta_product.hpp>

#include <doctest/doctest.h>

namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;
using fprnn::models::delta_options;
using fprnn::models::delta_product;

constexpr fprnn::dims sizes{.d_in = 5, .d_inner = 8, .heads = 2, .d_key = 3};

/// Parameters of `of`, those that `from` has too with its numbers; what has more rows begins with them.
template <class Layer, class Parameters>
auto parameters_from(const Layer& of, const Parameters& from) {
    auto theta = fprnn::init<double>(of, sizes);
    for (const auto& p : theta.entries()) {
        if (!from.contains(p.name)) continue;
        const auto given = from[p.name];
        std::copy(given.begin(), given.end(), theta[p.name].data());
    }
    return theta;
}

TEST_CASE("delta_product: further steps with β = 0 leave Gated DeltaNet") {
    const fprnn::layer one(fprnn::models::gated_deltanet<4>());
    const fprnn::layer three(delta_product<delta_options{.steps = 3}>());
    auto theta = fprnn::init<double>(one, sizes);
    shake(theta, 0.3);
    auto wide = parameters_from(three, theta);
    // Convolutions are [K, channels], so their rows are longer there.
    for (const char* name : {"k_conv", "v_conv"}) {
        const auto from = theta[name];
        auto to = wide[name];
        const index K = from.shape()[0], n = from.shape()[1];
        for (index j = 0; j < K; ++j) std::copy_n(from.data() + j * n, n, to.data() + j * 3 * n);
    }
    // σ(−800) is 0. u is a norm of x: with x of one sign and W of one sign its maps are far from 0.
    auto x = normal({2, 7, 5}, 1);
    for (double& v : x) v = 1 + std::abs(v);
    for (double& w : theta["norm.weight"]) w = 1;
    for (double& w : wide["norm.weight"]) w = 1;
    auto beta = wide["beta"];
    for (index i = 2 * 5; i < beta.size(); ++i) beta.data()[i] = -800;
    const auto expected = one(theta, x), got = three(wide, x);
    CHECK(distance(expected.value, got.value) <= 1e-14 * largest(expected.value));
    for (index i = 2 * 5; i < beta.size(); ++i) beta.data()[i] = 1;
    CHECK(distance(expected.value, three(wide, x).value) > 1e-3);
}

TEST_CASE("delta_product: with α = 1 Gated DeltaNet is DeltaNet") {
    const fprnn::layer gated(delta_product<delta_options{}>());
    const fprnn::layer plain(delta_product<delta_options{.forget_gate = false}>());
    auto theta = fprnn::init<double>(gated, sizes);
    shake(theta, 0.3);
    const auto x = normal({2, 7, 5}, 1);
    const auto of_plain = parameters_from(plain, theta);
    CHECK(distance(gated(theta, x).value, plain(of_plain, x).value) > 1e-3);
    for (double& a : theta["A"]) a = -1000;  // exp(A) = 0
    CHECK(same_bits(gated(theta, x).value, plain(of_plain, x).value));
}

TEST_CASE("delta_product: with negative eigenvalues β is twice as large") {
    const fprnn::layer plain(fprnn::models::gated_deltanet<4>());
    const fprnn::layer negative(delta_product<delta_options{.negative_eigenvalues = true}>());
    auto theta = fprnn::init<double>(plain, sizes);
    auto x = normal({2, 7, 5}, 1);
    for (double& v : x) v = 1 + std::abs(v);
    auto twice = parameters_from(negative, theta);
    CHECK(distance(plain(theta, x).value, negative(twice, x).value) > 1e-4);
    for (double& w : theta["beta"]) w = 800;  // β = σ(…) = 1
    for (double& w : twice["beta"]) w = 0;    // β = 2 σ(0) = 1
    CHECK(same_bits(plain(theta, x).value, negative(twice, x).value));
}

TEST_CASE("delta_product: tokens one by one, after a prompt, have the bits of one call") {
    const auto check = [](const auto& block) {
        const fprnn::layer layer(block);
        auto theta = fprnn::init<float>(layer, sizes);
        const auto x = normal({3, 12, 5}, 1);
        tensor<float> all(x.shape());
        std::copy(x.begin(), x.end(), all.begin());
        const auto once = layer(theta, all);
        tensor<float> carry;
        index at = 0;
        for (const index n : {7, 1, 1, 3}) {
            const auto part = layer(theta, tokens(all, at, n), carry);
            CHECK(same_bits(part.value, tokens(once.value, at, n)));
            carry = part.carry;
            at += n;
        }
        CHECK(same_bits(carry, once.carry));
    };
    check(fprnn::models::gated_deltanet());
    check(fprnn::models::state_tracking_delta_product<4>());
}

TEST_CASE("delta_product: heads that do not divide d_inner are refused") {
    const fprnn::layer layer(fprnn::models::gated_deltanet());
    CHECK_THROWS_WITH_AS((void)fprnn::init<double>(layer, {.d_in = 5, .d_inner = 8, .heads = 3, .d_key = 2}),
                         "gated_delta: v must have a multiple of 3 channels, one for each of beta's, got 8",
                         fprnn::argument_error);
}

}  // namespace
