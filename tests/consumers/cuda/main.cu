#include <fprnn/cuda/scan.cuh>

#include <cstdio>

namespace fp = fprnn;

int main() {
    try {
        const fp::cuda::device gpu;
        const auto x = copy(gpu, fp::tensor<float>({1, 2, 1}, {0.5f, 0.25f}));
        const auto h = copy_to_host(fp::cuda::scan(x, x));
        return h[1] == 0.375f ? 0 : 1;
    } catch (const fp::cuda::error& e) {
        std::printf("no GPU: %s\n", e.what());
    }
}
