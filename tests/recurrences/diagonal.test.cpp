#include <fprnn/backend/eigen.hpp>
#include <fprnn/core/random.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/diagonal.hpp>
#include <fprnn/recurrences/recur.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace {

using fprnn::diagonal_recurrence;
using fprnn::index;
using fprnn::tensor;

tensor<double> normal(const fprnn::shape& s, std::uint64_t stream) {
    tensor<double> x(s);
    const fprnn::random_stream r({5}, stream);
    for (index i = 0; i < x.size(); ++i) x[i] = r.normal(static_cast<std::uint64_t>(i));
    return x;
}
bool same_bits(const tensor<double>& a, const tensor<double>& b) {
    return a.size() == b.size() && a.size() > 0 &&
           std::memcmp(a.data(), b.data(), sizeof(double) * static_cast<std::size_t>(a.size())) == 0;
}

TEST_CASE("diagonal: the laws of a recurrence hold") {
    using numbers = std::vector<double>;
    const auto verdict = fprnn::check_recurrence<diagonal_recurrence>(
        {.widths = {{1, 1}, {4, 4}, {17, 17}},
         .plain = [](const diagonal_recurrence::sizes&, const numbers&, const auto& x, numbers& h) {
             for (std::size_t d = 0; d < h.size(); ++d) h[d] = x[0][d] * h[d] + x[1][d];
             return h;
         }});
    INFO(verdict.to_string());
    CHECK(verdict.ok());
}

template <class Backend>
void check_equals_scan(const Backend& backend) {
    const fprnn::shape s{3, 37, 11};
    const auto lambda = normal(s, 1), u = normal(s, 2), carry = normal({3, 11}, 3), h_bar = normal(s, 4),
               carry_bar = normal({3, 11}, 5);
    const fprnn::recurrence_inputs<diagonal_recurrence, double> x{lambda.view(), u.view()};
    const auto expected = fprnn::scan(lambda, u, carry, fprnn::direction::forward, backend);
    const auto got = fprnn::recur<diagonal_recurrence, double>(x, {}, carry.view(), backend);
    CHECK(same_bits(got.y, expected));
    for (index b = 0; b < 3; ++b)
        CHECK(std::memcmp(got.S.data() + b * 11, expected.data() + (b * 37 + 36) * 11, 11 * sizeof(double)) == 0);

    fprnn::scan_cotangents<double> into(s);
    fprnn::scan_back(lambda, expected, carry, h_bar, carry_bar, into, fprnn::direction::forward, backend);
    fprnn::recurrence_cotangents<diagonal_recurrence, double> bars(x);
    fprnn::recur_back<diagonal_recurrence, double>(x, {}, carry.view(), h_bar.view(), carry_bar.view(), bars, backend);
    CHECK(same_bits(bars.x[0], into.lambda));
    CHECK(same_bits(bars.x[1], into.u));
    CHECK(same_bits(bars.S, into.carry));
}
TEST_CASE("diagonal: value, carry and gradients are those of the scan, to the bit") {
    check_equals_scan(fprnn::reference());
    check_equals_scan(fprnn::eigen(2));
}

TEST_CASE("diagonal: widths that do not fit are refused") {
    CHECK_THROWS_WITH_AS(diagonal_recurrence::of({4, 5}), "diagonal: u must have 4 channels, as lambda, got 5",
                         fprnn::argument_error);
}

}  // namespace
