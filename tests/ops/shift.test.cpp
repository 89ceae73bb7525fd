#include <fprnn/ops/shift.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

TEST_CASE_TEMPLATE("shift: y_t = x_{t−1}, and y_0 is the carry or zero, to the bit", T, float, double) {
    for (const shape& s : checks::odd_sizes()) {
        const auto x = random<T>(s, 1), carry = random<T>({s[0], s[2]}, 2);
        const auto y = fprnn::shift(x, carry), z = fprnn::shift(x);
        for (index b = 0; b < s[0]; ++b)
            for (index t = 0; t < s[1]; ++t)
                for (index d = 0; d < s[2]; ++d) {
                    CHECK(y(b, t, d) == (t ? x(b, t - 1, d) : carry(b, d)));
                    CHECK(z(b, t, d) == (t ? x(b, t - 1, d) : T(0)));
                }
    }
}

TEST_CASE("shift: gradients agree with central differences, and accumulate") {
    for (const shape& s : checks::odd_sizes()) {
        const shape row{s[0], s[2]};
        auto x = random<double>(s, 1), carry = random<double>(row, 2);
        const auto y_bar = random<double>(s, 3), carry_out_bar = random<double>(row, 4);
        tensor<double> x_bar(s), carry_bar(row);
        fprnn::shift_back(y_bar, carry_out_bar, x_bar, carry_bar);
        checks::check_gradients(fprnn::gradcheck(
            [&] {
                double sum = checks::dot(fprnn::shift(x, carry), y_bar);
                for (index b = 0; b < s[0]; ++b)
                    for (index d = 0; d < s[2]; ++d) sum += x(b, s[1] - 1, d) * carry_out_bar(b, d);
                return sum;
            },
            {{"x", x, x_bar}, {"carry", carry, carry_bar}}));
        tensor<double> more(s), more_carry(row);
        more.fill(10), more_carry.fill(10);
        fprnn::shift_back(y_bar, carry_out_bar, more, more_carry);
        checks::check_added_to_ten(more, x_bar);
        checks::check_added_to_ten(more_carry, carry_bar);
    }
}

TEST_CASE("shift: the cotangents of the carry may be left out") {
    const auto y_bar = random<double>({2, 5, 3}, 1);
    tensor<double> x_bar({2, 5, 3}), with({2, 5, 3}), carry_bar({2, 3});
    fprnn::shift_back(y_bar, {}, x_bar);
    fprnn::shift_back(y_bar, tensor<double>({2, 3}), with, carry_bar);
    CHECK(checks::same_bits(x_bar, with));
}

TEST_CASE("shift: without tokens the carry's cotangent passes through; other empty sizes do nothing") {
    const auto bar = random<double>({2, 3}, 1);
    tensor<double> none({2, 0, 3}), carry_bar({2, 3});
    CHECK(fprnn::shift(none, bar).shape() == shape{2, 0, 3});
    fprnn::shift_back(none, bar, none, carry_bar);
    CHECK(checks::same_bits(carry_bar, bar));
    for (const shape& s : {shape{0, 5, 3}, shape{2, 5, 0}}) {
        tensor<double> x(s);
        CHECK(fprnn::shift(x).shape() == s);
        fprnn::shift_back(x, {}, x);
    }
}

TEST_CASE("shift: shapes that do not match are named") {
    const tensor<float> x({2, 5, 3}), flat({2, 3}), wrong({2, 4});
    tensor<float> x_bar({2, 5, 3}), wrong_bar({2, 4});
    CHECK_THROWS_WITH_AS(fprnn::shift(flat), "shift: x must be [B,T,D], got [2,3]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::shift(x, wrong), "shift: carry must be [2,3], got [2,4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::shift_back(flat, {}, x_bar), "shift_back: y_bar must be [B,T,D], got [2,3]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::shift_back(x, wrong, x_bar), "shift_back: carry_out_bar must be [2,3], got [2,4]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::shift_back(x, {}, wrong_bar), "shift_back: y_bar is [2,5,3] but x_bar is [2,4]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::shift_back(x, {}, x_bar, wrong_bar), "shift_back: carry_bar must be [2,3], got [2,4]",
                         argument_error);
}

}  // namespace
