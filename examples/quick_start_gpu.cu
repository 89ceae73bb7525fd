// The quick start on a GPU: the same equation, one argument more.
#include <fprnn/cuda.cuh>

#include <cmath>
#include <cstdio>

namespace fp = fprnn;

int main() try {
    using namespace fp::symbols;
    auto s = cat(in, shift(prev));
    auto Q = fp::householder<4, "Q">(s);
    auto lambda = sigmoid(fp::linear<"lambda">(in));
    auto f = scan(lambda, (1 - lambda) * (Q * fp::linear<"B">(in) + (I - Q) * prev));
    auto layer = fp::fixed_point(f, fp::chunked{.length = 1, .tolerance = 1e-4}, fp::implicit{});
    auto theta = fp::init<float>(layer, {.d_in = 8, .d_inner = 16}, fp::seed{0});
    fp::tensor<float> x({2, 12, 8});  // [B,T,d_in]
    for (fp::index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(fp::random_stream(fp::seed{1}, 0).normal(i));

    fp::cuda::device gpu{0};
    const auto sol = layer(gpu.copy(theta), gpu.copy(x), gpu);
    const auto value = copy_to_host(sol.value), expected = layer(theta, x).value;
    double difference = 0;
    for (fp::index i = 0; i < value.size(); ++i) difference += std::fabs(double(value[i]) - double(expected[i]));
    difference /= double(value.size());
    std::printf("value %s, on average %.0e from the host's\n", value.shape().to_string().c_str(), difference);

    // Training: what train() takes for a backend is where the model runs. Parameters are there, too, until it ends; data are the host's.
    const fp::word_problem data{.group = fp::finite_group("A4"), .seed = {1}};
    const fp::models::sequence_model model(fp::models::fp_mamba<2>(),
                                           {.vocabulary = 12, .classes = 12, .d_model = 32, .d_inner = 32});
    auto parameters = model.init<float>(fp::seed{0});
    const auto end = fp::train(
        model, parameters, {.batch = 64, .length = 8, .steps = 20}, data,
        [](const fp::training_step& step) {
            std::printf("step %lld: loss %.3f\n", static_cast<long long>(step.step), step.loss);
            return true;
        },
        gpu);
    return sol.all_converged() && end.end == fp::training_end::steps && difference < 1e-3 ? 0 : 1;
} catch (const fp::cuda::error& e) {
    std::printf("no GPU: %s\n", e.what());
    return 1;
}
