#include <fprnn/ops/layer_norm.hpp>

#include <ops/checks.hpp>

#include <cmath>
#include <limits>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::eigen;
using fprnn::index;
using fprnn::reference;
using fprnn::shape;
using fprnn::tensor;

template <class T>
struct cotangents {
    tensor<T> x, weight, bias;
    explicit cotangents(const shape& s) : x(s), weight({s[2]}), bias({s[2]}) {}
};

template <class T>
struct arguments {
    tensor<T> x, weight, bias, y_bar;

    explicit arguments(const shape& s)
        : x(random<T>(s, 1, 1, 0.5)),
          weight(random<T>({s[2]}, 2)),
          bias(random<T>({s[2]}, 3)),
          y_bar(random<T>(s, 4)) {}
    template <class Backend = reference>
    tensor<T> value(Backend backend = {}) const {
        return fprnn::layer_norm(x, weight, bias, backend);
    }
    template <class Backend = reference>
    void back(cotangents<T>& bars, Backend backend = {}) const {
        fprnn::layer_norm_back(x, weight, y_bar, bars.x, bars.weight, bars.bias, backend);
    }
};

TEST_CASE("layer_norm: it is the plain formula, row by row") {
    for (const shape& s : checks::odd_sizes()) {
        const arguments<double> a(s);
        const index D = s[2];
        tensor<double> y(s);
        for (index r = 0; r < s[0] * s[1]; ++r) {
            const double* x = a.x.data() + r * D;
            double mean = 0, variance = 0;
            for (index d = 0; d < D; ++d) mean += x[d] / static_cast<double>(D);
            for (index d = 0; d < D; ++d) variance += (x[d] - mean) * (x[d] - mean) / static_cast<double>(D);
            for (index d = 0; d < D; ++d)
                y[r * D + d] = a.weight[d] * (x[d] - mean) / std::sqrt(variance + 1e-5) + a.bias[d];
        }
        CHECK(checks::ulps(a.value(), y) <= 4);
    }
}

TEST_CASE("layer_norm: gradients agree with central differences, and accumulate") {
    for (const shape& s : checks::odd_sizes()) {
        arguments<double> a(s);
        cotangents<double> bars(s), more(s);
        a.back(bars);
        checks::check_gradients(
            fprnn::gradcheck([&] { return checks::dot(a.value(), a.y_bar); },
                             {{"x", a.x, bars.x}, {"weight", a.weight, bars.weight}, {"bias", a.bias, bars.bias}}));
        more.x.fill(10), more.weight.fill(10), more.bias.fill(10);
        a.back(more);
        checks::check_added_to_ten(more.x, bars.x);
        checks::check_added_to_ten(more.weight, bars.weight);
        checks::check_added_to_ten(more.bias, bars.bias);
    }
}

TEST_CASE_TEMPLATE("layer_norm: packs are equivalent to the reference", T, float, double) {
    for (const shape& s : checks::odd_sizes()) {
        const arguments<T> a(s);
        CHECK(checks::ulps(a.value(eigen(2)), a.value()) <= 3);
        cotangents<T> p(s), q(s);
        a.back(p, eigen(2));
        a.back(q);
        CHECK(checks::ulps(p.weight, q.weight) <= 2);
        CHECK(checks::ulps(p.bias, q.bias) <= 2);
        if (s[2] > 1) {
            CHECK(checks::ulps(p.x, q.x) <= 4);
            continue;
        }
        // Of one channel it is r (q − q) = 0, or the rounding of q where a compiler contracts q − mean(q).
        constexpr double r = 317;  // at most 1/√ε
        for (const auto* x : {&p.x, &q.x})
            for (index i = 0; i < x->size(); ++i)
                CHECK(std::abs(static_cast<double>((*x)[i])) <=
                      r * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                          std::abs(static_cast<double>(a.weight[0] * a.y_bar[i])));
    }
}

TEST_CASE_TEMPLATE("layer_norm: a token's bits depend neither on its place nor on the threads", T, float, double) {
    for (index D : {1, 3, 17}) {
        arguments<T> a({1, 21, D});
        checks::equal_slices_give_equal_bits(a.x, 21, [&](const auto& v) {
            auto other = a;
            other.x = v;
            return other.value(eigen(2));
        });
        checks::equal_slices_give_equal_bits(a.x, 21, [&](const auto& v) {
            auto other = a;
            other.x = other.y_bar = v;
            cotangents<T> bars(v.shape());
            other.back(bars, eigen(2));
            return bars.x;
        });
    }
    const arguments<T> a({3, 90, 17});
    checks::threads_give_equal_bits([&](eigen e) { return a.value(e); });
    checks::threads_give_equal_bits([&](eigen e) {
        cotangents<T> bars({3, 90, 17});
        a.back(bars, e);
        return bars.weight;
    });
}

TEST_CASE("layer_norm: empty arguments give empty results") {
    for (const shape& s : {shape{0, 5, 3}, shape{2, 0, 3}, shape{2, 5, 0}}) {
        const arguments<float> a(s);
        cotangents<float> bars(s);
        CHECK(a.value(eigen(2)).shape() == s);
        a.back(bars, eigen(2));
        CHECK(std::all_of(bars.weight.begin(), bars.weight.end(), [](float w) { return w == 0; }));
    }
}

TEST_CASE("layer_norm: shapes that do not match are named") {
    const tensor<float> x({2, 5, 3}), w({3}), wrong({2, 5, 4}), wide({4});
    tensor<float> x_bar({2, 5, 3}), w_bar({3}), wrong_bar({5, 3}), wide_bar({4});
    CHECK_THROWS_WITH_AS(fprnn::layer_norm(x, wide, w), "layer_norm: weight must be [3], got [4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::layer_norm(x, w, wide), "layer_norm: bias must be [3], got [4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::layer_norm_back(x, wide, x, x_bar, w_bar, w_bar),
                         "layer_norm_back: weight must be [3], got [4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::layer_norm_back(x, w, wrong, x_bar, w_bar, w_bar),
                         "layer_norm_back: x is [2,5,3] but y_bar is [2,5,4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::layer_norm_back(x, w, x, wrong_bar, w_bar, w_bar),
                         "layer_norm_back: x is [2,5,3] but x_bar is [5,3]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::layer_norm_back(x, w, x, x_bar, wide_bar, w_bar),
                         "layer_norm_back: weight_bar must be [3], got [4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::layer_norm_back(x, w, x, x_bar, w_bar, wide_bar),
                         "layer_norm_back: bias_bar must be [3], got [4]", argument_error);
}

}  // namespace
