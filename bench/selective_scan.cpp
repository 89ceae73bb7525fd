// The selective scan, eager, against the rate at which Eigen computes exponentials: N of them a token and
// channel. The scan itself takes powers of two, which cost less.

#include "measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/ops/selective_scan.hpp>

namespace {

using fprnn::eigen;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

struct data {
    tensor<float> delta, omega, b, c, u, y_bar;
    fprnn::selective_scan_value<float> out;
    fprnn::selective_scan_cotangents<float> bars;

    data(const shape& s, index N)
        : delta(s), omega({N, s[2]}), b({s[0], s[1], N}), c({s[0], s[1], N}), u(s), y_bar(s), bars(s, N) {
        std::uint64_t stream = 0;
        for (tensor<float>* x : {&delta, &omega, &b, &c, &u, &y_bar}) {
            const fprnn::random_stream random(fprnn::seed{1}, stream++);
            for (index i = 0; i < x->size(); ++i)
                (*x)[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)));
        }
        for (float& x : delta) x *= 0.1f;
    }
};

/// Against the reference backend, on all sequences.
bool right(const data& d) {
    const auto expected = fprnn::selective_scan(d.delta, d.omega, d.b, d.c, d.u);
    for (index i = 0; i < expected.y.size(); ++i)
        if (!(std::abs(expected.y[i] - d.out.y[i]) <= 1e-4f * (1 + std::abs(expected.y[i])))) return false;
    return true;
}

void selective_scan(benchmark::State& state, bool back) {
    eigen backend(static_cast<int>(state.range(0)));
    const shape s{state.range(1), state.range(2), state.range(3)};
    const index N = state.range(4);
    data d(s, N);
    const auto forward = [&] { fprnn::selective_scan_into(d.out, d.delta, d.omega, d.b, d.c, d.u, {}, backend); };
    const auto backward = [&] {
        fprnn::selective_scan_back(d.delta, d.omega, d.b, d.c, d.u, {}, d.y_bar, {}, d.bars, backend);
    };
    forward();
    if (!right(d)) {
        state.SkipWithError("wrong result");
        return;
    }
    const index exponentials = s.count() * N;
    const std::string shape_and_states = s.to_string() + " N = " + std::to_string(N) + " float: ";
    const auto best = bench::exponentials(backend, exponentials);
    if (back)
        // The states are recomputed twice and then their adjoint needs the decays once more.
        bench::against(state, best, 2.0 * static_cast<double>(exponentials),
                       shape_and_states + "2 B T D N exponentials (states again, adjoint)", backward);
    else
        bench::against(state, best, static_cast<double>(exponentials), shape_and_states + "B T D N exponentials",
                       forward);
}

void selective_scan_forward(benchmark::State& state) { selective_scan(state, false); }
void selective_scan_backward(benchmark::State& state) { selective_scan(state, true); }

BENCHMARK(selective_scan_forward)
    ->Args({1, 8, 512, 512, 16})
    ->Args({2, 8, 512, 512, 16})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(selective_scan_backward)
    ->Args({1, 8, 512, 512, 16})
    ->Args({2, 8, 512, 512, 16})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
