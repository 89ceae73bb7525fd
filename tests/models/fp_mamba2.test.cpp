#include "models/block_gradients.hpp"

#include <fprnn/models/fp_mamba2.hpp>

#include <string>

namespace {

using fprnn::models::fp_mamba2_options;
using fprnn::testing::check_block_gradients;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .heads = 2};

TEST_CASE("fp_mamba2: every gradient of the block is that of central differences") {
    check_block_gradients(fprnn::models::fp_mamba2(fprnn::householder<2>), sizes, 2, 6, 0.1, 0.3);
    constexpr fp_mamba2_options options{.convolution = 3, .gate_outside = true, .groups = 2};
    // With open gates this block has several fixed points.
    constexpr fprnn::mixer_function<fprnn::make::of_triangles<fprnn::kronecker_mixer>> half_open{};
    check_block_gradients(fprnn::models::fp_mamba2<options>(half_open), sizes, 2, 6, 0.1, 0.3);
}
TEST_CASE("mamba2: every gradient of the block is that of central differences, in one group and in two") {
    check_block_gradients(fprnn::models::mamba2(), {.d_in = 3, .d_inner = 8, .d_state = 2, .heads = 4}, 2, 9, 0.1);
    check_block_gradients(fprnn::models::mamba2<2, 2>(), {.d_in = 3, .d_inner = 8, .d_state = 2, .heads = 4}, 2, 19,
                          0.1);
}

TEST_CASE_TEMPLATE("fp_mamba2: with Q = I, nothing that sees y and one iteration it is mamba2 to rounding", T, float,
                   double) {
    using namespace fprnn::testing;
    const fprnn::dims size{.d_in = 6, .d_inner = 12, .d_state = 5, .heads = 4};
    constexpr fp_mamba2_options options{.convolution = 4, .normalise = false};
    const fprnn::layer diagonal(fprnn::models::mamba2());
    auto theta = fprnn::init<T>(diagonal, size, fprnn::seed{4});
    shake(theta, 0.2);
    const auto x = normal<T>({5, 11, 6}, 1), y_bar = normal<T>({5, 11, 6}, 2);
    const auto plain = differentiate(diagonal, theta, x, y_bar);
    for (const fprnn::index C : {fprnn::index{1}, fprnn::index{4}, fprnn::whole_sequence}) {
        CAPTURE(C);
        const fprnn::layer l(fprnn::models::fp_mamba2<options>(fprnn::householder<2>),
                             fprnn::chunked{.length = C, .tolerance = 1e-3, .ell_max = 1});
        auto same_theta = fprnn::init<T>(l, size);
        for (const char* unseen : {"b_y", "c_y", "Q.u", "Q.alpha"})
            for (T& w : same_theta[unseen]) w = 0;
        for (T& w : same_theta["Q.alpha.bias"]) w = -800;  // σ is 0
        for (const auto& p : theta.entries())
            std::copy_n(theta.data() + p.offset, p.shape.count(), same_theta[p.name].data());
        const auto got = differentiate(l, same_theta, x, y_bar);
        CHECK(got.sol.iterations == std::vector<int>(5, 1));
        const double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
        CHECK(distance(got.sol.value, plain.sol.value) <= rounding * largest(plain.sol.value));
        CHECK(distance(got.x_bar, plain.x_bar) <= rounding * largest(plain.x_bar));
        for (const auto& p : theta.entries()) {
            CAPTURE(p.name);
            CHECK(distance(got.theta_bar[p.name], plain.theta_bar[p.name]) <= rounding * largest(plain.theta_bar));
        }
    }
}

TEST_CASE("fp_mamba2: tokens are solved in R numbers, for any number of states") {
    const auto text = explain(fprnn::layer(fprnn::models::fp_mamba2(fprnn::householder<2>)));
    INFO(text);
    CHECK(text.find("solved in 2 numbers") != std::string::npos);
}

TEST_CASE("fp_mamba2: heads that do not divide the channels are refused, and groups that do not divide the heads") {
    const fprnn::dims of_six{.d_in = 4, .d_inner = 6, .d_state = 3, .heads = 4};
    CHECK_THROWS_WITH_AS(fprnn::init<float>(fprnn::layer(fprnn::models::mamba2()), of_six),
                         "head_scan: u must have a multiple of 4 channels, as many for each of a's heads, got 6",
                         fprnn::argument_error);
    const fprnn::layer two_groups(fprnn::models::mamba2<4, 2>());
    using of_a_head = fprnn::quotient_width<fprnn::d_inner, fprnn::heads>;
    CHECK_THROWS_WITH_AS(of_a_head::of(of_six),
                         "width: 4 parts, such as heads, must divide the 6 channels that they are of",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(fprnn::init<float>(two_groups, {4, 6, 3, 1, 3}),
                         "head_scan: a must have a multiple of 2 channels, as many for each group, got 3",
                         fprnn::argument_error);
}

}  // namespace
