// The training step of the state-tracking example: FP-Mamba, D = 64, N = 16, R = 4, batch 128, T = 16, C = 1,
// exact gradient; against Eigen's sgemm, and where its time goes.

#include "measure.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/adamw.hpp>
#include <fprnn/train/clip.hpp>

namespace {

using namespace fprnn;
using fprnn::index;

constexpr index batch = 128, tokens = 16, D = 64, N = 16;
constexpr int R = 4;
constexpr double tokens_per_step = batch * tokens;

/// eigen with a clock and a counter around its products; for one thread.
struct timed_eigen : eigen {
    using eigen::eigen;
    static inline double product_seconds = 0, flops = 0;

    template <class Product, class T>
    static void measure(Product&& product, matrix<T> a, matrix<const T> b) {
        product_seconds += bench::seconds(product);
        flops += 2.0 * static_cast<double>(a.rows) * static_cast<double>(a.columns) * static_cast<double>(b.columns);
    }
    template <class T>
    static void multiply(matrix<T> y, matrix<const T> x, matrix<const T> w, bool overwrite, view<T> packing = {}) {
        measure<>([&] { eigen::multiply<T>(y, x, w, overwrite, packing); }, y, x);
    }
    template <class T>
    static void multiply_back(matrix<T> x_bar, matrix<const T> y_bar, matrix<const T> w, bool overwrite,
                              view<T> packing = {}) {
        measure<>([&] { eigen::multiply_back<T>(x_bar, y_bar, w, overwrite, packing); }, x_bar, y_bar);
    }
    template <class T>
    static void pack_rows(matrix<const T> x, T* packed) {
        product_seconds += bench::seconds([&] { eigen::pack_rows<T>(x, packed); });
    }
    template <class T>
    static void multiply_packed(matrix<T> y, packed_matrix<T> x, packed_matrix<T> w, bool overwrite) {
        measure<>([&] { eigen::multiply_packed<T>(y, x, w, overwrite); }, y, x.plain);
    }
    template <class T>
    static void multiply_back_packed(matrix<T> x_bar, packed_matrix<T> y_bar, packed_matrix<T> w, bool overwrite) {
        measure<>([&] { eigen::multiply_back_packed<T>(x_bar, y_bar, w, overwrite); }, x_bar, y_bar.plain);
    }
    template <class T>
    static void multiply_weights(matrix<const T> y_bar, weights_parts<T> parts, view<T> packing = {}) {
        product_seconds += bench::seconds([&] { eigen::multiply_weights<T>(y_bar, parts, packing); });
        for (const auto& part : parts)
            flops += 2.0 * static_cast<double>(y_bar.rows * part.w_bar.rows * part.w_bar.columns);
    }
};

/// A training that has begun to learn. Iterations are many at first and settle: what is timed is a step of a
/// run.
template <class Block, class Backend>
class training {
public:
    training(Block block, Backend backend)
        : model_(block, {.vocabulary = 12, .classes = 12}, chunked{.length = 1}, implicit{}),
          backend_(std::move(backend)) {
        for (int i = 0; i < 300; ++i) step();
    }
    void step() {
        problem_(in_, out_, first_);
        first_ += batch;
        tape_.clear();
        const variable loss =
            cross_entropy(tape_, model_(tape_, std::as_const(in_).view(), &how_), std::as_const(out_).view(), &result_);
        tape_.gradient(loss);
        clip_by_global_norm(tape_.parameter_bars(), 1.0);
        optimiser_.step(theta_, tape_.parameter_bars());
    }
    bool learns() const { return result_.loss > 0 && result_.loss < 2.4; }
    double evaluations() const { return static_cast<double>(how_[0].work.evaluations) / tokens_per_step; }

private:
    models::sequence_model<Block> model_;
    Backend backend_;
    word_problem problem_{.group = finite_group("A4"), .seed = {1}, .part = word_problem::split::train};
    parameter_tree<float> theta_ = model_.template init<float>(seed{0});
    adamw<float> optimiser_{theta_, {.learning_rate = 3e-3}};
    tensor<std::int32_t> in_{shape{batch, tokens}}, out_{shape{batch, tokens}};
    std::uint64_t first_ = 0;
    std::vector<solution<float>> how_;
    tape<float, Backend> tape_{theta_, backend_};
    cross_entropy_result<float> result_;
};

/// Floating-point operations of a step's products, counted where they are done.
template <class Block>
double flops_of_a_step(Block block) {
    training<Block, timed_eigen> one(block, timed_eigen(1));
    timed_eigen::flops = 0;
    one.step();
    return timed_eigen::flops;
}

template <class Block>
void training_step(benchmark::State& state, Block block) {
    const eigen backend(static_cast<int>(state.range(0)));
    static const double flops = flops_of_a_step(block);
    training<Block, eigen> one(block, backend);
    const auto best = bench::sgemm(backend);
    bench::against(state, best, flops, "flops of the step's products, over the whole step's time", [&] { one.step(); });
    if (!one.learns()) state.SkipWithError("the model has not begun to learn");
    state.counters["tokens/s"] = benchmark::Counter(tokens_per_step, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["evaluations/token"] = one.evaluations();
}

/// What a token's state, mixer and exponentials take by themselves, with rows that lie as in a step. Seconds
/// a token.
struct parts {
    double state, mixers, exponentials_in_state, exponentials_in_mixers;
};
parts measure_parts() {
    using team = eigen::team<float>;
    using mixer = householder_mixer<R>;
    constexpr index rows = 256;
    tensor<float> A({N, D}), H({rows, N, D}), H_bar({N, D}), A_bar({N, D}), x({rows, 8, D}), n({rows, 4, N}),
        scratch({8 * D});
    A.fill(1);
    x.fill(0.1f);
    n.fill(0.25f);
    const auto state = [&] {
        for (index r = 0; r < rows; ++r) {
            const auto channel = [&](index i) { return &x(r, i, 0); };
            const auto number = [&](index i) { return &n(r, i, 0); };
            kernel::selective_scan_open<team, float>(N, D, A.data(), channel(0), number(0), number(1), &H(r, 0, 0),
                                                     channel(2), channel(3));
            kernel::selective_scan_close<team, float>(N, D, channel(0), number(0), channel(1), &H(r, 0, 0));
            kernel::selective_scan_advance<team, float>({1, N, D, D, N}, D, A.data(), channel(0), number(0), channel(1),
                                                        &H(r, 0, 0), &H(r, 0, 0));
            kernel::selective_scan_back_token<team, float>(
                N, D, A.data(), channel(0), number(0), number(1), channel(1), &H(r, 0, 0), channel(4), H_bar.data(),
                A_bar.data(), channel(5), number(2), number(3), channel(6), scratch.data());
        }
    };
    tensor<float> u({rows, R * D}), a({R}), q({rows, mixer::size(D)}), q_bar({rows, mixer::size(D)}),
        u_bar({rows, R * D}), a_bar({R}), mix_scratch({mixer::scratch(D)});
    u.fill(0.1f);
    const auto mix = [&] {
        for (index r = 0; r < rows; ++r) {
            const float* raw[] = {&u(r, 0), a.data()};
            float* raw_bar[] = {&u_bar(r, 0), a_bar.data()};
            small_array<small_array<float, R>, R> S;
            float *v = &x(r, 0, 0), *w = &x(r, 1, 0), *out = &x(r, 2, 0), *bar = &x(r, 3, 0);
            mixer::prepare<team, float>(D, raw, &q(r, 0));
            for (int twice = 0; twice < 2; ++twice) {  // on the way there and back
                mixer::compact<team, float>(D, &q(r, 0), S);
                mixer::mix<team, float>(D, &q(r, 0), v, w, out, mix_scratch.data());
            }
            mixer::mix<team, float>(D, &q(r, 0), v, nullptr, out, mix_scratch.data());
            mixer::prepare<team, float>(D, raw, &q(r, 0));
            mixer::mix_back<team, float>(D, &q(r, 0), bar, &x(r, 4, 0), &x(r, 5, 0), mix_scratch.data());
            mixer::mix_back_q<team, float>(D, &q(r, 0), v, w, bar, &q_bar(r, 0), mix_scratch.data());
            mixer::prepare_back<team, float>(D, raw, &q(r, 0), &q_bar(r, 0), raw_bar);
            benchmark::DoNotOptimize(S);
        }
    };
    // Decays are powers of two: opened, advanced, in the adjoint. SiLU: prepared twice, and once for its
    // slope.
    tensor<float> powers({rows * D}), of({rows * D});
    of.fill(-0.5f);
    const auto decays = [&] {
        team::each(of.size(), [&](auto lane) { lane.store(powers.data(), exp2(lane.load(of.data()))); });
        benchmark::ClobberMemory();
    };
    const auto exp = bench::exponentials(eigen(1), 1 << 14);
    std::vector<double> of_state, of_mix, of_decays, of_exp;
    for (int i = 0; i < 200; ++i) {
        of_state.push_back(bench::seconds(state) / rows);
        of_mix.push_back(bench::seconds(mix) / rows);
        of_decays.push_back(bench::seconds(decays) / static_cast<double>(of.size()));
        of_exp.push_back(bench::seconds(exp.run) / exp.amount);
    }
    return {bench::median(of_state), bench::median(of_mix), 3 * N * D * bench::median(of_decays),
            3 * R * D * bench::median(of_exp)};
}

/// The step's time with one thread, itemised, in microseconds a token.
void training_step_budget(benchmark::State& state) {
    training<decltype(models::fp_mamba<R>()), timed_eigen> one(models::fp_mamba<R>(), timed_eigen(1));
    const parts p = measure_parts();
    std::vector<double> total, products;
    for (auto _ : state) {
        timed_eigen::product_seconds = 0;
        const double s = bench::seconds([&] { one.step(); });
        state.SetIterationTime(s);
        total.push_back(s / tokens_per_step);
        products.push_back(timed_eigen::product_seconds / tokens_per_step);
    }
    const auto item = [&](const char* name, double seconds) { state.counters[name] = 1e6 * seconds; };
    const double all = bench::median(total), multiplied = bench::median(products);
    item("1_products", multiplied);
    item("2_exponentials", p.exponentials_in_state + p.exponentials_in_mixers);
    item("3_state", p.state - p.exponentials_in_state);
    item("4_mixers", p.mixers - p.exponentials_in_mixers);
    item("5_rest", all - multiplied - p.state - p.mixers);
    item("6_all", all);
    state.SetLabel("microseconds a token, one thread: products timed in the step, the others by themselves");
}

void training_step_fp_mamba(benchmark::State& state) { training_step(state, models::fp_mamba<R>()); }
void training_step_mamba(benchmark::State& state) { training_step(state, models::mamba()); }

BENCHMARK(training_step_fp_mamba)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(training_step_mamba)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(training_step_budget)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
