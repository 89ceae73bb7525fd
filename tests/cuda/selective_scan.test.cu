#include "distance.hpp"
#include "gpu_main.hpp"

#include <fprnn/cuda/selective_scan.cuh>
#include <fprnn/ops/selective_scan.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using gpu::random;
namespace cuda = fprnn::cuda;

/// Within 64 ε of the largest number: the device's exponentials have other roundings.
template <class T>
bool near(const tensor<T>& a, const tensor<T>& b) {
    return gpu::distance(a, b) <= 64 * std::numeric_limits<T>::epsilon();
}

template <class T>
void check_equivalent(const shape& s, index N) {
    INFO(s.to_string(), ", N = ", N);
    const cuda::device gpu;
    const auto delta = random<T>(s, 1), u = random<T>(s, 2), omega = random<T>({N, s[2]}, 3, 0.3);
    const auto b = random<T>({s[0], s[1], N}, 4), c = random<T>({s[0], s[1], N}, 5), H = random<T>({s[0], N, s[2]}, 6);
    const auto D = random<T>({s[2]}, 7), z = random<T>(s, 8);
    auto expected = fprnn::selective_scan(fprnn::softplus(delta), omega, b, c, u, H);
    const auto open = fprnn::silu(z);
    for (index i = 0; i < u.size(); ++i) expected.y[i] = (expected.y[i] + D[i % s[2]] * u[i]) * open[i];

    const auto gpu_delta = copy(gpu, delta), gpu_u = copy(gpu, u), gpu_omega = copy(gpu, omega), gpu_b = copy(gpu, b),
               gpu_c = copy(gpu, c), gpu_H = copy(gpu, H), gpu_D = copy(gpu, D), gpu_z = copy(gpu, z);
    const auto run = [&] {
        return cuda::selective_scan(gpu_delta, gpu_omega, gpu_b, gpu_c, gpu_u, gpu_H,
                                    {.skip = &gpu_D, .gate = &gpu_z, .softplus = true});
    };
    const auto got = run(), again = run();
    const auto y = copy_to_host(got.y), y_again = copy_to_host(again.y);
    CHECK(near(y, expected.y));
    CHECK(near(copy_to_host(got.H), expected.H));
    CHECK((y.empty() || std::memcmp(y.data(), y_again.data(), static_cast<std::size_t>(y.size()) * sizeof(T)) == 0));
}

template <class T>
void check_back(const shape& s, index N) {
    INFO(s.to_string(), ", N = ", N);
    const cuda::device gpu;
    const auto delta = random<T>(s, 1), u = random<T>(s, 2), omega = random<T>({N, s[2]}, 3, 0.3),
               y_bar = random<T>(s, 7), D = random<T>({s[2]}, 9), z = random<T>(s, 10);
    const auto b = random<T>({s[0], s[1], N}, 4), c = random<T>({s[0], s[1], N}, 5), H = random<T>({s[0], N, s[2]}, 6),
               H_bar = random<T>({s[0], N, s[2]}, 8);
    // The host's, with what is around it written out.
    const auto step = fprnn::softplus(delta);
    const auto y = fprnn::selective_scan(step, omega, b, c, u, H).y;
    fprnn::selective_scan_cotangents<T> expected(s, N);
    tensor<T> through = y_bar, z_bar(s), D_bar({s[2]});
    for (index i = 0; i < y.size(); ++i) {
        const T open = T(1) / (T(1) + std::exp(-z[i])), skip = D[i % s[2]];
        z_bar[i] = y_bar[i] * (y[i] + skip * u[i]) * open * (T(1) + z[i] * (T(1) - open));
        through[i] *= z[i] * open;
        expected.u[i] = skip * through[i];
        D_bar[i % s[2]] += through[i] * u[i];
    }
    fprnn::selective_scan_back(step, omega, b, c, u, H, through, H_bar, expected);
    for (index i = 0; i < y.size(); ++i) expected.delta[i] /= T(1) + std::exp(-delta[i]);

    const auto gpu_D = copy(gpu, D), gpu_z = copy(gpu, z);
    const auto run = [&] {
        const cuda::selective_scan_around<T> around{.skip = &gpu_D, .gate = &gpu_z, .softplus = true};
        cuda::selective_scan_cotangents<T> into(gpu, s, N, around);
        cuda::selective_scan_back(copy(gpu, delta), copy(gpu, omega), copy(gpu, b), copy(gpu, c), copy(gpu, u),
                                  copy(gpu, H), copy(gpu, y_bar), copy(gpu, H_bar), into, around);
        return into;
    };
    const auto got = run(), again = run();
    const auto omega_bar = copy_to_host(got.omega), omega_again = copy_to_host(again.omega);
    CHECK(near(copy_to_host(got.delta), expected.delta));
    CHECK(near(omega_bar, expected.omega));
    CHECK(near(copy_to_host(got.b), expected.b));
    CHECK(near(copy_to_host(got.c), expected.c));
    CHECK(near(copy_to_host(got.u), expected.u));
    CHECK(near(copy_to_host(got.H), expected.H));
    CHECK(near(copy_to_host(got.skip), D_bar));
    CHECK(near(copy_to_host(got.gate), z_bar));
    CHECK(std::memcmp(omega_bar.data(), omega_again.data(), static_cast<std::size_t>(omega.size()) * sizeof(T)) == 0);
}

TEST_CASE("cuda selective scan: the adjoint is equivalent to the host's, with the same bits every time") {
    for (index N : {1, 4, 7, 16, 32}) {
        check_back<float>({2, 19, 5}, N);
        check_back<float>({3, 64, 300}, N);
    }
    for (index N : {1, 8, 16}) check_back<double>({2, 21, 130}, N);
    check_back<float>({2, 0, 5}, 4);
    check_back<float>({0, 3, 5}, 4);
}

TEST_CASE("cuda selective scan: it is equivalent to the host's, with the same bits every time") {
    for (index N : {1, 4, 7, 16, 33, 64}) {
        check_equivalent<float>({2, 19, 5}, N);
        check_equivalent<float>({3, 64, 300}, N);
    }
    for (index N : {1, 16, 32}) check_equivalent<double>({2, 21, 130}, N);
    check_equivalent<float>({2, 0, 5}, 4);
    check_equivalent<float>({0, 3, 5}, 4);
}

}  // namespace
