#pragma once

#include <fprnn/backend/eigen.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Timings as fractions of what the machine can do. Every run of a kernel is paired with a run of its
/// yardstick right after it, with the same threads, and the median of the pairs' ratios is reported: on a
/// busy machine seconds move, ratios stay.
namespace bench {

using fprnn::eigen;
using fprnn::index;

inline double seconds(const std::function<void()>& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Something that the machine does as fast as it can: `amount` units (bytes, flops, numbers) a run.
struct yardstick {
    std::string name;
    double amount;
    std::function<void()> run;
};

/// a = b + s c over arrays of n floats each, `repeats` times: 3 n · 4 bytes, the streams that a program has
/// to move, as for the kernels.
inline yardstick triad(eigen backend, index n, int repeats = 1) {
    struct arrays {
        fprnn::tensor<float> a, b, c;
    };
    auto x = std::make_shared<arrays>(
        arrays{fprnn::tensor<float>({n}), fprnn::tensor<float>({n}), fprnn::tensor<float>({n})});
    x->b.fill(1);
    x->c.fill(2);
    return {"triad", 12.0 * static_cast<double>(n) * repeats, [=]() mutable {
                constexpr index block = 1 << 16;
                backend.for_each((n + block - 1) / block, [&](index i) {
                    const index from = i * block, length = std::min(block, n - from);
                    const float *b = x->b.data() + from, *c = x->c.data() + from;
                    float* a = x->a.data() + from;
                    for (int k = 0; k < repeats; ++k) {
                        eigen::team<float>::each(length, [&](auto lane) {
                            lane.store(a, lane.load(b) + decltype(lane.load(b))(3.0f) * lane.load(c));
                        });
                        benchmark::ClobberMemory();
                    }
                });
            }};
}

/// Eigen's own sgemm of 512 × 512 matrices, `products` of them on every thread.
inline yardstick sgemm(eigen backend, int products = 4) {
    constexpr index n = 512;
    const index threads = backend.threads();
    auto x = std::make_shared<fprnn::tensor<float>>(fprnn::shape{3 * threads, n, n});
    x->fill(0.5f);
    return {"sgemm", 2.0 * n * n * n * static_cast<double>(threads * products), [=]() mutable {
                backend.for_each(threads, [&](index i) {
                    using matrix = Eigen::Map<Eigen::MatrixXf>;
                    const matrix a(&(*x)(3 * i, 0, 0), n, n), b(&(*x)(3 * i + 1, 0, 0), n, n);
                    matrix c(&(*x)(3 * i + 2, 0, 0), n, n);
                    for (int k = 0; k < products; ++k) c.noalias() = b.transpose() * a;
                });
                benchmark::DoNotOptimize(x->data());
            }};
}

/// Eigen's vectorised exp over an array that stays in the first cache, `numbers` in all.
inline yardstick exponentials(eigen backend, index numbers) {
    constexpr index n = 4096;
    const index pieces = numbers / n;
    auto x = std::make_shared<fprnn::tensor<float>>(fprnn::shape{2 * static_cast<index>(backend.threads()), n});
    x->fill(-0.5f);
    return {"exp", static_cast<double>(pieces * n), [=]() mutable {
                const index threads = backend.threads();
                backend.for_each(threads, [&](index i) {
                    using array = Eigen::Array<float, Eigen::Dynamic, 1>;
                    const Eigen::Map<array> from(&(*x)(2 * i, 0), n);
                    Eigen::Map<array> to(&(*x)(2 * i + 1, 0), n);
                    for (index k = i * pieces / threads; k < (i + 1) * pieces / threads; ++k) {
                        to = from.exp();
                        benchmark::ClobberMemory();
                    }
                });
            }};
}

/// Runs `body` and the yardstick by turns. `amount` units of the yardstick are what the body has to do;
/// `formula` says how they were counted.
inline void against(benchmark::State& state, const yardstick& best, double amount, const std::string& formula,
                    const std::function<void()>& body) {
    body();
    best.run();
    std::vector<double> fractions;
    for (auto _ : state) {
        const double own = seconds(body), reference = seconds(best.run);
        state.SetIterationTime(own);
        fractions.push_back(amount / own / (best.amount / reference));
    }
    state.SetLabel(formula);
    state.counters["of_" + best.name] = median(fractions);
    state.counters["rate"] = benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace bench
