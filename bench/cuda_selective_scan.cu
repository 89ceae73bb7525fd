// The selective scan on a GPU against what bounds it: the copy of its bytes and its exponentials, each
// measured alone.

#include "cuda_check.hpp"
#include "cuda_yardsticks.cuh"

#include <fprnn/core/random.hpp>
#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/selective_scan.cuh>
#include <fprnn/ops/selective_scan.hpp>

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
struct arrays {
    cuda::tensor<T> omega, delta, u, b, c;
    cuda::selective_scan_value<T> out;
    cuda::selective_scan_cotangents<T> bars;
};

/// The scan and its adjoint, from cotangents that are zero but for the first and the last sequence: ω̄, the
/// sum over all, is then of these two.
template <class T>
void check(const cuda::device& d, const std::string& name, arrays<T>& x, const fprnn::tensor<T>& omega,
           const fprnn::tensor<T>& delta, const fprnn::tensor<T>& u, const fprnn::tensor<T>& b,
           const fprnn::tensor<T>& c) {
    using gpu_bench::ends;
    const shape& s = u.shape();
    auto y_bar = random<T>(s, 6, -1, 1);
    const index sequence = s[1] * s[2];
    if (s[0] > 2) std::fill(y_bar.data() + sequence, y_bar.data() + y_bar.size() - sequence, T(0.0f));
    cuda::selective_scan_into(x.out, x.delta, x.omega, x.b, x.c, x.u);
    cuda::selective_scan_back<fprnn::update::overwrite>(x.delta, x.omega, x.b, x.c, x.u, {}, copy(d, y_bar), {},
                                                        x.bars);

    fprnn::tensor<float> rates(omega.shape());
    for (index i = 0; i < rates.size(); ++i) rates[i] = static_cast<float>(omega[i]);
    const auto step = ends(delta), in = ends(u), write = ends(b), read = ends(c);
    const auto expected = fprnn::selective_scan(step, rates, write, read, in);
    fprnn::selective_scan_cotangents<float> bars({2, s[1], s[2]}, omega.shape()[0]);
    fprnn::selective_scan_back(step, rates, write, read, in, {}, ends(y_bar), {}, bars);
    // The interpreter is 1.1e-6 off on [2,2048,16] and two sequences of the host, of float and of double,
    // 1.2e-6 on [2,2048,2048].
    constexpr double most = 1e-5;
    const auto near = [&](const char* what, const fprnn::tensor<float>& got, const fprnn::tensor<float>& right) {
        gpu_bench::near<T>(name + ", " + what, got, right, most);
    };
    near("y", ends(x.out.y), expected.y);
    near("delta's cotangent", ends(x.bars.delta), bars.delta);
    near("u's cotangent", ends(x.bars.u), bars.u);
    near("b's cotangent", ends(x.bars.b), bars.b);
    near("c's cotangent", ends(x.bars.c), bars.c);
    fprnn::tensor<float> omega_bar(omega.shape());
    const auto there = copy_to_host(x.bars.omega);
    for (index i = 0; i < omega_bar.size(); ++i) omega_bar[i] = static_cast<float>(there[i]);
    near("omega's cotangent", omega_bar, bars.omega);
}

template <class T>
void measure(const cuda::device& d, const shape& s, const std::string& type, gpu_bench::figures& to) {
    constexpr int N = 16;
    const index B = s[0], tokens = s[1], D = s[2];
    const shape n{B, tokens, N};
    const index array = s.count() * index(sizeof(T));
    const auto omega = random<T>({N, D}, 1, -1, 1), delta = random<T>(s, 2, 0.01, 0.1), u = random<T>(s, 3, -1, 1),
               b = random<T>(n, 4, -1, 1), c = random<T>(n, 5, -1, 1);
    const int sets = gpu_bench::rotation(5 * array);
    std::vector<arrays<T>> x;
    for (int i = 0; i < sets; ++i)
        x.push_back({copy(d, omega),
                     copy(d, delta),
                     copy(d, u),
                     copy(d, b),
                     copy(d, c),
                     {cuda::tensor<T>(d, s), cuda::tensor<T>(d, {B, N, D})},
                     cuda::selective_scan_cotangents<T>(d, s, N)});
    const std::string name = s.to_string() + "/" + type;
    check(d, name, x[0], omega, delta, u, b, c);
    const auto at = [&](int i) -> arrays<T>& { return x[static_cast<std::size_t>(i)]; };

    const double forward = seconds(d, sets, [&](int i) {
        arrays<T>& a = at(i);
        cuda::selective_scan_into(a.out, a.delta, a.omega, a.b, a.c, a.u);
    });
    const double back = seconds(d, sets, [&](int i) {
        arrays<T>& a = at(i);
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
        cuda::launch(d, "exponentials", gpu_bench::exponentials_alone<N>, (B * D + 127) / 128, {128, 0}, B * D, tokens,
                     -0.5f, sums.data());
    });
    const double bound = std::max(copy, exponentials);
    std::printf("%s, N = %d: copy %.1f us, exponentials %.1f us\n", name.c_str(), N, copy * 1e6, exponentials * 1e6);
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
    const shape large = gpu_bench::unless_small(shape{16, 2048, 2048}, shape{3, 37, 130});
    measure<cuda::bf16>(d, large, "bf16", to);
    measure<float>(d, large, "float", to);
    measure<float>(d, gpu_bench::unless_small(shape{8, 512, 512}, shape{2, 9, 20}), "float",
                   to);  // of bench/selective_scan.cpp
    return 0;
}

}  // namespace selective_scan_bench

int main(int count, char** arguments) { return gpu_bench::run(count, arguments, selective_scan_bench::report); }
