// Layers and training on a GPU: the mixer against the rate at which the GPU copies memory, whole solves, steps of training.

#include "cuda_measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/cuda.cuh>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

// Not in an anonymous namespace, for the types of kernels must have names that nvcc can spell.
namespace layer_bench {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using gpu_bench::rotation;
using gpu_bench::seconds;
namespace cuda = fprnn::cuda;

tensor<float> random(const shape& s, std::uint64_t stream, double deviation = 1) {
    const fprnn::random_stream numbers({7}, stream);
    tensor<float> x(s);
    for (index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(deviation * numbers.normal(i));
    return x;
}

/// Device to device, bytes read and written per second.
double copy_rate(const cuda::device& d) {
    constexpr index n = index(64) << 20;
    std::vector<cuda::tensor<float>> x;
    for (int i = 0; i < 4; ++i) x.emplace_back(d, shape{n}).clear();
    const double time =
        seconds(d, 2, [&](int i) { d.copy(n, x[std::size_t(2 * i)].data(), x[std::size_t(2 * i + 1)].data()); });
    return 2.0 * n * sizeof(float) / time;
}

/// out = Q v + (I − Q) w for rows of D channels, from what prepare has made of its raw numbers.
template <int R>
void measure_mixer(const cuda::device& d, index rows, index D, double rate, gpu_bench::figures& to) {
    using mixer = fprnn::householder_mixer<R>;
    struct arrays {
        cuda::tensor<float> q, v, w, out;
    };
    const auto raw_u = copy(d, random({rows, R * D}, 1)), raw_a = copy(d, random({rows, R}, 2, 0.1));
    const auto v = random({rows, D}, 3), w = random({rows, D}, 4);
    const double bytes = 4.0 * static_cast<double>(rows) * static_cast<double>(mixer::size(D) + 3 * D);
    const int sets = rotation(static_cast<index>(bytes));
    std::vector<arrays> x;
    cuda::tensor<float> scratch(d, {d.workers(rows), std::max<index>(mixer::scratch(D), 1)});
    for (int i = 0; i < sets; ++i) {
        x.push_back({cuda::tensor<float>(d, {rows, mixer::size(D)}), copy(d, v), copy(d, w),
                     cuda::tensor<float>(d, {rows, D})});
        d.rows<float>(rows, fprnn::body::prepare<mixer, 2, float>{
                                D, {{{raw_u.data(), R * D}, {raw_a.data(), R}}}, {x.back().q.data(), mixer::size(D)}});
    }
    const double time = seconds(d, sets, [&](int i) {
        arrays& a = x[static_cast<std::size_t>(i)];
        d.rows<float>(rows, fprnn::body::mix<mixer, float>{D,
                                                           {a.q.data(), mixer::size(D)},
                                                           {a.v.data(), D},
                                                           {a.w.data(), D},
                                                           {a.out.data(), D},
                                                           {scratch.data(), mixer::scratch(D)}});
    });
    std::printf("householder<%d>, apply [%lld,%lld]: %.1f us, %.3f of copy\n", R, static_cast<long long>(rows),
                static_cast<long long>(D), time * 1e6, bytes / time / rate);
    const std::string name = "householder/R=" + std::to_string(R);
    to(name, time);
    to(name + "/of_copy", bytes / time / rate);
}

struct solve_time {
    std::string schedule;
    double seconds, converged;  ///< of the sequences
};

/// Forward of one FP-Mamba layer, whose sequences x are.
template <class X>
solve_time measure_solve(const cuda::device& d, const fprnn::tensor<X>& host_x, const std::string& name,
                         const fprnn::chunked& schedule) {
    const shape& s = host_x.shape();
    const fprnn::layer layer(fprnn::models::fp_mamba<1>(), schedule);
    const auto host_theta = fprnn::init<float>(layer, {.d_in = s[2], .d_inner = s[2], .d_state = 16}, fprnn::seed{4});
    struct arrays {
        decltype(d.copy(host_theta)) theta;
        cuda::tensor<X> x;
    };
    std::vector<arrays> sets;
    do {
        sets.push_back({d.copy(host_theta), copy(d, host_x)});
    } while (static_cast<int>(sets.size()) < rotation(sets[0].theta.values.bytes() + sets[0].x.bytes()));
    fprnn::convergence how;
    const double time = seconds(d, static_cast<int>(sets.size()), [&](int i) {
        const arrays& a = sets[static_cast<std::size_t>(i)];
        how = layer(a.theta, a.x, d);
    });
    double tokens = 0, iterations = 0;
    for (std::size_t b = 0; b < how.iterations.size(); ++b) {
        tokens += static_cast<double>(how.tokens_converged[b]);
        iterations += static_cast<double>(how.total_iterations[b]);
    }
    const auto sequences = std::count(how.status.begin(), how.status.end(), fprnn::status::converged);
    const index chunk = std::min(schedule.length, s[1]), chunks = s[0] * ((s[1] + chunk - 1) / chunk);
    std::printf("fp_mamba<1> %s %s: %.2f ms, %.1f iterations a chunk and sequence, %.4f of the tokens converged\n",
                s.to_string().c_str(), name.c_str(), time * 1e3, iterations / static_cast<double>(chunks),
                tokens / static_cast<double>(s[0] * s[1]));
    return {name, time, static_cast<double>(sequences) / static_cast<double>(s[0])};
}

/// All schedules, and the fastest of those with which most sequences converged.
void measure_schedules(const cuda::device& d, gpu_bench::figures& to) {
    const auto x = random({512, 16, 256}, 1);
    std::vector<solve_time> solves;
    for (index C : {1, 2, 4, 8}) solves.push_back(measure_solve(d, x, "C = " + std::to_string(C), {.length = C}));
    solves.push_back(measure_solve(d, x, "C = T", fprnn::parallel({})));
    const solve_time& best = *std::min_element(solves.begin(), solves.end(), [](const auto& a, const auto& b) {
        return a.converged != b.converged ? a.converged > b.converged : a.seconds < b.seconds;
    });
    std::printf("best schedule: %s, %.2f ms, %.4f of the sequences converged\n", best.schedule.c_str(),
                best.seconds * 1e3, best.converged);
    to("solve/best", best.seconds);
    to("solve/best/converged", best.converged);
}

/// Steps of a training that has begun to learn, each from the end of the one before. Returns whether it came to its end.
bool measure_training(const cuda::device& d, const char* name, gpu_bench::figures* to = nullptr) {
    const fprnn::word_problem data{.group = fprnn::finite_group("A5"), .seed = {3}};
    const fprnn::models::sequence_model model(
        fprnn::models::fp_mamba<1>(),
        {.vocabulary = 60, .classes = 60, .d_model = 512, .d_inner = 1024, .d_state = 16, .layers = 1},
        {.length = 1, .tolerance = 1e-4, .ell_max = 100}, fprnn::implicit{.tolerance = 1e-4});
    auto theta = model.init<float>({1});
    constexpr std::size_t steps = 120, measured = 40;
    std::vector<gpu_bench::event> end(steps);
    double converged = 1;
    const auto result = fprnn::train(
        model, theta, {.batch = 512, .length = 16, .steps = index(steps)}, data,
        [&](const fprnn::training_step& s) {
            end[static_cast<std::size_t>(s.step - 1)].record(d);
            converged = s.share_converged.value_or(1);
            return true;
        },
        d);
    if (result.end != fprnn::training_end::steps) {
        std::printf("training, %s: %s\n", name, result.message.c_str());
        return false;
    }
    std::vector<double> times;
    for (std::size_t i = steps - measured; i < steps; ++i) times.push_back(end[i].seconds_since(end[i - 1]));
    const double time = gpu_bench::median(times);
    std::printf(
        "training step, batch 512, T = 16, d_model 512, D = 1024, N = 16, R = 1, %s: %.2f ms, median of the last "
        "%zu of %zu; %.4f of the tokens converged in the last\n",
        name, time * 1e3, measured, steps, converged);
    if (to) (*to)(std::string("training/") + name, time);
    return true;
}

int report(gpu_bench::figures& to) {
    const cuda::device d, tf32(0, {.tf32 = true}), by_kernels(0, {.programs = false, .graphs = false});
    const std::string name = gpu_bench::name_of(d, to);
    const double rate = copy_rate(d);
    std::printf("%s, %d multiprocessors; float; copy %.0f GB/s\n", name.c_str(), d.multiprocessors(), rate * 1e-9);
    measure_mixer<1>(d, 16 * 2048, 2048, rate, to);
    measure_mixer<2>(d, 16 * 2048, 2048, rate, to);
    measure_mixer<4>(d, 16 * 2048, 2048, rate, to);
    measure_schedules(d, to);
    const auto short_x = random({512, 16, 256}, 1);
    measure_solve(by_kernels, short_x, "C = 1, a kernel a body", {.length = 1});
    measure_solve(by_kernels, short_x, "C = T, a kernel a body", fprnn::parallel({}));
    const auto x = random({16, 2048, 2048}, 1);
    const fprnn::chunked one_step = fprnn::parallel({.ell_max = 1});
    to("iteration/float", measure_solve(d, x, "C = T, one iteration, float", one_step).seconds);
    to("iteration/TF32", measure_solve(tf32, x, "C = T, one iteration, TF32", one_step).seconds);
    to("iteration/bf16",
       measure_solve(tf32, cuda::round_to_bf16(x), "C = T, one iteration, TF32, sequences of bf16", one_step).seconds);
    bool ok = measure_training(d, "float", &to);
    ok = measure_training(tf32, "TF32", &to) && ok;
    ok = measure_training(by_kernels, "float, a kernel a body") && ok;
    return ok ? 0 : 1;
}

}  // namespace layer_bench

int main(int count, char** arguments) { return gpu_bench::run(count, arguments, layer_bench::report); }
