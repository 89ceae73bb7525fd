#include <fprnn/cuda.cuh>

#include <cstdio>

namespace fp = fprnn;

int main() {
    using namespace fp::symbols;
    auto s = shift(prev);
    auto f = scan(sigmoid(fp::linear<"lambda">(in)), fp::linear<"B">(in) + fp::linear<"A">(s));
    const auto layer = fp::fixed_point(f, fp::sequential());
    const auto theta = fp::init<float>(layer, {.d_in = 1, .d_inner = 2}, fp::seed{0});
    const fp::tensor<float> x({1, 2, 1}, {0.5f, 0.25f});
    try {
        const fp::cuda::device gpu;
        const auto there = copy(gpu, x);
        const auto h = copy_to_host(fp::cuda::scan(there, there));
        const auto y = layer(gpu.copy(theta), there, gpu);
        return h[1] == 0.375f && y.all_converged() ? 0 : 1;
    } catch (const fp::cuda::error& e) {
        std::printf("%s\n", e.what());
        return e.code() == cudaErrorNoDevice || e.code() == cudaErrorInsufficientDriver ? 0 : 1;
    }
}
