// The quick start on a GPU: the same equation, one argument more.
#include <fprnn/cuda.cuh>

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace fp = fprnn;

double distance(const fp::tensor<float>& a, const fp::tensor<float>& b) {
    double sum = 0;
    for (fp::index i = 0; i < a.size(); ++i) sum += std::fabs(double(a[i]) - double(b[i]));
    return sum / double(a.size());
}

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
    const auto expected = layer(theta, x).value;

    //! [layer]
    fp::cuda::device gpu{0};
    const auto sol = layer(theta, x, gpu);
    //! [layer]
    std::printf("value %s, on average %.0e from the host's\n", sol.value.shape().to_string().c_str(),
                distance(sol.value, expected));

    //! [there]
    const auto there = gpu.copy(theta);
    const auto stays = layer(there, gpu.copy(x), gpu);
    const auto next = layer(there, gpu.copy(x), stays.carry, gpu);
    const auto value = copy_to_host(next.value);
    //! [there]
    std::printf("and the next %s\n", value.shape().to_string().c_str());

    //! [bf16]
    const auto half = layer(there, gpu.copy(fp::cuda::round_to_bf16(x)), gpu);  // half.value is bf16, half.carry float
    //! [bf16]
    std::printf("of bf16 %.0e\n", distance(fp::cuda::to_float(copy_to_host(half.value)), expected));

    //! [train]
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
    //! [train]

    //! [generate]
    const fp::parameters_on trained(gpu, parameters);  // copied once, for all calls
    fp::models::model_carry<float, fp::cuda::tensor<float>> carry;
    fp::tensor<std::int32_t> token({1, 1}, {3});
    for (int t = 0; t < 4; ++t) {
        const auto logits = copy_to_host(model.evaluate(trained, token, carry, nullptr, gpu));
        for (fp::index v = token[0] = 0; v < 12; ++v)
            if (logits[v] > logits[token[0]]) token[0] = static_cast<std::int32_t>(v);
        std::printf("then %d\n", token[0]);
    }
    //! [generate]
    return sol.all_converged() && end.end == fp::training_end::steps && distance(sol.value, expected) < 1e-3 ? 0 : 1;
} catch (const fp::cuda::error& e) {
    std::printf("no GPU: %s\n", e.what());
    return 1;
}
