#include "gpu_main.hpp"

#include <fprnn/cuda/scan.cuh>

#include "scan_bf16_check.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>

// Not in an anonymous namespace: doctest nests another one within, and nvcc's stub cannot tell them apart.
__global__ void write_one(int* x) { *x = 1; }

namespace {

using fprnn::argument_error;
using fprnn::direction;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using fprnn::update;
using gpu::random;
namespace cuda = fprnn::cuda;

constexpr direction both[] = {direction::forward, direction::reversed};

template <class T>
bool same_bits(const tensor<T>& a, const tensor<T>& b) {
    return a.shape() == b.shape() &&
           (a.empty() || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0);
}

/// Within 16 ε of the largest number of the sequence, which x may be the end of.
template <class T>
bool near(const cuda::tensor<T>& on_gpu, const tensor<T>& x, const tensor<T>& sequence) {
    const auto a = cuda::copy_to_host(on_gpu);
    REQUIRE(a.shape() == x.shape());
    using real = decltype(std::abs(T()));
    real largest = 0;
    for (T v : sequence) largest = std::max(largest, std::abs(v));
    for (index i = 0; i < a.size(); ++i)
        if (!(std::abs(a[i] - x[i]) <= 16 * std::numeric_limits<real>::epsilon() * largest)) return false;
    return true;
}

template <class T>
T conjugate(T x) {
    if constexpr (requires { x.imag(); })
        return std::conj(x);
    else
        return x;
}

/// h_t = λ_t h_{t−1} + u_t, and its adjoint, which adds to `into`, as they are written: fprnn::scan is
/// compiled for the GPU, too, where std::complex has no operators.
template <class T>
tensor<T> scan_on_host(const tensor<T>& lambda, const tensor<T>& u, const tensor<T>& carry, direction d) {
    tensor<T> h(u.shape());
    const index tokens = u.shape()[1];
    for (index b = 0; b < u.shape()[0]; ++b)
        for (index i = 0; i < u.shape()[2]; ++i) {
            T state = carry.empty() ? T(0) : carry(b, i);
            for (index n = 0; n < tokens; ++n) {
                const index t = d == direction::forward ? n : tokens - 1 - n;
                h(b, t, i) = state = lambda(b, t, i) * state + u(b, t, i);
            }
        }
    return h;
}
template <class T>
void scan_back_on_host(const tensor<T>& lambda, const tensor<T>& h, const tensor<T>& carry, const tensor<T>& h_bar,
                       const tensor<T>& carry_bar, fprnn::scan_cotangents<T>& into, direction d) {
    const index tokens = h.shape()[1], next = d == direction::forward ? 1 : -1;
    for (index b = 0; b < h.shape()[0]; ++b)
        for (index i = 0; i < h.shape()[2]; ++i) {
            T r = carry_bar.empty() ? T(0) : carry_bar(b, i);
            for (index n = tokens - 1; n >= 0; --n) {
                const index t = d == direction::forward ? n : tokens - 1 - n;
                const T before = n > 0 ? h(b, t - next, i) : carry.empty() ? T(0) : carry(b, i);
                const T g = h_bar(b, t, i) + r;
                into.u(b, t, i) += g;
                into.lambda(b, t, i) += g * conjugate(before);
                r = conjugate(lambda(b, t, i)) * g;
            }
            into.carry(b, i) += r;
        }
}

/// Arguments on both sides, and the results of the host.
template <class T>
struct problem {
    cuda::device gpu;
    tensor<T> lambda, u, h_bar, carry, carry_bar, h;
    fprnn::scan_cotangents<T> bars;
    cuda::tensor<T> gpu_lambda, gpu_u, gpu_h_bar, gpu_carry, gpu_carry_bar, gpu_h;
    direction d;

    problem(const shape& s, direction way, bool carries)
        : lambda(random<T>(s, 1, 0.1, 0.9)), u(random<T>(s, 2)), h_bar(random<T>(s, 3)), bars(s), d(way) {
        if (carries) carry = random<T>({s[0], s[2]}, 4), carry_bar = random<T>({s[0], s[2]}, 5);
        h = scan_on_host(lambda, u, carry, d);
        scan_back_on_host(lambda, h, carry, h_bar, carry_bar, bars, d);
        gpu_lambda = copy(gpu, lambda), gpu_u = copy(gpu, u), gpu_h_bar = copy(gpu, h_bar), gpu_h = copy(gpu, h);
        if (carries) gpu_carry = copy(gpu, carry), gpu_carry_bar = copy(gpu, carry_bar);
    }

