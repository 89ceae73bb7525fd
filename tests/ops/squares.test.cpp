#include <fprnn/ops/l2_normalise.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/rms_norm.hpp>
#include <fprnn/ops/squares.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::eigen;
using fprnn::index;
using fprnn::reference;
using fprnn::tensor;

enum class kind { rms, layer, l2 };

/// A norm of rows of x and its adjoint for x, in wider numbers.
struct exact_norm {
    std::vector<long double> y, x_bar;
    long double slope = 0;  ///< the largest 1/σ

    template <class T>
    exact_norm(kind k, const tensor<T>& x, const tensor<T>& weight, const tensor<T>& bias, const tensor<T>& y_bar) {
        const index D = x.shape()[2];
        const auto n = static_cast<long double>(D);
        for (index r = 0; r < x.size() / D; ++r) {
            const auto at = [&](const tensor<T>& a, index d) { return static_cast<long double>(a[r * D + d]); };
            const auto w = [&](index d) { return k == kind::l2 ? 1 : static_cast<long double>(weight[d]); };
            long double mean = 0, squares = 0, q = 0, zq = 0;
            for (index d = 0; d < D && k == kind::layer; ++d) mean += at(x, d) / n;
            for (index d = 0; d < D; ++d) squares += (at(x, d) - mean) * (at(x, d) - mean);
            const long double length = std::sqrt(squares);
            const bool inside = k != kind::l2 || length > 1e-5L;
            const long double by = k == kind::l2 ? 1 / std::max(length, 1e-5L) : 1 / std::sqrt(squares / n + 1e-5L);
            const long double share = k == kind::l2 ? 1 : 1 / n;
            for (index d = 0; d < D; ++d) {
                q += k == kind::layer ? w(d) * at(y_bar, d) / n : 0;
                zq += inside ? (at(x, d) - mean) * by * w(d) * at(y_bar, d) * share : 0;
            }
            for (index d = 0; d < D; ++d) {
                const long double z = (at(x, d) - mean) * by;
                y.push_back(w(d) * z + (k == kind::layer ? static_cast<long double>(bias[d]) : 0));
                x_bar.push_back(by * (w(d) * at(y_bar, d) - q - z * zq));
            }
            slope = std::max(slope, by);
        }
    }
};

template <class T>
double error(const tensor<T>& got, const std::vector<long double>& exact, long double scale) {
    long double worst = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const long double e = std::abs(static_cast<long double>(got[static_cast<index>(i)]) - exact[i]);
        worst = e <= worst ? worst : e;
    }
    // A slope 1/σ below the smallest normal number is zero; what it multiplies here is below 16.
    worst -= std::min<long double>(worst, 16 * static_cast<long double>(std::numeric_limits<T>::min()));
    return static_cast<double>(worst / scale) / static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T, class Backend>
void check_norm(kind k, double magnitude, Backend backend) {
    for (const index D : {3, 17}) {
        CAPTURE(D);
        auto x = random<T>({2, 3, D}, 1);
        for (T& v : x) v = static_cast<T>(magnitude * std::tanh(0.3 + static_cast<double>(v)));
        const auto weight = random<T>({D}, 2), bias = random<T>({D}, 3), y_bar = random<T>({2, 3, D}, 4);
        tensor<T> x_bar(x.shape()), weight_bar({D}), bias_bar({D});
        const exact_norm exact(k, x, weight, bias, y_bar);
        const auto y = [&] {
            switch (k) {
                case kind::rms:
                    rms_norm_back(x, weight, y_bar, x_bar, weight_bar, backend);
                    return rms_norm(x, weight, backend);
                case kind::layer:
                    layer_norm_back(x, weight, y_bar, x_bar, weight_bar, bias_bar, backend);
                    return layer_norm(x, weight, bias, backend);
                default: l2_normalise_back(x, y_bar, x_bar, backend); return l2_normalise(x, backend);
            }
        }();
        long double largest = 0;
        for (const long double v : exact.y) largest = std::max(largest, std::abs(v));
        CHECK(error(y, exact.y, largest) <= 16);
        CHECK(error(x_bar, exact.x_bar, exact.slope) <= 64);
    }
}

TEST_CASE_TEMPLATE("squares: norms and their adjoints are right for all numbers, whose squares may overflow or vanish",
                   T, float, double) {
    const bool is_float = sizeof(T) == sizeof(float);
    // In between: where squares begin to leave the range, and where their sum does, or the sum of the
    // numbers.
    const std::vector<double> magnitudes =
        is_float ? std::vector<double>{1e-30, 1, 3e17, 1e18, 4e18, 3e19, 1e25, 1e38, 3.4e38}
                 : std::vector<double>{1e-300, 1, 1e152, 1e153, 1e154, 1e200, 1e307, 1.79e308};
    for (const kind k : {kind::rms, kind::layer, kind::l2})
        for (const double magnitude : magnitudes) {
            CAPTURE(static_cast<int>(k));
            CAPTURE(magnitude);
            check_norm<T>(k, magnitude, reference{});
            check_norm<T>(k, magnitude, eigen(1));
        }
}

TEST_CASE("squares: a constant row of large numbers has a layer norm of zero") {
    tensor<float> x({1, 1, 5}), weight({5}), bias({5});
    x.fill(1e38f);
    weight.fill(1);
    for (const float y : layer_norm(x, weight, bias)) CHECK(std::abs(y) <= 0.01f);
}

TEST_CASE("squares: what is not finite stays so") {
    constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (const float bad : {infinity, -infinity, nan}) {
        tensor<float> x({1, 1, 3}), weight({3}), bias({3});
        x[0] = 1, x[1] = bad, x[2] = 1e38f;
        weight.fill(1);
        CHECK(std::isnan(rms_norm(x, weight)[1]));
        CHECK(std::isnan(layer_norm(x, weight, bias)[1]));
        CHECK(std::isnan(l2_normalise(x)[1]));
        CHECK(std::isnan(l2_normalise(x, eigen(1))[1]));
    }
}

}  // namespace
