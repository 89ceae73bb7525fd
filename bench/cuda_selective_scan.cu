// The selective scan on a GPU against what bounds it: the copy of its bytes and its exponentials, each measured alone. Run without arguments.

#include "cuda_yardsticks.cuh"

#include <fprnn/core/random.hpp>
#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/selective_scan.cuh>

#include <algorithm>
#include <cstdio>
#include <vector>

// Not in an anonymous namespace: there `cuda` would be ambiguous in what nvcc writes.
namespace selective_scan_bench {

using fprnn::index;
using fprnn::shape;
using gpu_bench::seconds;
namespace cuda = fprnn::cuda;

template <class T>
cuda::tensor<T> random(const cuda::device& d, const shape& s, std::uint64_t stream, double low, double high) {
    const fprnn::random_stream numbers({7}, stream);
    fprnn::tensor<T> x(s);
    for (index i = 0; i < x.size(); ++i)
        x[i] = static_cast<T>(static_cast<float>(low + (high - low) * numbers.uniform(static_cast<std::uint64_t>(i))));
    return copy(d, x);
}

template <class T>
void measure(const cuda::device& d, const char* name) {
    constexpr index B = 16, tokens = 2048, D = 2048;
    constexpr int N = 16;
    const shape s{B, tokens, D}, n{B, tokens, N};
    const index array = s.count() * index(sizeof(T));
    struct arrays {
        cuda::tensor<T> delta, u, b, c;
    };
    const auto omega = random<T>(d, {N, D}, 1, -1, 1);
    const int sets = gpu_bench::rotation(3 * array);
    std::vector<arrays> x;
    for (int i = 0; i < sets; ++i)
        x.push_back({random<T>(d, s, 2, 0.01, 0.1), random<T>(d, s, 3, -1, 1), random<T>(d, n, 4, -1, 1),
                     random<T>(d, n, 5, -1, 1)});
    const auto at = [&](int i) -> arrays& { return x[static_cast<std::size_t>(i)]; };

    const double forward =
        seconds(d, sets, [&](int i) { (void)cuda::selective_scan(at(i).delta, omega, at(i).b, at(i).c, at(i).u); });
    cuda::selective_scan_cotangents<T> into(d, s, N);
    const double back = seconds(d, sets, [&](int i) {
        cuda::selective_scan_back<fprnn::update::overwrite>(at(i).delta, omega, at(i).b, at(i).c, at(i).u, {}, at(i).u,
                                                            {}, into);
    });
    // Δ and u are read, y is written: three arrays, of which a copy moves two.
    cuda::tensor<T> y(d, s);
    const double copy = 1.5 * seconds(d, sets, [&](int i) {
                            cuda::check(cudaMemcpyAsync(y.data(), at(i).u.data(), static_cast<std::size_t>(array),
                                                        cudaMemcpyDeviceToDevice, d.stream()),
                                        "cudaMemcpyAsync");
                        });
    cuda::tensor<float> sums(d, {B * D});
    const double exponentials = seconds(d, 1, [&](int) {
        cuda::launch(d, "exponentials", gpu_bench::exponentials_alone<N>, B * D / 128, {128, 0}, B * D, tokens, -0.5f,
                     sums.data());
    });
    const double bound = std::max(copy, exponentials);
    std::printf("%s, %s, N = %d: copy %.1f us, exponentials %.1f us\n", s.to_string().c_str(), name, N, copy * 1e6,
                exponentials * 1e6);
    std::printf("selective_scan %.1f us, %.3f of the larger\n", forward * 1e6, bound / forward);
    std::printf("selective_scan_back %.1f us, %.3f of three times the exponentials\n", back * 1e6,
                3 * exponentials / back);
}

int report() {
    const cuda::device d;
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, d.gpu()), "cudaGetDeviceProperties");
    std::printf("%s, %d multiprocessors; medians of single runs\n", properties.name, d.multiprocessors());
    measure<cuda::bf16>(d, "bf16");
    measure<float>(d, "float");
    return 0;
}

}  // namespace selective_scan_bench

int main() { return gpu_bench::run(selective_scan_bench::report); }
