// Layers and training on a GPU: the mixer against the rate at which the GPU copies memory, whole solves, steps of training. Run without
// arguments.

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
void measure_mixer(const cuda::device& d, index rows, index D, double rate) {
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
}

/// Forward of one FP-Mamba layer, whose sequences x are.
template <class X>
void measure_solve(const cuda::device& d, const fprnn::tensor<X>& host_x, const char* name,
                   const fprnn::chunked& schedule) {
    const shape& s = host_x.shape();
    const fprnn::layer layer(fprnn::models::fp_mamba<1>(), schedule);
    const auto theta =
        d.copy(fprnn::init<float>(layer, {.d_in = s[2], .d_inner = s[2], .d_state = 16}, fprnn::seed{4}));
    const auto x = copy(d, host_x);
    fprnn::convergence how;
    const double time = seconds(d, 1, [&](int) { how = layer(theta, x, d); });
    double converged = 0, iterations = 0;
    for (std::size_t b = 0; b < how.iterations.size(); ++b) {
        converged += static_cast<double>(how.tokens_converged[b]);
        iterations += static_cast<double>(how.total_iterations[b]);
    }
    const index chunk = std::min(schedule.length, s[1]), chunks = s[0] * ((s[1] + chunk - 1) / chunk);
    std::printf("fp_mamba<1> %s %s: %.2f ms, %.1f iterations a chunk and sequence, %.4f of the tokens converged\n",
                s.to_string().c_str(), name, time * 1e3, iterations / static_cast<double>(chunks),
                converged / static_cast<double>(s[0] * s[1]));
}

/// A step of training as the host sees it, in a run that has begun to learn.
void measure_training(const cuda::device& d, const char* name) {
    const fprnn::word_problem data{.group = fprnn::finite_group("A5"), .seed = {3}};
    const fprnn::models::sequence_model model(
        fprnn::models::fp_mamba<1>(),
        {.vocabulary = 60, .classes = 60, .d_model = 512, .d_inner = 1024, .d_state = 16, .layers = 1},
        {.length = 1, .tolerance = 1e-4, .ell_max = 100}, fprnn::implicit{.tolerance = 1e-4});
    auto theta = model.init<float>({1});
    constexpr index steps = 120, measured = 40;
    std::vector<double> at, share;
    const auto result = fprnn::train(
        model, theta, {.batch = 512, .length = 16, .steps = steps}, data,
        [&](const fprnn::training_step& s) {
            at.push_back(s.seconds);
            share.push_back(s.share_converged.value_or(1));
            return true;
        },
        d);
    std::vector<double> times;
    for (std::size_t i = at.size() > measured ? at.size() - measured : 1; i < at.size(); ++i)
        times.push_back(at[i] - at[i - 1]);
    if (times.empty()) return;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    std::printf(
        "training step, batch 512, T = 16, d_model 512, D = 1024, N = 16, R = 1, %s: %.2f ms, median of the last "
        "%zu of %lld; %.4f of the tokens converged in the last\n",
        name, *middle * 1e3, times.size(), static_cast<long long>(result.steps), share.back());
}

int report() {
    const cuda::device d;
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, d.gpu()), "cudaGetDeviceProperties");
    const double rate = copy_rate(d);
    std::printf("%s, %d multiprocessors; float; copy %.0f GB/s\n", properties.name, d.multiprocessors(), rate * 1e-9);
    measure_mixer<1>(d, 16 * 2048, 2048, rate);
    measure_mixer<2>(d, 16 * 2048, 2048, rate);
    measure_mixer<4>(d, 16 * 2048, 2048, rate);
    const auto solves = [&](const cuda::device& on, const std::string& how) {
        measure_solve(on, random({512, 16, 256}, 1), ("C = 1" + how).c_str(), {.length = 1});
        measure_solve(on, random({512, 16, 256}, 1), ("C = T" + how).c_str(), fprnn::parallel({}));
    };
    solves(d, "");
    solves(cuda::device(0, {.programs = false, .graphs = false}), ", a kernel a body");
    const auto x = random({16, 2048, 2048}, 1);
    const fprnn::chunked one_step = fprnn::parallel({.ell_max = 1});
    measure_solve(d, x, "C = T, one iteration, float", one_step);
    const cuda::device short_factors(0, {.tf32 = true});
    measure_solve(short_factors, x, "C = T, one iteration, TF32", one_step);
    measure_solve(short_factors, cuda::round_to_bf16(x), "C = T, one iteration, TF32, sequences of bf16", one_step);
    measure_training(d, "float");
    measure_training(cuda::device(0, {.tf32 = true}), "TF32");
    measure_training(cuda::device(0, {.programs = false, .graphs = false}), "float, a kernel a body");
    return 0;
}

}  // namespace layer_bench

int main() { return gpu_bench::run(layer_bench::report); }
