// Macros that a program may set for its own use of Eigen: products and packs give what plain loops give.
#include <fprnn/backend/eigen.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/linear.hpp>

#include <cmath>
#include <cstdio>

namespace fp = fprnn;

namespace {

template <class T>
double distance(const fp::tensor<T>& a, const fp::tensor<T>& b) {
    double largest = 0;
    for (fp::index i = 0; i < a.size(); ++i)
        largest = std::fmax(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    return largest;
}

template <class T>
fp::tensor<T> waves(const fp::shape& extents, double frequency) {
    fp::tensor<T> x(extents);
    for (fp::index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(std::sin(frequency * static_cast<double>(i)));
    return x;
}

/// The largest difference between eigen and reference over products of few and many rows.
template <class T>
double worst() {
    double largest = 0;
    for (const fp::index rows : {1, 2, 16, 19})
        for (const fp::index n : {1, 3, 70})
            for (const fp::index k : {1, 4, 300}) {
                const auto x = waves<T>({1, rows, k}, 1.1), W = waves<T>({n, k}, 0.7),
                           y_bar = waves<T>({1, rows, n}, 2.3);
                const auto all = [&](auto backend) {
                    fp::tensor<T> x_bar(x.shape()), W_bar(W.shape());
                    fp::linear_back(x, W, y_bar, x_bar, W_bar, {}, backend);
                    const fp::tensor<T> weight = waves<T>({k}, 1), bias = waves<T>({k}, 2);
                    return std::vector{fp::linear(x, W, {}, backend), fp::layer_norm(x, weight, bias, backend), x_bar,
                                       W_bar};
                };
                const auto fast = all(fp::eigen(1)), plain = all(fp::reference{});
                for (std::size_t i = 0; i < fast.size(); ++i) largest = std::fmax(largest, distance(fast[i], plain[i]));
            }
    return largest;
}

}  // namespace

int main() {
    fp::tensor<float> x({1, 2, 4}), W({3, 4});
    for (fp::index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i);
    for (fp::index i = 0; i < W.size(); ++i) W[i] = static_cast<float>(i);
    const auto y = fp::linear(x, W, {}, fp::eigen(1));
    const bool right = y[0] == 36 && y[1] == 92 && y[5] == 1252;
    const double in_float = worst<float>(), in_double = worst<double>();
    std::printf("%g %g %g; eigen and reference differ by %g and %g\n", static_cast<double>(y[0]),
                static_cast<double>(y[1]), static_cast<double>(y[5]), in_float, in_double);
    return right && in_float < 1e-4 && in_double < 1e-12 ? 0 : 1;
}
