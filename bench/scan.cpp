// The diagonal scan, eager, against the machine's triad: nothing but streams.

#include "measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/ops/scan.hpp>

namespace {

using fprnn::direction;
using fprnn::eigen;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

struct data {
    tensor<float> lambda, u, h, h_bar;
    fprnn::scan_cotangents<float> bars;

    explicit data(const shape& s) : lambda(s), u(s), h(s), h_bar(s), bars(s) {
        const fprnn::random_stream random(fprnn::seed{1}, 0);
        for (index i = 0; i < lambda.size(); ++i) {
            const auto k = static_cast<std::uint64_t>(i);
            lambda[i] = 0.9f + 0.1f * static_cast<float>(random.uniform(2 * k));
            u[i] = static_cast<float>(random.uniform(2 * k + 1));
            h_bar[i] = 1;
        }
    }
};

/// Against the reference backend, on the first sequence.
bool right(const data& d) {
    const index T = d.h.shape()[1], D = d.h.shape()[2];
    const shape one{1, T, D};
    using view = fprnn::view<const float>;
    const auto h = fprnn::scan(view(d.lambda.data(), one), view(d.u.data(), one));
    fprnn::scan_cotangents<float> bars(one);
    fprnn::scan_back(view(d.lambda.data(), one), view(h), {}, view(d.h_bar.data(), one), {}, bars);
    for (index i = 0; i < h.size(); ++i) {
        const auto near = [&](float a, float b) { return std::abs(a - b) <= 1e-4f * (1 + std::abs(b)); };
        if (!near(d.h[i], h[i]) || !near(d.bars.u[i], bars.u[i]) || !near(d.bars.lambda[i], bars.lambda[i]))
            return false;
    }
    return true;
}

void scan(benchmark::State& state, bool back) {
    eigen backend(static_cast<int>(state.range(0)));
    const shape s{state.range(1), state.range(2), state.range(3)};
    data d(s);
    const auto forward = [&] { fprnn::scan_into(d.h, d.lambda, d.u, {}, direction::forward, backend); };
    const auto backward = [&] {
        fprnn::scan_back<fprnn::update::overwrite>(d.lambda, d.h, {}, d.h_bar, {}, d.bars, direction::forward, backend);
    };
    forward();
    backward();
    if (!right(d)) {
        state.SkipWithError("wrong result");
        return;
    }
    const auto numbers = static_cast<double>(s.count());
    const auto best = bench::triad(backend, s.count());
    if (back)
        bench::against(state, best, 5 * 4 * numbers, s.to_string() + " float: 5 B T D 4 bytes (λ, h, ḣ in; ū, λ̄ out)",
                       backward);
    else
        bench::against(state, best, 3 * 4 * numbers, s.to_string() + " float: 3 B T D 4 bytes (λ, u in; h out)",
                       forward);
}

void scan_forward(benchmark::State& state) { scan(state, false); }
void scan_backward(benchmark::State& state) { scan(state, true); }

BENCHMARK(scan_forward)
    ->Args({1, 16, 2048, 512})
    ->Args({2, 16, 2048, 512})
    ->Args({2, 1, 32768, 1024})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(scan_backward)
    ->Args({1, 16, 2048, 512})
    ->Args({2, 16, 2048, 512})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
