#include <fprnn/ops/linear.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::eigen;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

constexpr index outs[] = {1, 2, 5, 17};

TEST_CASE("linear: y = W x + b, sum by sum, on the reference and with Eigen") {
    for (const shape& s : checks::odd_sizes())
        for (index n : outs) {
            const auto x = random<double>(s, 1), W = random<double>({n, s[2]}, 2), b = random<double>({n}, 3);
            tensor<double> y({s[0], s[1], n}), plain({s[0], s[1], n});
            for (index i = 0; i < s[0]; ++i)
                for (index t = 0; t < s[1]; ++t)
                    for (index o = 0; o < n; ++o) {
                        for (index k = 0; k < s[2]; ++k) plain(i, t, o) += W(o, k) * x(i, t, k);
                        y(i, t, o) = plain(i, t, o) + b[o];
                    }
            CHECK(checks::ulps(fprnn::linear(x, W, b), y) <= 4);
            CHECK(checks::ulps(fprnn::linear(x, W), plain) <= 4);
            CHECK(checks::ulps(fprnn::linear(x, W, b, eigen(2)), y) <= 4);
            CHECK(checks::ulps(fprnn::linear(x, W, {}, eigen(2)), plain) <= 4);
        }
}

TEST_CASE("linear: gradients agree with central differences") {
    for (const shape& s : checks::odd_sizes())
        for (index n : outs) {
            auto x = random<double>(s, 1), W = random<double>({n, s[2]}, 2), b = random<double>({n}, 3);
            const auto y_bar = random<double>({s[0], s[1], n}, 4);
            tensor<double> x_bar(s), W_bar({n, s[2]}), b_bar({n});
            fprnn::linear_back(x, W, y_bar, x_bar, W_bar, b_bar, eigen(2));
            checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(fprnn::linear(x, W, b), y_bar); },
                                                     {{"x", x, x_bar}, {"W", W, W_bar}, {"b", b, b_bar}}));
        }
}

TEST_CASE("linear: the adjoint accumulates, and any of its results may be left out") {
    const auto x = random<double>({2, 3, 5}, 1), W = random<double>({4, 5}, 2), y_bar = random<double>({2, 3, 4}, 3);
    tensor<double> x_bar(x.shape()), W_bar(W.shape()), b_bar({4});
    fprnn::linear_back(x, W, y_bar, x_bar, W_bar, b_bar);
    for (int threads : {0, 2}) {
        tensor<double> a(x.shape()), b(W.shape()), c({4});
        a.fill(10), b.fill(10), c.fill(10);
        const auto back = [&](fprnn::view<double> p, fprnn::view<double> q, fprnn::view<double> r) {
            if (threads)
                fprnn::linear_back(x, W, y_bar, p, q, r, eigen(threads));
            else
                fprnn::linear_back(x, W, y_bar, p, q, r);
        };
        back(a, {}, {});
        back({}, b, {});
        back({}, {}, c);
        checks::check_added_to_ten(a, x_bar);
        checks::check_added_to_ten(b, W_bar);
        checks::check_added_to_ten(c, b_bar);
    }
}

TEST_CASE_TEMPLATE("linear: Eigen is equivalent to the reference", T, float, double) {
    for (const shape& s : checks::odd_sizes())
        for (index n : outs) {
            const auto x = random<T>(s, 1), W = random<T>({n, s[2]}, 2), y_bar = random<T>({s[0], s[1], n}, 3);
            CHECK(checks::ulps(fprnn::linear(x, W, {}, eigen(2)), fprnn::linear(x, W)) <= 3);
            tensor<T> x1(s), x2(s), W1(W.shape()), W2(W.shape()), b1({n}), b2({n}), x3(s), W3(W.shape()), b3({n});
            fprnn::linear_back(x, W, y_bar, x1, W1, b1, eigen(2));
            fprnn::linear_back(x, W, y_bar, x2, W2, b2);
            CHECK(checks::ulps(x1, x2) <= 3);
            // Sums over the tokens, in another order: rounding is that of their terms.
            const auto size = [](tensor<T> v) {
                for (T& a : v) a = std::abs(a);
                return v;
            };
            fprnn::linear_back(size(x), size(W), size(y_bar), x3, W3, b3);
            CHECK(checks::ulps(W1, W2, W3) <= 1);
            CHECK(checks::ulps(b1, b2, b3) <= 1);
        }
}

