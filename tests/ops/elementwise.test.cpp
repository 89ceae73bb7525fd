#include <larger.hpp>

#include <fprnn/ops/elementwise.hpp>

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

#define FPRNN_FUNCTION(name, formula)                                                                    \
    struct name##_case {                                                                                 \
        template <class T, class Backend = reference>                                                    \
        static tensor<T> value(const tensor<T>& x, Backend b = {}) {                                     \
            return fprnn::name(x, b);                                                                    \
        }                                                                                                \
        template <class T, class Backend = reference>                                                    \
        static void back(const tensor<T>& x, const tensor<T>& y_bar, tensor<T>& x_bar, Backend b = {}) { \
            fprnn::name##_back(x, y_bar, x_bar, b);                                                      \
        }                                                                                                \
        static double plain(double x) { return formula; }                                                \
        static std::string text() { return #name; }                                                      \
    }
FPRNN_FUNCTION(sigmoid, 1 / (1 + std::exp(-x)));
FPRNN_FUNCTION(silu, x / (1 + std::exp(-x)));
FPRNN_FUNCTION(softplus, x > 30 ? x : std::log1p(std::exp(x)));
FPRNN_FUNCTION(exp, std::exp(x));
FPRNN_FUNCTION(tanh, std::tanh(x));
#undef FPRNN_FUNCTION

#define FPRNN_FUNCTIONS sigmoid_case, silu_case, softplus_case, exp_case, tanh_case

TEST_CASE_TEMPLATE("elementwise: values are the plain formula's, on the reference and with packs", F, FPRNN_FUNCTIONS) {
    tensor<double> x({1, 3, 41});
    for (index i = 0; i < x.size(); ++i) x[i] = -20 + 40.0 * static_cast<double>(i) / 122;
    const auto y = F::value(x), packs = F::value(x, eigen(1));
    for (index i = 0; i < x.size(); ++i) {
        const double scale = std::max(1.0, std::abs(F::plain(x[i])));
        CHECK(std::abs(y[i] - F::plain(x[i])) <= 4e-16 * scale);
        CHECK(std::abs(packs[i] - F::plain(x[i])) <= 4e-16 * scale);
    }
}

TEST_CASE_TEMPLATE("elementwise: tanh has the digits of small numbers, too", T, float, double) {
    tensor<T> x({1, 1, 4001});
    for (index i = 0; i < x.size(); ++i)
        x[i] = static_cast<T>((i % 2 ? 1 : -1) * std::pow(10, -30 + 31.5 * static_cast<double>(i) / 4000));
    for (const auto& y : {fprnn::tanh(x), fprnn::tanh(x, eigen(1))}) {
        double worst = 0;
        for (index i = 0; i < x.size(); ++i) {
            const long double exact = std::tanh(static_cast<long double>(x[i]));
            worst = fprnn::testing::larger(worst, static_cast<double>(std::abs((y[i] - exact) / exact)));
        }
        CHECK(worst <= 3 * std::numeric_limits<T>::epsilon());
    }
}

TEST_CASE_TEMPLATE("elementwise: gradients agree with central differences", F, FPRNN_FUNCTIONS) {
    for (const shape& s : checks::odd_sizes()) {
        auto x = random<double>(s, 1, 2);
        const auto y_bar = random<double>(s, 2);
        tensor<double> x_bar(s);
        F::back(x, y_bar, x_bar);
        checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(F::value(x), y_bar); }, {{"x", x, x_bar}}));
    }
}

TEST_CASE_TEMPLATE("elementwise: the adjoint accumulates", F, FPRNN_FUNCTIONS) {
    const auto x = random<double>({2, 3, 5}, 1), y_bar = random<double>({2, 3, 5}, 2);
    tensor<double> once({2, 3, 5}), more({2, 3, 5});
    more.fill(10);
    F::back(x, y_bar, once);
    F::back(x, y_bar, more);
    checks::check_added_to_ten(more, once);
}

template <class F, class T>
void equivalent() {
    for (const shape& s : checks::odd_sizes()) {
        const auto x = random<T>(s, 1, 3), y_bar = random<T>(s, 2);
        CHECK(checks::ulps(F::value(x, eigen(2)), F::value(x)) <= 2);
        tensor<T> a(s), b(s);
        F::back(x, y_bar, a, eigen(2));
        F::back(x, y_bar, b);
        CHECK(checks::ulps(a, b) <= 2);
    }
}

TEST_CASE_TEMPLATE("elementwise: packs are equivalent to the reference", F, FPRNN_FUNCTIONS) {
    equivalent<F, double>();
    equivalent<F, float>();
}

TEST_CASE_TEMPLATE("elementwise: a token's bits do not depend on its place, nor any on the threads", F,
                   FPRNN_FUNCTIONS) {
    for (index D : {1, 3, 17}) {
        const auto x = random<float>({1, 21, D}, 1, 3), y_bar = random<float>({1, 21, D}, 1);
        checks::equal_slices_give_equal_bits(x, 21, [](const auto& v) { return F::value(v, eigen(2)); });
        checks::equal_slices_give_equal_bits(x, 21, [](const auto& v) {
            tensor<float> bar(v.shape());
            F::back(v, v, bar, eigen(2));
            return bar;
        });
    }
    const auto x = random<float>({3, 50, 17}, 1);
    checks::threads_give_equal_bits([&](eigen e) { return F::value(x, e); });
}

