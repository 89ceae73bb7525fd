#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fixed_point/tools.hpp>
#include <string>
#include <vector>

namespace {

using fprnn::index;

/// A block that sees less is the one that sees x_t and y_{t−1} side by side with zeros where y_{t−1}'s
/// columns are: the same values, and the same gradients of all other numbers. `halves` are the maps that
/// differ, [n,m] in place of [n,m+D].
template <class Less, class All>
void check_that_columns_are_zero(Less less, All all, const std::vector<std::string>& halves) {
    using namespace fprnn::testing;
    const fprnn::dims size{.d_in = 6, .d_inner = 8, .d_state = 5};
    const fprnn::chunked schedule{.length = 1, .tolerance = 1e-13, .ell_max = 400};
    fprnn::layer of_less(less, schedule);
    fprnn::layer of_all(all, schedule);
    auto theta = fprnn::init<double>(of_less, size, fprnn::seed{4});
    shake(theta, 0.2);
    auto padded = fprnn::init<double>(of_all, size);
    const auto is_half = [&](const std::string& name) {
        return std::find(halves.begin(), halves.end(), name) != halves.end();
    };
    for (const auto& p : theta.entries()) {
        const index rows = p.shape[0], columns = p.shape.count() / rows, wide = padded[p.name].size() / rows;
        REQUIRE(wide == columns + (is_half(p.name) ? size.d_inner : 0));
        std::fill_n(padded[p.name].data(), rows * wide, 0.0);
        for (index i = 0; i < rows; ++i)
            std::copy_n(theta[p.name].data() + i * columns, columns, padded[p.name].data() + i * wide);
    }
    const auto x = normal<double>({3, 7, 6}, 1), y_bar = normal<double>({3, 7, 6}, 2);
    const auto got = differentiate(of_less, theta, x, y_bar), expected = differentiate(of_all, padded, x, y_bar);
    const auto close = [](const double* a, const double* b, index n) {
        double largest = 0, difference = 0;
        for (index i = 0; i < n; ++i) {
            largest = larger(largest, std::abs(b[i]));
            difference = larger(difference, std::abs(a[i] - b[i]));
        }
        return difference < 1e-10 * std::max(largest, 1.0);
    };
    CHECK(close(got.sol.value.data(), expected.sol.value.data(), got.sol.value.size()));
    CHECK(close(got.x_bar.data(), expected.x_bar.data(), got.x_bar.size()));
    for (const auto& p : theta.entries()) {
        CAPTURE(p.name);
        const index rows = p.shape[0], columns = p.shape.count() / rows, wide = padded[p.name].size() / rows;
        for (index i = 0; i < rows; ++i)
            CHECK(close(got.theta_bar[p.name].data() + i * columns, expected.theta_bar[p.name].data() + i * wide,
                        columns));
    }
}

constexpr fprnn::models::fp_mamba_options sees(bool lambda, bool mixer, bool b_c) {
    using seen = fprnn::models::fp_mamba_options::seen;
    return {.delta_sees_y = lambda, .b_c_see_y = b_c, .mixer_sees = mixer ? seen::side_by_side : seen::x};
}

TEST_CASE("fp_mamba: b and c that see x alone are maps whose other columns are zero") {
    using fprnn::models::fp_mamba;
    check_that_columns_are_zero(fp_mamba<sees(false, true, false)>(fprnn::householder<2>),
                                fp_mamba<sees(false, true, true)>(fprnn::householder<2>), {"b", "c"});
}

TEST_CASE("fp_mamba: where nothing sees y it is the one that sees it everywhere with zeros") {
    using fprnn::models::fp_mamba;
    check_that_columns_are_zero(fp_mamba<sees(false, false, false)>(fprnn::householder<2>),
                                fp_mamba<sees(true, true, true)>(fprnn::householder<2>),
                                {"b", "c", "delta", "Q.u", "Q.alpha"});
}

TEST_CASE("fp_mamba: a gate in the loop that sees u alone is one whose other columns are zero") {
    using options = fprnn::models::fp_mamba_options;
    constexpr options of_u{.gate = options::gating::inside}, of_both{.gate = options::gating::inside_seeing_y};
    check_that_columns_are_zero(fprnn::models::fp_mamba<of_u>(fprnn::householder<2>),
                                fprnn::models::fp_mamba<of_both>(fprnn::householder<2>), {"z"});
}

TEST_CASE("fp_rnn: a mixer that sees x alone is one whose other columns are zero") {
    constexpr fprnn::models::fp_rnn_options x_alone{.mixer_sees_h = false};
    check_that_columns_are_zero(fprnn::models::fp_rnn<x_alone>(fprnn::householder<2>),
                                fprnn::models::fp_rnn(fprnn::householder<2>), {"Q.u", "Q.alpha"});
}

}  // namespace
