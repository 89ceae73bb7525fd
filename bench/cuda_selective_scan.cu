// The selective scan on a GPU against what bounds it: the copy of its bytes and its exponentials, each measured alone.

#include "cuda_yardsticks.cuh"

#include <fprnn/core/random.hpp>
#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/selective_scan.cuh>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

// Not in an anonymous namespace: there `cuda` would be ambiguous in what nvcc writes.
namespace selective_scan_bench {

using fprnn::index;
using fprnn::shape;
using gpu_bench::seconds;
namespace cuda = fprnn::cuda;

template <class T>
fprnn::tensor<T> random(const shape& s, std::uint64_t stream, double low, double high) {
    const fprnn::random_stream numbers({7}, stream);
    fprnn::tensor<T> x(s);
    for (index i = 0; i < x.size(); ++i)
        x[i] = static_cast<T>(static_cast<float>(low + (high - low) * numbers.uniform(static_cast<std::uint64_t>(i))));
    return x;
}

template <class T>
void measure(const cuda::device& d, const std::string& name, gpu_bench::figures& to) {
    constexpr index B = 16, tokens = 2048, D = 2048;
    constexpr int N = 16;
    const shape s{B, tokens, D}, n{B, tokens, N};
    const index array = s.count() * index(sizeof(T));
    struct arrays {
        cuda::tensor<T> omega, delta, u, b, c;
        cuda::selective_scan_value<T> out;
        cuda::selective_scan_cotangents<T> bars;
    };
    const auto omega = random<T>({N, D}, 1, -1, 1), delta = random<T>(s, 2, 0.01, 0.1), u = random<T>(s, 3, -1, 1),
               b = random<T>(n, 4, -1, 1), c = random<T>(n, 5, -1, 1);
    const int sets = gpu_bench::rotation(5 * array);
    std::vector<arrays> x;
    for (int i = 0; i < sets; ++i)
        x.push_back({copy(d, omega),
                     copy(d, delta),
                     copy(d, u),
                     copy(d, b),
                     copy(d, c),
                     {cuda::tensor<T>(d, s), cuda::tensor<T>(d, {B, N, D})},
                     cuda::selective_scan_cotangents<T>(d, s, N)});
    const auto at = [&](int i) -> arrays& { return x[static_cast<std::size_t>(i)]; };

    const double forward = seconds(d, sets, [&](int i) {
        arrays& a = at(i);
        cuda::selective_scan_into(a.out, a.delta, a.omega, a.b, a.c, a.u);
    });
    const double back = seconds(d, sets, [&](int i) {
        arrays& a = at(i);
        cuda::selective_scan_back<fprnn::update::overwrite>(a.delta, a.omega, a.b, a.c, a.u, {}, a.out.y, {}, a.bars);
    });
    // Δ and u are read, y is written: three arrays, of which a copy moves two.
    const double copy =
        1.5 * seconds(d, sets, [&](int i) {
            cuda::check(cudaMemcpyAsync(at(i).out.y.data(), at(i).u.data(), static_cast<std::size_t>(array),
                                        cudaMemcpyDeviceToDevice, d.stream()),
                        "cudaMemcpyAsync");
        });
    cuda::tensor<float> sums(d, {B * D});
    const double exponentials = seconds(d, 1, [&](int) {
        cuda::launch(d, "exponentials", gpu_bench::exponentials_alone<N>, B * D / 128, {128, 0}, B * D, tokens, -0.5f,
                     sums.data());
    });
    const double bound = std::max(copy, exponentials);
    std::printf("%s, %s, N = %d: copy %.1f us, exponentials %.1f us\n", s.to_string().c_str(), name.c_str(), N,
                copy * 1e6, exponentials * 1e6);
    std::printf("selective_scan %.1f us, %.3f of the larger\n", forward * 1e6, bound / forward);
    std::printf("selective_scan_back %.1f us, %.3f of three times the exponentials\n", back * 1e6,
                3 * exponentials / back);
    to(name + "/copy", copy);
    to(name + "/exponentials", exponentials);
    to(name + "/selective_scan", forward);
    to(name + "/selective_scan/of_bound", bound / forward);
    to(name + "/selective_scan_back", back);
}

int report(gpu_bench::figures& to) {
    const cuda::device d;
    std::printf("%s, %d multiprocessors; medians of single runs, arrays rotated through more than its cache\n",
                gpu_bench::name_of(d, to).c_str(), d.multiprocessors());
    measure<cuda::bf16>(d, "bf16", to);
    measure<float>(d, "float", to);
    return 0;
}

}  // namespace selective_scan_bench

int main(int count, char** arguments) { return gpu_bench::run(count, arguments, selective_scan_bench::report); }
