#include <fprnn/ops/l2_normalise.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::eigen;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

TEST_CASE("l2_normalise: y = x / max(‖x‖, 1e-5)") {
    for (const shape& s : checks::odd_sizes())
        for (double deviation : {1.0, 1e-7}) {
            const auto x = random<double>(s, 1, deviation);
            tensor<double> y(s);
            for (index r = 0; r < s[0] * s[1]; ++r) {
                double squares = 0;
                for (index d = 0; d < s[2]; ++d) squares += x[r * s[2] + d] * x[r * s[2] + d];
                for (index d = 0; d < s[2]; ++d) y[r * s[2] + d] = x[r * s[2] + d] / std::max(std::sqrt(squares), 1e-5);
            }
            CHECK(checks::ulps(fprnn::l2_normalise(x), y) <= 4);
        }
}

TEST_CASE("l2_normalise: a row of zeros stays zero") {
    const tensor<float> x({1, 2, 3});
    CHECK(checks::same_bits(fprnn::l2_normalise(x, eigen(1)), x));
}

TEST_CASE("l2_normalise: gradients agree with central differences, and accumulate") {
    for (const shape& s : checks::odd_sizes()) {
        auto x = random<double>(s, 1);
        for (double& v : x) v += v < 0 ? -0.5 : 0.5;  // away from the kink of a single channel at 0
        const auto y_bar = random<double>(s, 2);
        tensor<double> x_bar(s), more(s);
        fprnn::l2_normalise_back(x, y_bar, x_bar);
        checks::check_gradients(
            fprnn::gradcheck([&] { return checks::dot(fprnn::l2_normalise(x), y_bar); }, {{"x", x, x_bar}}));
        more.fill(10);
        fprnn::l2_normalise_back(x, y_bar, more);
        checks::check_added_to_ten(more, x_bar);
    }
}

TEST_CASE("l2_normalise: below 1e-5 it is linear, and so is its gradient") {
    auto x = random<double>({2, 3, 5}, 1, 1e-7);
    const auto y_bar = random<double>({2, 3, 5}, 2);
    tensor<double> x_bar(x.shape());
    fprnn::l2_normalise_back(x, y_bar, x_bar);
    checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(fprnn::l2_normalise(x), y_bar); },
                                             {{"x", x, x_bar}}, {.step = 1e-7}));
}

TEST_CASE_TEMPLATE("l2_normalise: packs are equivalent to the reference", T, float, double) {
    for (const shape& s : checks::odd_sizes()) {
        const auto x = random<T>(s, 1), y_bar = random<T>(s, 2);
        CHECK(checks::ulps(fprnn::l2_normalise(x, eigen(2)), fprnn::l2_normalise(x)) <= 3);
        tensor<T> a(s), b(s);
        fprnn::l2_normalise_back(x, y_bar, a, eigen(2));
        fprnn::l2_normalise_back(x, y_bar, b);
        double largest = 0;  // ȳ and y (yᵀȳ) cancel, to nothing where D = 1: what is lost is a part of ȳ / ‖x‖
        for (index i = 0; i < x.size(); ++i)
            largest = fprnn::testing::larger(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
        CHECK(largest <= 4 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
}

TEST_CASE_TEMPLATE("l2_normalise: a token's bits depend neither on its place nor on the threads", T, float, double) {
    for (index D : {1, 3, 17}) {
        const auto x = random<T>({1, 21, D}, 1);
        checks::equal_slices_give_equal_bits(x, 21, [](const auto& v) { return fprnn::l2_normalise(v, eigen(2)); });
        checks::equal_slices_give_equal_bits(x, 21, [](const auto& v) {
            tensor<T> bar(v.shape());
            fprnn::l2_normalise_back(v, v, bar, eigen(2));
            return bar;
        });
    }
    const auto x = random<T>({3, 50, 17}, 1);
    checks::threads_give_equal_bits([&](eigen e) { return fprnn::l2_normalise(x, e); });
}

TEST_CASE("l2_normalise: empty arguments give empty results") {
    for (const shape& s : {shape{0, 5, 3}, shape{2, 0, 3}, shape{2, 5, 0}}) {
        tensor<float> x(s);
        CHECK(fprnn::l2_normalise(x, eigen(2)).shape() == s);
        fprnn::l2_normalise_back(x, x, x, eigen(2));
    }
}

TEST_CASE("l2_normalise: shapes that do not match are named") {
    const tensor<float> x({2, 5, 3}), wrong({2, 5, 4});
    tensor<float> x_bar({2, 5, 3}), wrong_bar({5, 3});
    CHECK_THROWS_WITH_AS(fprnn::l2_normalise_back(x, wrong, x_bar),
                         "l2_normalise_back: x is [2,5,3] but y_bar is [2,5,4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::l2_normalise_back(x, x, wrong_bar),
                         "l2_normalise_back: x is [2,5,3] but x_bar is [5,3]", argument_error);
}

}  // namespace
