// The training step of the state-tracking example: FP-Mamba, D = 64, N = 16, R = 4, batch 128, T = 16, C = 1, exact
// gradient, with Eigen's sgemm in the same process as the yardstick of the machine.

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/adamw.hpp>
#include <fprnn/train/clip.hpp>

#include <benchmark/benchmark.h>

namespace {

using namespace fprnn;

template <class Block>
void training_step(benchmark::State& state, Block block) {
    constexpr fprnn::index batch = 128, tokens = 16;
    constexpr int warm_up = 300;
    const word_problem problem{.group = finite_group("A4"), .seed = {1}, .part = word_problem::split::train};
    const models::sequence_model model(block, {.vocabulary = 12, .classes = 12}, chunked{.length = 1}, implicit{});
    eigen backend(static_cast<int>(state.range(0)));
    auto theta = model.template init<float>(seed{0});
    adamw<float> optimizer(theta, {.learning_rate = 3e-3});
    tensor<std::int32_t> in({batch, tokens}), out({batch, tokens});
    std::uint64_t first = 0;
    double loss = 0;
    std::vector<solution<float>> how;
    const auto step = [&] {
        problem(in, out, first);
        first += batch;
        tape<float> t(theta, backend);
        cross_entropy_result<float> result;
        const variable l =
            cross_entropy(t, model(t, std::as_const(in).view(), &how), std::as_const(out).view(), &result);
        auto gradient = t.gradient(l);
        clip_by_global_norm(gradient, 1.0);
        optimizer.step(theta, gradient);
        loss = result.loss;
    };
    // Iterations are many at first and settle while the model learns: what is timed is a step of a run, not of its start.
    for (int i = 0; i < warm_up; ++i) step();
    for (auto _ : state) step();
    if (!(loss > 0 && loss < 2.4)) state.SkipWithError("the model has not begun to learn");
    state.counters["tokens/s"] =
        benchmark::Counter(static_cast<double>(batch * tokens), benchmark::Counter::kIsIterationInvariantRate);
    state.counters["evaluations/token"] =
        static_cast<double>(how[0].work.evaluations) / static_cast<double>(batch * tokens);
}

void fp_mamba(benchmark::State& state) { training_step(state, models::fp_mamba<4>()); }
void mamba(benchmark::State& state) { training_step(state, models::mamba()); }

void sgemm(benchmark::State& state) {
    constexpr fprnn::index n = 512;
    tensor<float> a({n, n}), b({n, n}), c({n, n});
    a.fill(1.0f);
    b.fill(0.5f);
    for (auto _ : state) eigen::multiply<float>({c.data(), n, n, n}, {a.data(), n, n, n}, {b.data(), n, n, n}, true);
    if (c[0] != 256.0f) state.SkipWithError("wrong product");
    state.counters["flop/s"] = benchmark::Counter(2.0 * n * n * n, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(fp_mamba)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(mamba)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(sgemm);

}  // namespace
