// What each adjoint costs and how far its gradient is from the exact one, on trained models.

#include "measure.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <optional>

namespace {

using fprnn::index;
using fprnn::tensor;

struct way {
    const char* name;
    fprnn::adjoint how;
};
const way ways[] = {{"implicit", fprnn::implicit{.tolerance = 1e-6, .ell_max = 500}},
                    {"one_step", fprnn::one_step{}},
                    {"truncated{1}", fprnn::truncated{1}},
                    {"truncated{2}", fprnn::truncated{2}},
                    {"truncated{4}", fprnn::truncated{4}},
                    {"truncated{8}", fprnn::truncated{8}},
                    {"neumann{2}", fprnn::neumann{2}},
                    {"neumann{4}", fprnn::neumann{4}},
                    {"neumann{8}", fprnn::neumann{8}},
                    {"unrolled", fprnn::unrolled{}}};

/// A block of D = 64, N = 16, R = 4, trained on S3 for 800 steps by the exact gradient of one-token chunks;
/// made once. Then gradients of one batch of the test, solved to 1e-5.
template <class Block>
struct trained {
    static constexpr index batch = 32, tokens = 16;
    using model_type = fprnn::models::sequence_model<Block>;
    fprnn::eigen backend{2};
    model_type model{Block{}, {.vocabulary = 6, .classes = 6}};
    fprnn::parameter_tree<float> theta = model.template init<float>(fprnn::seed{0});
    tensor<std::int32_t> in{{batch, tokens}}, out{{batch, tokens}};
    double accuracy = 0;
    std::vector<fprnn::solution<float>> how;
    std::optional<fprnn::tape<float>> records;

    trained() {
        const fprnn::finite_group S3("S3");
        fprnn::train(model, theta, {.length = 16, .first_length = 2, .steps = 800, .optimiser = {.weight_decay = 0.1}},
                     fprnn::word_problem{.group = S3, .seed = {1}}, [&](const fprnn::training_step& s) {
                         accuracy = s.token_accuracy;
                         return true;
                     });
        fprnn::word_problem{.group = S3, .seed = {1}, .part = fprnn::word_problem::split::test}(in, out, 0);
        records.emplace(theta, backend);
    }
    void gradient(index C, const fprnn::adjoint& adjoint) {
        model.block().schedule = {.length = C, .tolerance = 1e-5, .ell_max = 500};
        model.block().adjoint = adjoint;
        records->clear();
        const auto logits = model(*records, std::as_const(in).view(), &how);
        records->gradient(fprnn::cross_entropy(*records, logits, std::as_const(out).view()));
    }
    static trained& instance() {
        static trained one;
        return one;
    }
};

/// A gradient in units of the exact one's processor time, both with the way there, and the angle between
/// them.
template <class Block>
void gradient(benchmark::State& state) {
    const index C = state.range(0);
    const way& w = ways[state.range(1)];
    auto& t = trained<Block>::instance();
    if (t.accuracy < 0.9) return state.SkipWithError("the model has not learnt");
    const auto of = [&](const way& it) {
        t.gradient(C, it.how);
        return std::vector<float>(t.records->parameter_bars().begin(), t.records->parameter_bars().end());
    };
    const auto exact = of(ways[0]);
    const double solved = static_cast<double>(t.how[0].adjoint->all_converged());
    const auto got = of(w);
    const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    const double norm = std::sqrt(dot(got, got)), exact_norm = std::sqrt(dot(exact, exact));

    // Of one thread: what lies in a tile's scratch, and the iterates that are kept beside it.
    const fprnn::dims size{.d_in = 64, .d_inner = 64, .d_state = 16};
    const fprnn::method method{.schedule = t.model.block().schedule, .adjoint = w.how};
    const fprnn::engine::solving how(method);
    const fprnn::engine::tile_lengths all({}, t.tokens, fprnn::eigen::tile, 1, C, false);
    const auto measure = [&](fprnn::pass phase) {
        return fprnn::engine::measure_tiles(fprnn::engine::pass_of<float, fprnn::eigen>{
            fprnn::plan_of<Block, float, fprnn::eigen>, t.backend, fprnn::eigen::tile, size, all, phase, how});
    };
    const index scratch = measure(fprnn::pass::backward).scratch;
    const index most = *std::max_element(t.how[0].iterations.begin(), t.how[0].iterations.end());
    const index depth = std::min(most, fprnn::detail::evaluations_back(w.how));
    const index iterates = depth > 1 ? depth * std::min(C, t.tokens) * fprnn::eigen::tile * size.d_inner : 0;

    // By turns, and of the processors: other work on the machine counts for nothing.
    const auto processor_seconds = [](const auto& run) {
        const std::clock_t start = std::clock();
        run();
        return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    };
    std::vector<double> ratios;
    for (auto _ : state) {
        const double own = processor_seconds([&] { t.gradient(C, w.how); }),
                     reference = processor_seconds([&] { t.gradient(C, ways[0].how); });
        state.SetIterationTime(own);
        ratios.push_back(own / reference);
    }
    state.SetLabel(w.name);
    state.counters["times_implicit"] = bench::median(ratios);
    state.counters["cosine"] = dot(got, exact) / (norm * exact_norm);
    state.counters["norm"] = norm / exact_norm;
    state.counters["kB_record"] = static_cast<double>((t.batch + fprnn::eigen::tile - 1) / fprnn::eigen::tile *
                                                      measure(fprnn::pass::forward).kept * 4) /
                                  1000;
    state.counters["kB_way_back"] = static_cast<double>((scratch + iterates) * 4) / 1000;
    state.counters["iterations"] = static_cast<double>(most);
    state.counters["exact_solved"] = solved;
}

void gradient_fp_rnn(benchmark::State& state) { gradient<decltype(fprnn::models::fp_rnn<4>())>(state); }
void gradient_fp_mamba(benchmark::State& state) { gradient<decltype(fprnn::models::fp_mamba<4>())>(state); }

void all_ways(benchmark::internal::Benchmark* b) {
    for (const int C : {1, 16})
        for (int i = 0; i < static_cast<int>(std::size(ways)); ++i) b->Args({C, i});
    b->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(11);
}
BENCHMARK(gradient_fp_rnn)->Apply(all_ways);
BENCHMARK(gradient_fp_mamba)->Apply(all_ways);

}  // namespace