TEST_CASE_TEMPLATE("elementwise: arguments far out are finite or infinite as the function is, and NaN stays NaN", T,
                   float, double) {
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const tensor<T> x({1, 1, 6}, {-inf, T(-1000), T(1000), inf, nan, T(0)});
    const auto check = [&](const auto& backend) {
        const auto s = fprnn::sigmoid(x, backend), p = fprnn::softplus(x, backend), t = fprnn::tanh(x, backend),
                   e = fprnn::exp(x, backend);
        CHECK(s[0] <= std::numeric_limits<T>::min());
        CHECK(s[1] <= std::numeric_limits<T>::min());
        CHECK(s[2] == 1);
        CHECK(s[3] == 1);
        CHECK(s[5] == T(0.5));
        CHECK(p[1] <= std::numeric_limits<T>::min());
        CHECK(p[2] == 1000);
        CHECK(p[3] == inf);
        CHECK(t[1] == -1);
        CHECK(t[2] == 1);
        CHECK(t[5] == 0);
        CHECK(e[0] <= 2 * std::numeric_limits<T>::min());
        CHECK(e[3] == inf);
        for (const auto& y : {s, p, t, e, fprnn::silu(x, backend)}) CHECK(std::isnan(y[4]));
    };
    check(reference{});
    check(eigen(1));
}

TEST_CASE("elementwise: constants of a chain have the precision of the type") {
    const double x = 3;
    double y = 0;
    fprnn::chain::row<fprnn::chain::multiply<fprnn::chain::constant<1, 3>, fprnn::chain::argument<0>>,
                      fprnn::serial_team<double>, 1, double>(1, {&x}, &y);
    CHECK(y == 1.0);
    fprnn::chain::row<fprnn::chain::multiply<fprnn::chain::constant<1, 3>, fprnn::chain::argument<0>>,
                      fprnn::pack_team<double>, 1, double>(1, {&x}, &y);
    CHECK(y == 1.0);
}

namespace chain = fprnn::chain;
using gate = chain::add<
    chain::multiply<chain::subtract<chain::constant<1>, chain::apply<chain::sigmoid_function, chain::argument<0>>>,
                    chain::argument<1>>,
    chain::apply<chain::negate_function, chain::multiply<chain::argument<1>, chain::argument<2>>>>;

TEST_CASE_TEMPLATE("chain: (1 − σ(a)) b − b c is the plain formula and has its gradient", Team,
                   fprnn::serial_team<double>, fprnn::pack_team<double>) {
    for (index D : {1, 3, 17}) {
        auto a = random<double>({D}, 1), b = random<double>({D}, 2), c = random<double>({D}, 3);
        const auto y_bar = random<double>({D}, 4);
        tensor<double> a_bar(shape{D}), b_bar(shape{D}), c_bar(shape{D});
        const auto value = [&] {
            tensor<double> y(shape{D});
            chain::row<gate, Team, 3, double>(D, {a.data(), b.data(), c.data()}, y.data());
            return y;
        };
        const auto y = value();
        for (index i = 0; i < D; ++i) {
            const double plain = (1 - 1 / (1 + std::exp(-a[i]))) * b[i] - b[i] * c[i];
            CHECK(y[i] == doctest::Approx(plain).epsilon(1e-14));
        }
        chain::row_back<gate, Team, 3, double>(D, {a.data(), b.data(), c.data()}, y_bar.data(),
                                               {a_bar.data(), b_bar.data(), c_bar.data()});
        checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(value(), y_bar); },
                                                 {{"a", a, a_bar}, {"b", b, b_bar}, {"c", c, c_bar}}));
        auto only_b = b_bar;
        chain::row_back<gate, Team, 3, double>(D, {a.data(), b.data(), c.data()}, y_bar.data(),
                                               {nullptr, only_b.data(), nullptr});
        for (index i = 0; i < D; ++i) CHECK(only_b[i] == doctest::Approx(2 * b_bar[i]).epsilon(1e-14));
    }
}

TEST_CASE_TEMPLATE("elementwise: empty arguments give empty results", F, FPRNN_FUNCTIONS) {
    for (const shape& s : {shape{0, 5, 3}, shape{2, 0, 3}, shape{2, 5, 0}, shape{0}}) {
        const tensor<float> x(s);
        CHECK(F::value(x, eigen(2)).shape() == s);
        tensor<float> x_bar(s);
        F::back(x, x, x_bar, eigen(2));
    }
    CHECK(F::value(tensor<float>(shape{}, {0.5f})).shape() == shape{});
}

TEST_CASE_TEMPLATE("elementwise: shapes that do not match are named", F, FPRNN_FUNCTIONS) {
    const tensor<float> x({2, 3}), wrong({3, 2});
    tensor<float> x_bar({2, 3}), wrong_bar({6});
    CHECK_THROWS_WITH_AS(F::back(x, wrong, x_bar), (F::text() + "_back: x is [2,3] but y_bar is [3,2]").c_str(),
                         argument_error);
    CHECK_THROWS_WITH_AS(F::back(x, x, wrong_bar), (F::text() + "_back: x is [2,3] but x_bar is [6]").c_str(),
                         argument_error);
}

}  // namespace
