// Trained models solved by every schedule, against C = T; and one streamed token.

#include "measure.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/trainer.hpp>

#include <ctime>
#include <string>
#include <vector>

namespace {

using fprnn::index;
using fprnn::tensor;

constexpr double tolerance = 1e-5;
constexpr int ell_max = 2000;

/// A block of D = 64, N = 16, R = 4, trained on S3 for 800 steps; made once.
template <class Block>
struct trained {
    using model_type = fprnn::models::sequence_model<Block>;
    fprnn::word_problem test{.group = fprnn::finite_group("S3"), .seed = {1}, .part = fprnn::word_problem::split::test};
    model_type model{Block{}, {.vocabulary = 6, .classes = 6}};
    fprnn::parameter_tree<float> theta = model.template init<float>(fprnn::seed{0});

    trained() {
        const fprnn::word_problem data{.group = fprnn::finite_group("S3"), .seed = {1}};
        fprnn::train(model, theta, {.length = 16, .first_length = 2, .steps = 800, .optimiser = {.weight_decay = 0.1}},
                     data, [](const fprnn::training_step&) { return true; });
    }
    tensor<float> solve(fprnn::chunked schedule, fprnn::view<const std::int32_t> tokens,
                        std::vector<fprnn::solution<float>>& how, fprnn::eigen backend) {
        model.block().schedule = schedule;
        return model.evaluate(theta, tokens, &how, backend);
    }
    static trained& instance() {
        static trained one;
        return one;
    }
};

double share_converged(const std::vector<fprnn::solution<float>>& how, index T) {
    return fprnn::summarise(how, T)->share_converged;
}

/// How many times as fast as C = T a schedule solves the same sequences, both to 1e-5. FP-RNN's fixed point
/// is unique, and schedules must agree; FP-Mamba's need not be, and chunks of several tokens need not find
/// one within ell_max: how far they agree, and the share of sequences for which the schedule and C = T
/// converged, are reported.
template <class Block>
void schedule(benchmark::State& state, bool unique) {
    const index B = 32, T = 128, C = state.range(1);
    fprnn::eigen backend(static_cast<int>(state.range(0)));
    auto& t = trained<Block>::instance();
    tensor<std::int32_t> tokens({B, T}), targets({B, T});
    t.test(tokens, targets, 0);
    std::vector<fprnn::solution<float>> how, how_whole;
    const fprnn::chunked own{C, tolerance, ell_max}, whole{fprnn::whole_sequence, tolerance, ell_max};
    const auto y = t.solve(own, tokens, how, backend), y_whole = t.solve(whole, tokens, how_whole, backend);
    index agree = 0;
    for (index i = 0; i < B * T; ++i) {
        const auto best = [&](const tensor<float>& logits) {
            return std::max_element(logits.data() + 6 * i, logits.data() + 6 * (i + 1)) - (logits.data() + 6 * i);
        };
        agree += best(y) == best(y_whole);
    }
    const double agreement = static_cast<double>(agree) / static_cast<double>(B * T);
    const double converged = share_converged(how, T), converged_whole = share_converged(how_whole, T);
    const bool must = unique || C == 1;
    if ((must && converged < 0.99) || (unique && (converged_whole < 0.99 || agreement < 0.999))) {
        state.SkipWithError("schedules differ");
        return;
    }
    const bench::yardstick best{"C=T", static_cast<double>(B * T),
                                [&] { (void)t.solve(whole, tokens, how_whole, backend); }};
    bench::against(state, best, static_cast<double>(B * T), "S3, trained, [32,128], to 1e-5: tokens",
                   [&] { (void)t.solve(own, tokens, how, backend); });
    state.counters["agree"] = agreement;
    state.counters["converged"] = converged;
    state.counters["converged_T"] = converged_whole;
    state.counters["evaluations"] = static_cast<double>(how[0].work.evaluations) / static_cast<double>(B * T);
    state.counters["evaluations_T"] = static_cast<double>(how_whole[0].work.evaluations) / static_cast<double>(B * T);
}

/// One sequence, token by token with the carry that the last call left.
void streamed_token(benchmark::State& state) {
    fprnn::eigen backend(1);
    const fprnn::layer block(fprnn::models::fp_mamba<4>(), fprnn::sequential({1e-4, 200}));
    const auto theta = fprnn::init<float>(block, {.d_in = 64, .d_inner = 64, .d_state = 16}, fprnn::seed{0});
    tensor<float> x({1, 64, 64}), token({1, 1, 64});
    const fprnn::random_stream random(fprnn::seed{2}, 0);
    for (index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.normal(i));
    const auto whole = block(theta, x, {}, backend);
    tensor<float> carry;
    for (index i = 0; i < 64; ++i) {
        std::copy_n(&x(0, i, 0), 64, token.data());
        auto one = block(theta, token, carry, backend);
        carry = std::move(one.carry);
        for (index d = 0; d < 64; ++d)
            if (!(std::abs(one.value[d] - whole.value(0, i, d)) <= 1e-4f * (1 + std::abs(whole.value(0, i, d))))) {
                state.SkipWithError("streaming differs");
                return;
            }
    }
    for (auto _ : state) {
        auto one = block(theta, token, carry, backend);
        carry = std::move(one.carry);
    }
    state.SetLabel("FP-Mamba block, D = 64, N = 16, R = 4, one sequence");
}

/// Few sequences in units of a whole tile's processor time, T = 16, C = 1, by turns.
template <class Block>
void small_batch(benchmark::State& state) {
    const index B = state.range(0), T = 16, tile = fprnn::eigen::tile;
    auto& t = trained<Block>::instance();
    std::vector<fprnn::solution<float>> how;
    const auto seconds = [&](index sequences) {
        tensor<std::int32_t> tokens({sequences, T}), targets({sequences, T});
        t.test(tokens, targets, 0);
        const std::clock_t start = std::clock();
        for (int i = 0; i < 20; ++i) (void)t.solve({1, tolerance, ell_max}, tokens, how, fprnn::eigen(1));
        return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / 20;
    };
    std::vector<double> ratios;
    for (auto _ : state) {
        const double few = seconds(B), whole = seconds(tile);
        state.SetIterationTime(few);
        ratios.push_back(few / whole);
    }
    state.SetLabel("S3, trained, [" + std::to_string(B) + ",16], C = 1, one thread");
    state.counters["of_16"] = bench::median(ratios);
}
void small_batch_fp_rnn(benchmark::State& state) { small_batch<decltype(fprnn::models::fp_rnn<4>())>(state); }
void small_batch_fp_mamba(benchmark::State& state) { small_batch<decltype(fprnn::models::fp_mamba<4>())>(state); }

/// One sequence, all tokens at once, 20 iterations: what bench/peers/one_sequence.py measures.
template <int R>
void one_sequence_fp_mamba(benchmark::State& state) {
    const index T = 1024, D = 64;
    fprnn::layer l(fprnn::models::fp_mamba<R>());
    l.schedule = {.length = fprnn::whole_sequence, .tolerance = 1e-12, .ell_max = 20};
    const auto theta = fprnn::init<float>(l, {.d_in = D, .d_inner = D, .d_state = 16}, fprnn::seed{0});
    tensor<float> x({1, T, D});
    const fprnn::random_stream r(fprnn::seed{4}, 0);
    for (index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(r.normal(static_cast<std::uint64_t>(i)));
    const fprnn::eigen backend(static_cast<int>(state.range(0)));
    for (auto _ : state) benchmark::DoNotOptimize(l(theta, x, {}, backend).value.data());
    state.SetLabel("[1,1024,64], C = T, 20 iterations");
}

void schedule_fp_rnn(benchmark::State& state) { schedule<decltype(fprnn::models::fp_rnn<4>())>(state, true); }
void schedule_fp_mamba(benchmark::State& state) { schedule<decltype(fprnn::models::fp_mamba<4>())>(state, false); }

void chunks(benchmark::internal::Benchmark* b) {
    for (const int C : {1, 4, 16, 64}) b->Args({2, C});
    // C = T takes seconds, and every run of a schedule is followed by one of it.
    b->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(5);
}
BENCHMARK(schedule_fp_rnn)->Apply(chunks);
BENCHMARK(schedule_fp_mamba)->Apply(chunks);
BENCHMARK(small_batch_fp_rnn)->Arg(1)->Arg(4)->Arg(8)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(small_batch_fp_mamba)->Arg(1)->Arg(4)->Arg(8)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(one_sequence_fp_mamba<1>)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(one_sequence_fp_mamba<4>)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(streamed_token)->Unit(benchmark::kMicrosecond);

}  // namespace