    cuda::tensor<T> value() const { return cuda::scan(gpu_lambda, gpu_u, gpu_carry, d); }
    template <update Update>
    void back(cuda::scan_cotangents<T>& into) const {
        cuda::scan_back<Update>(gpu_lambda, gpu_h, gpu_carry, gpu_h_bar, gpu_carry_bar, into, d);
    }
};

template <class T>
void check_equivalent(const shape& s) {
    for (direction d : both)
        for (bool carries : {false, true}) {
            INFO(s.to_string(), ", carry ", carries);
            const problem<T> p(s, d, carries);
            CHECK(near(p.value(), p.h, p.h));
            cuda::scan_cotangents<T> bars(p.gpu, s);
            p.template back<update::overwrite>(bars);
            p.template back<update::accumulate>(bars);
            auto twice = p.bars;
            scan_back_on_host(p.lambda, p.h, p.carry, p.h_bar, p.carry_bar, twice, d);
            CHECK(near(bars.lambda, twice.lambda, twice.lambda));
            CHECK(near(bars.u, twice.u, twice.u));
            CHECK(near(bars.carry, twice.carry, twice.u.empty() ? twice.carry : twice.u));
        }
}

TEST_CASE_TEMPLATE("cuda scan: the GPU is equivalent to the reference", T, float, double, std::complex<float>,
                   std::complex<double>) {
    for (const shape& s : {shape{1, 1, 1}, shape{3, 5, 17}, shape{2, 0, 3}, shape{0, 5, 3}, shape{2, 5, 0},
                           shape{2, 700, 5}, shape{2, 90, 67}})
        check_equivalent<T>(s);
}

TEST_CASE_TEMPLATE("cuda scan: the GPU is equivalent to the reference on what is long", T, float, double,
                   std::complex<float>, std::complex<double>) {
    for (const shape& s : {shape{1, 100003, 1}, shape{1, 20011, 33}, shape{5, 300, 100}, shape{2, 1024, 64}})
        check_equivalent<T>(s);
}

TEST_CASE("cuda scan: every run has the same bits") {
    for (const shape& s : {shape{1, 1 << 18, 1}, shape{4, 3000, 65}}) {
        const problem<float> p(s, direction::forward, true);
        const auto h = cuda::copy_to_host(p.value());
        for (int i = 0; i < 20; ++i) CHECK(same_bits(cuda::copy_to_host(p.value()), h));
    }
}

TEST_CASE("cuda scan: bf16 is added up in float and rounded once, there and back") {
    for (direction d : both)
        for (bool carries : {false, true}) bf16_scans::check({2, 1000, 40}, d, carries);
}

TEST_CASE("cuda scan: mistakes are refused, and the device goes on") {
    const cuda::device gpu, other;
    const auto on = [](const cuda::device& d, const shape& s) { return copy(d, tensor<float>(s)); };
    const auto a = on(gpu, {4, 8, 16}), short_channels = on(gpu, {4, 8, 15}), carry = on(gpu, {4, 15});
    CHECK_THROWS_WITH_AS(cuda::scan(a, short_channels), "scan: lambda is [4,8,16] but u is [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(a, a, carry), "scan: carry must be [4,16], got [4,15]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(a, on(other, {4, 8, 16})),
                         "scan: u is on GPU 0, of another device object, but lambda is on GPU 0", argument_error);
    CHECK_THROWS_AS(cuda::device(1000), argument_error);
    CHECK_NOTHROW(gpu.synchronize());
}

TEST_CASE("cuda device: memory that is not there is an error with its size, and the device goes on") {
    const cuda::device gpu;
    for (int i = 0; i < 3; ++i) {
        try {
            (void)gpu.allocate(index(1) << 50);
            FAIL("a pebibyte was given");
        } catch (const cuda::error& e) {
            CHECK(e.code() == cudaErrorMemoryAllocation);
            CHECK(std::string(e.what()).find("1125899906842624 bytes, GPU 0") != std::string::npos);
        }
        const tensor<float> x = random<float>({3, 5, 7}, 1);
        CHECK(same_bits(cuda::copy_to_host(copy(gpu, x)), x));
    }
}

TEST_CASE("cuda device: memory is given back") {
    const auto used = [](const cuda::device& d) {
        d.trim();
        std::size_t free = 0, total = 0;
        REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
        return total - free;
    };
    const cuda::device gpu;
    const auto before = used(gpu);
    for (int i = 0; i < 4; ++i) {
        const cuda::tensor<char> x(gpu, {index(1) << 28});
        CHECK(x.data() != nullptr);
    }
    CHECK(used(gpu) < before + (std::size_t(1) << 27));
}

TEST_CASE("cuda launch: a block that is too large is an error with its size, and the device goes on") {
    const problem<float> p({1, 5, 3}, direction::forward, false);
    using recurrence = cuda::scan_recurrence<float, float>;
    const auto kernel = cuda::detail::scan_kernel<256, 16, 3, recurrence>;
    const cuda::tiling tiles(0, 0, 0, 256, 16);
    const std::string sizes = "(1 blocks of 2048 threads, 0 bytes of shared memory)";
    try {
        cuda::launch(p.gpu, "scan", kernel, 1, {2048, 0}, tiles, {}, recurrence{});
        FAIL("2048 threads were taken");
    } catch (const cuda::error& e) {
        CHECK(std::string(e.what()).find("scan: cudaLaunchKernelEx" + sizes) == 0);
    }
    CHECK(near(p.value(), p.h, p.h));
}

/// CUDA takes the number's lower 32 bits.
TEST_CASE("cuda launch: more blocks than a grid may have are an error with their number, and none of them runs") {
    const cuda::device gpu;
    auto x = copy(gpu, tensor<int>({1}));
    for (const index blocks : {index(1) << 31, (index(1) << 32) + 1}) {
        const std::string call = "one: cudaLaunchKernelEx(" + std::to_string(blocks) +
                                 " blocks of 1 threads, 0 bytes of shared memory), at most 2147483647 blocks: ";
        try {
            cuda::launch(gpu, "one", write_one, blocks, {1, 0}, x.data());
            FAIL("they were taken");
        } catch (const cuda::error& e) {
            CHECK(e.code() == cudaErrorInvalidConfiguration);
            CHECK(std::string(e.what()).find(call) == 0);
        }
    }
    CHECK(cuda::copy_to_host(x)[0] == 0);
    cuda::launch(gpu, "one", write_one, 1, {1, 0}, x.data());
    CHECK(cuda::copy_to_host(x)[0] == 1);
}

}  // namespace
