// Layers and training on a GPU: the mixer against the rate at which the GPU copies memory, whole solves, a
// streamed token, steps of training.

#include "cuda_check.hpp"
#include "cuda_measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/cuda.cuh>
#include <fprnn/io/npy.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// Not in an anonymous namespace, for the types of kernels must have names that nvcc can spell.
namespace layer_bench {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using gpu_bench::ends;
using gpu_bench::near;
using gpu_bench::rotation;
using gpu_bench::seconds;
using gpu_bench::unless_small;
namespace cuda = fprnn::cuda;

tensor<float> random(const shape& s, std::uint64_t stream, double deviation = 1) {
    const fprnn::random_stream numbers({7}, stream);
    tensor<float> x(s);
    for (index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(deviation * numbers.normal(i));
    return x;
}

/// Device to device, bytes read and written per second.
double copy_rate(const cuda::device& d) {
    const index n = unless_small(index(64) << 20, index(1) << 10);
    std::vector<cuda::tensor<float>> x;
    for (int i = 0; i < 4; ++i) x.emplace_back(d, shape{n}).clear();
    const double time =
        seconds(d, 2, [&](int i) { d.copy(n, x[std::size_t(2 * i)].data(), x[std::size_t(2 * i + 1)].data()); });
    return 2.0 * static_cast<double>(n) * sizeof(float) / time;
}

/// Rows of D channels: out = Q v + (I − Q) w from what prepare has made of its raw numbers, and the adjoint,
/// which adds to v̄, w̄ and q̄.
template <int R>
struct mixing {
    using mixer = fprnn::householder_mixer<R>;
    cuda::tensor<float> q, v, w, out, v_bar, w_bar, q_bar;

    /// As in layers every row of q begins a cache line.
    static index width(index D) { return (mixer::size(D) + 15) / 16 * 16; }

    mixing(const cuda::device& d, const tensor<float>& host_v, const tensor<float>& host_w)
        : q(d, {host_v.shape()[0], width(host_v.shape()[1])}),
          v(copy(d, host_v)),
          w(copy(d, host_w)),
          out(d, host_v.shape()),
          v_bar(d, host_v.shape()),
          w_bar(d, host_v.shape()),
          q_bar(d, q.shape()) {
        for (auto* x : {&q, &v_bar, &w_bar, &q_bar}) x->clear();
    }
    void prepare(const cuda::device& d, const cuda::tensor<float>& u, const cuda::tensor<float>& a) {
        const index D = v.shape()[1];
        d.rows<float>(v.shape()[0], fprnn::body::prepare<mixer, 2, float>{
                                        D, {{{u.data(), R * D}, {a.data(), R}}}, {q.data(), width(D)}});
    }
    void apply(const cuda::device& d, cuda::tensor<float>& scratch) {
        const index D = v.shape()[1];
        d.rows<float>(v.shape()[0], fprnn::body::mix<mixer, float>{D,
                                                                   {q.data(), width(D)},
                                                                   {v.data(), D},
                                                                   {w.data(), D},
                                                                   {out.data(), D},
                                                                   {scratch.data(), mixer::scratch(D)}});
    }
    /// From the cotangent out.
    void vjp(const cuda::device& d, cuda::tensor<float>& scratch) {
        const index D = v.shape()[1];
        d.rows<float>(v.shape()[0], fprnn::body::mix_back<mixer, float>{D,
                                                                        {q.data(), width(D)},
                                                                        {v.data(), D},
                                                                        {w.data(), D},
                                                                        {out.data(), D},
                                                                        {{v_bar.data(), D}},
                                                                        {{w_bar.data(), D}},
                                                                        {q_bar.data(), width(D)},
                                                                        {scratch.data(), mixer::scratch(D)}});
    }

    /// What apply and one vjp have left in the first and the last row.
    void check(const std::string& name, const tensor<float>& raw_u, const tensor<float>& raw_a) const {
        using team = fprnn::reference::team<float>;
        const index D = v.shape()[1];
        const auto host_v = ends(v), host_w = ends(w);
        tensor<float> host_q({2, width(D)}), host_out({2, D}), v_back({2, D}), w_back({2, D}), q_back({2, width(D)}),
            scratch({mixer::scratch(D)});
        for (const index r : {0, 1}) {
            const float* raw[] = {&raw_u(r, 0), &raw_a(r, 0)};
            mixer::template prepare<team, float>(D, raw, &host_q(r, 0));
            mixer::template mix<team, float>(D, &host_q(r, 0), &host_v(r, 0), &host_w(r, 0), &host_out(r, 0),
                                             scratch.data());
            mixer::template mix_back<team, float>(D, &host_q(r, 0), &host_out(r, 0), &v_back(r, 0), &w_back(r, 0),
                                                  scratch.data());
            mixer::template mix_back_q<team, float>(D, &host_q(r, 0), &host_v(r, 0), &host_w(r, 0), &host_out(r, 0),
                                                    &q_back(r, 0), scratch.data());
        }
        // Between two backends of the host 1.6e-7 of 2048 channels; 5.6e-6 of what is small beside the
        // numbers that it is a difference of.
        near(name + ", q", ends(q), host_q, 1e-6);
        near(name + ", out", ends(out), host_out, 1e-6);
        near(name + ", v's cotangent", ends(v_bar), v_back, 1e-6);
        near(name + ", w's cotangent", ends(w_bar), w_back, 2e-5);
        near(name + ", q's cotangent", ends(q_bar), q_back, 2e-5);
    }
};

template <int R>
void measure_mixer(const cuda::device& d, index rows, index D, double rate, gpu_bench::figures& to) {
    using mixer = fprnn::householder_mixer<R>;
    const std::string name = "<" + std::to_string(R) + ">/" + shape{rows, D}.to_string();
    const double numbers = 4.0 * static_cast<double>(rows * D), bytes = (R + 3) * numbers,
                 bytes_back = (3 * R + 7) * numbers;
    const int sets = rotation(static_cast<index>(bytes));
    cuda::tensor<float> scratch(d, {d.workers(rows), std::max<index>(mixer::scratch(D), 1)});
    std::vector<mixing<R>> x;
    {
        const auto raw_u = random({rows, R * D}, 1), raw_a = random({rows, R}, 2, 0.1), v = random({rows, D}, 3),
                   w = random({rows, D}, 4);
        const auto u = copy(d, raw_u), a = copy(d, raw_a);
        for (int i = 0; i < sets; ++i) {
            x.emplace_back(d, v, w);
            x.back().prepare(d, u, a);
            x.back().apply(d, scratch);
        }
        x[0].vjp(d, scratch);
        x[0].check("householder" + name, ends(raw_u), ends(raw_a));
    }
    const auto at = [&](int i) -> mixing<R>& { return x[static_cast<std::size_t>(i)]; };
    const double time = seconds(d, sets, [&](int i) { at(i).apply(d, scratch); }),
                 back = seconds(d, sets, [&](int i) { at(i).vjp(d, scratch); });
    const auto line = [&](const std::string& what, double bytes_of, double time_of) {
        std::printf("%s: %.1f us, %.3f of copy\n", what.c_str(), time_of * 1e6, bytes_of / time_of / rate);
        to(what, time_of);
        to(what + "/of_copy", bytes_of / time_of / rate);
    };
    line("householder_apply" + name, bytes, time);
    line("householder_vjp" + name, bytes_back, back);
}

struct solve_time {
    std::string name;
    double seconds, converged;  ///< of the sequences
};

auto solved_layer(const fprnn::chunked& schedule) { return fprnn::layer(fprnn::models::fp_mamba<1>(), schedule); }

auto parameters_for(const shape& s) {
    return fprnn::init<float>(solved_layer({}), {.d_in = s[2], .d_inner = s[2], .d_state = 16}, fprnn::seed{4});
}

/// Forward of one FP-Mamba layer, whose sequences x are. The first and the last are at most `most` from the
/// host's, which computes the first `tokens` of these: they depend on no later ones.
template <class X>
solve_time measure_solve(const cuda::device& d, const fprnn::tensor<X>& host_x, const std::string& name,
                         const fprnn::chunked& schedule, index tokens, double most) {
    const shape& s = host_x.shape();
    const auto layer = solved_layer(schedule);
    const auto host_theta = parameters_for(s);
    struct arrays {
        decltype(d.copy(host_theta)) theta;
        cuda::tensor<X> x;
    };
    std::vector<arrays> sets;
    do {
        sets.push_back({d.copy(host_theta), copy(d, host_x)});
    } while (static_cast<int>(sets.size()) < rotation(sets[0].theta.values.bytes() + sets[0].x.bytes()));
    const std::string what = "fp_mamba<1>/" + s.to_string() + ", " + name;
    {
        const auto got = layer(sets[0].theta, sets[0].x, d);
        const auto expected = layer(host_theta, ends(host_x, tokens));
        near<X>(what, ends(got.value, tokens), expected.value, most);
    }
    fprnn::convergence how;
    const double time = seconds(d, static_cast<int>(sets.size()), [&](int i) {
        const arrays& a = sets[static_cast<std::size_t>(i)];
        how = layer(a.theta, a.x, d);
    });
    double converged_tokens = 0, iterations = 0;
    for (std::size_t b = 0; b < how.iterations.size(); ++b) {
        converged_tokens += static_cast<double>(how.tokens_converged[b]);
        iterations += static_cast<double>(how.total_iterations[b]);
    }
    const auto sequences = std::count(how.status.begin(), how.status.end(), fprnn::status::converged);
    const index chunk = std::min(schedule.length, s[1]), chunks = s[0] * ((s[1] + chunk - 1) / chunk);
    std::printf("%s: %.2f ms, %.1f iterations a chunk and sequence, %.4f of the tokens converged\n", what.c_str(),
                time * 1e3, iterations / static_cast<double>(chunks),
                converged_tokens / static_cast<double>(s[0] * s[1]));
    return {name, time, static_cast<double>(sequences) / static_cast<double>(s[0])};
}

/// In a folder, which is made: x, what C = T has made of it, which sequences converged then, and the
/// parameters as theta/NAME.npy. A peer that iterates so has to find the same; other schedules may find
/// another of several fixed points.
void write_problem(const cuda::device& d, const std::filesystem::path& folder, const tensor<float>& x) {
    const auto theta = parameters_for(x.shape());
    const auto solution = solved_layer(fprnn::parallel({}))(theta, x, d);
    std::filesystem::create_directories(folder / "theta");
    for (const auto& e : theta.entries()) {
        tensor<float> one(e.shape);
        std::copy_n(theta.data() + e.offset, one.size(), one.data());
        save_npy(folder / "theta" / (e.name + ".npy"), one);
    }
    tensor<std::int32_t> converged({x.shape()[0]});
    for (index b = 0; b < converged.size(); ++b)
        converged[b] = solution.status[static_cast<std::size_t>(b)] == fprnn::status::converged;
    save_npy(folder / "x.npy", x);
    save_npy(folder / "value.npy", solution.value);
    save_npy(folder / "converged.npy", converged);
}

/// All schedules, and the fastest of those with which most sequences converged.
void measure_schedules(const cuda::device& d, const cuda::device& by_kernels, const char* problem,
                       gpu_bench::figures& to) {
    const auto x = random(unless_small(shape{512, 16, 256}, shape{2, 3, 8}), 1);
    // Of two backends of the host 1.9e-7; where rounding decides whether a chunk takes an iteration more,
    // that moves it by the tolerance.
    constexpr double most = 2e-4;
    const auto measure = [&](const cuda::device& on, const std::string& name, const fprnn::chunked& schedule) {
        return measure_solve(on, x, name, schedule, gpu_bench::all_tokens, most);
    };
    std::vector<solve_time> solves;
    for (index C : unless_small<std::vector<index>>({1, 2, 4, 8}, {1, 2}))
        solves.push_back(measure(d, "C = " + std::to_string(C), {.length = C}));
    solves.push_back(measure(d, "C = T", fprnn::parallel({})));
    const solve_time& best = *std::min_element(solves.begin(), solves.end(), [](const auto& a, const auto& b) {
        return a.converged != b.converged ? a.converged > b.converged : a.seconds < b.seconds;
    });
    std::printf("best schedule: %s, %.2f ms, %.4f of the sequences converged\n", best.name.c_str(), best.seconds * 1e3,
                best.converged);
    to("solve/best", best.seconds);
    to("solve/best/converged", best.converged);
    if (problem) write_problem(d, problem, x);
    measure(by_kernels, "C = 1, a kernel a body", {.length = 1});
    measure(by_kernels, "C = T, a kernel a body", fprnn::parallel({}));
}

/// A token of one sequence, with the carry that the last has left; of bench/fixed_point.cpp.
void measure_streaming(const cuda::device& d, gpu_bench::figures& to) {
    const index D = unless_small(64, 8), tokens = unless_small(64, 3);
    const fprnn::layer layer(fprnn::models::fp_mamba<4>(), fprnn::sequential({1e-4, 200}));
    const auto host_theta = fprnn::init<float>(layer, {.d_in = D, .d_inner = D, .d_state = 16}, fprnn::seed{0});
    const auto x = random({1, tokens, D}, 2);
    const auto expected = layer(host_theta, x).value;
    const auto theta = d.copy(host_theta);
    tensor<float> token({1, 1, D}), value({1, tokens, D});
    cuda::tensor<float> there, carry;
    for (index t = 0; t < tokens; ++t) {
        std::copy_n(&x(0, t, 0), D, token.data());
        there = copy(d, token);
        auto one = carry.empty() ? layer(theta, there, d) : layer(theta, there, carry, d);
        carry = std::move(one.carry);
        const auto here = copy_to_host(one.value);
        std::copy_n(here.data(), D, &value(0, t, 0));
    }
    near("streamed_token", value, expected, 2e-4);
    const double time = seconds(d, 1, [&](int) { carry = layer(theta, there, carry, d).carry; });
    std::printf("streamed_token, FP-Mamba block, D = %lld, N = 16, R = 4, one sequence: %.1f us\n",
                static_cast<long long>(D), time * 1e6);
    to("streamed_token", time);
}

/// Steps of a training that has begun to learn, each from the end of the one before. Errors: one that has
/// not.
template <class Block>
void measure_training(const cuda::device& d, const std::string& name, const Block& block, const char* group,
                      const fprnn::models::model_dims& size, index batch, gpu_bench::figures* to = nullptr) {
    const fprnn::word_problem data{.group = fprnn::finite_group(group), .seed = {3}};
    const fprnn::models::sequence_model model(block, size, {.length = 1, .tolerance = 1e-4, .ell_max = 100},
                                              fprnn::implicit{.tolerance = 1e-4});
    auto theta = model.template init<float>({1});
    const index length = unless_small(16, 2);
    const std::size_t steps = unless_small<std::size_t>(120, 2), measured = unless_small<std::size_t>(40, 1);
    std::vector<gpu_bench::event> end(steps);
    std::vector<double> losses;
    std::optional<double> converged;
    const auto result = fprnn::train(
        model, theta, {.batch = batch, .length = length, .steps = index(steps)}, data,
        [&](const fprnn::training_step& s) {
            end[static_cast<std::size_t>(s.step - 1)].record(d);
            losses.push_back(s.loss);
            converged = s.share_converged;
            return true;
        },
        d);
    if (result.end != fprnn::training_end::steps) throw std::runtime_error(name + ": " + result.message);
    std::vector<double> times;
    double last = 0;
    for (std::size_t i = steps - measured; i < steps; ++i) {
        times.push_back(end[i].seconds_since(end[i - 1]));
        last += losses[i] / static_cast<double>(measured);
    }
    const double time = gpu_bench::median(times);
    std::printf("%s, %s, batch %lld, T = %lld, d_model %lld, D = %lld, N = %lld: ", name.c_str(), group,
                static_cast<long long>(batch), static_cast<long long>(length), static_cast<long long>(size.d_model),
                static_cast<long long>(size.d_inner), static_cast<long long>(size.d_state));
    std::printf("loss %.4f at first, %.4f in the last %zu of %zu steps", losses[0], last, measured, steps);
    if (converged) std::printf(", %.4f of the tokens converged in the last", *converged);
    std::printf("\n");
    if (!(unless_small(last, 0.0) < losses[0])) throw std::runtime_error(name + ": the model has not begun to learn");
    std::printf("%s: %.2f ms, median of these\n", name.c_str(), time * 1e3);
    if (to) (*to)(name, time);
}

const char* problem = nullptr;  // the folder that --problem names

int report(gpu_bench::figures& to) {
    const cuda::device d, tf32(0, {.tf32 = true}), by_kernels(0, {.programs = false, .graphs = false});
    const std::string name = gpu_bench::name_of(d, to);
    const double rate = copy_rate(d);
    std::printf("%s, %d multiprocessors; float; copy %.0f GB/s\n", name.c_str(), d.multiprocessors(), rate * 1e-9);
    const index rows = unless_small(16 * 2048, 5), D = unless_small(2048, 40);
    measure_mixer<1>(d, rows, D, rate, to);
    measure_mixer<2>(d, rows, D, rate, to);
    measure_mixer<4>(d, rows, D, rate, to);
    if (!gpu_bench::small) {  // the shape of bench/householder.cpp
        measure_mixer<1>(d, 16384, 512, rate, to);
        measure_mixer<4>(d, 16384, 512, rate, to);
    }
    measure_schedules(d, by_kernels, problem, to);
    measure_streaming(d, to);

    const auto x = random(unless_small(shape{16, 2048, 2048}, shape{2, 3, 8}), 1);
    const auto iteration = [&]<class X>(const cuda::device& on, const char* type, const tensor<X>& from, double most) {
        const auto one = measure_solve(on, from, std::string("C = T, one iteration, ") + type,
                                       fprnn::parallel({.ell_max = 1}), 32, most);
        to(std::string("iteration/") + type, one.seconds);
    };
    // On the host 4.5e-7 between two backends, and 9.7e-5 where the factors of products have TF32's 10 bits.
    iteration(d, "float", x, 5e-6);
    iteration(tf32, "TF32", x, 5e-4);
    iteration(tf32, "bf16", cuda::round_to_bf16(x), 5e-4);  // sequences of bf16, products in TF32

    const auto large =
        unless_small<fprnn::models::model_dims>({.vocabulary = 60, .classes = 60, .d_model = 512, .d_inner = 1024},
                                                {.vocabulary = 60, .classes = 60, .d_model = 8, .d_inner = 12});
    const index batch = unless_small(512, 2);
    measure_training(d, "training_step_fp_mamba<1>/float", fprnn::models::fp_mamba<1>(), "A5", large, batch, &to);
    measure_training(tf32, "training_step_fp_mamba<1>/TF32", fprnn::models::fp_mamba<1>(), "A5", large, batch, &to);
    measure_training(by_kernels, "training_step_fp_mamba<1>/float, a kernel a body", fprnn::models::fp_mamba<1>(), "A5",
                     large, batch);
    // Of bench/training_step.cpp.
    const auto common = unless_small<fprnn::models::model_dims>(
        {.vocabulary = 12, .classes = 12}, {.vocabulary = 12, .classes = 12, .d_model = 8, .d_inner = 12});
    measure_training(d, "training_step_mamba/float", fprnn::models::mamba(), "A4", common, unless_small(128, 2), &to);
    return 0;
}

}  // namespace layer_bench

int main(int count, char** arguments) {
    return gpu_bench::run(count, arguments, layer_bench::report, &layer_bench::problem);
}