TEST_CASE_TEMPLATE(
    "linear: a token's bits depend neither on its place, nor on the number of tokens, nor on the threads", T, float,
    double) {
    for (index k : {1, 2, 3, 17, 64, 130})
        for (index n : {1, 2, 3, 5, 17, 64}) {
            const auto x = random<T>({1, 21, k}, 1), W = random<T>({n, k}, 2), b = random<T>({n}, 3);
            checks::equal_slices_give_equal_bits(x, 21,
                                                 [&](const auto& v) { return fprnn::linear(v, W, b, eigen(2)); });
            const auto y_bar = random<T>({1, 21, n}, 4);
            checks::equal_slices_give_equal_bits(y_bar, 21, [&](const auto& v) {
                tensor<T> in({v.shape()[0], v.shape()[1], k}), x_bar(in.shape());
                fprnn::linear_back(in, W, v, x_bar, {}, {}, eigen(2));
                return x_bar;
            });
        }
    const auto x = random<T>({3, 50, 17}, 1), W = random<T>({9, 17}, 2), y_bar = random<T>({3, 50, 9}, 3);
    checks::threads_give_equal_bits([&](eigen e) { return fprnn::linear(x, W, {}, e); });
    checks::threads_give_equal_bits([&](eigen e) {
        tensor<T> W_bar(W.shape());
        fprnn::linear_back(x, W, y_bar, {}, W_bar, {}, e);
        return W_bar;
    });
}

TEST_CASE("linear: empty sizes give empty results, and an empty sum is the bias") {
    for (const shape& s : {shape{0, 5, 3}, shape{2, 0, 3}}) {
        const tensor<double> x(s), W({4, 3});
        CHECK(fprnn::linear(x, W, {}, eigen(2)).shape() == shape{s[0], s[1], 4});
        tensor<double> x_bar(s), W_bar({4, 3}), b_bar({4}), y_bar({s[0], s[1], 4});
        fprnn::linear_back(x, W, y_bar, x_bar, W_bar, b_bar, eigen(2));
        CHECK(checks::same_bits(W_bar, tensor<double>({4, 3})));
    }
    const auto b = random<double>({4}, 1);
    const tensor<double> nothing({2, 3, 0}), W({4, 0});
    for (const auto& y : {fprnn::linear(nothing, W, b), fprnn::linear(nothing, W, b, eigen(1))})
        for (index r = 0; r < 6; ++r) CHECK(checks::same_bits(y.data() + 4 * r, b.data(), 4));
    const auto zero = fprnn::linear(nothing, W, {}, eigen(1));
    CHECK(checks::same_bits(zero, tensor<double>({2, 3, 4})));
    CHECK(fprnn::linear(tensor<double>({2, 3, 5}), tensor<double>({0, 5})).shape() == shape{2, 3, 0});
}

TEST_CASE("linear: shapes that do not match are named") {
    const tensor<float> x({2, 3, 7}), W({5, 7}), y({2, 3, 5}), flat({6, 7}), narrow({5, 6}), b({4});
    CHECK_THROWS_WITH_AS(fprnn::linear(flat, W), "linear: x must be [B,T,k], got [6,7]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear(x, x), "linear: W must be [n,k], got [2,3,7]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear(x, narrow), "linear: W is [5,6] but x is [2,3,7]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear(x, W, b), "linear: b must be [5], got [4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear(x, W, tensor<float>({0, 5})), "linear: b must be [5], got [0,5]",
                         argument_error);

    tensor<float> x_bar({2, 3, 7}), W_bar({5, 7}), wrong({5, 6});
    CHECK_THROWS_WITH_AS(fprnn::linear_back(flat, W, y, x_bar, W_bar), "linear_back: x must be [B,T,k], got [6,7]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear_back(x, x, y, x_bar, W_bar), "linear_back: W must be [n,k], got [2,3,7]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear_back(x, narrow, y, x_bar, W_bar), "linear_back: W is [5,6] but x is [2,3,7]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear_back(x, W, x, x_bar, W_bar), "linear_back: y_bar must be [2,3,5], got [2,3,7]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear_back(x, W, y, wrong, W_bar), "linear_back: x_bar must be [2,3,7], got [5,6]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear_back(x, W, y, x_bar, wrong), "linear_back: W_bar must be [5,7], got [5,6]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::linear_back(x, W, y, x_bar, W_bar, wrong), "linear_back: b_bar must be [5], got [5,6]",
                         argument_error);
}

}  // namespace
