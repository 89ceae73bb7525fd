// Where CUDA's headers are: the operation as a user calls it, over a runtime and a kernel of the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_scan.hpp"
#include "random.hpp"
#include "scan_bf16_check.hpp"

#include <ops/checks.hpp>

#include <complex>

namespace {

using fprnn::argument_error;
using fprnn::direction;
using fprnn::shape;
using fprnn::tensor;
using fprnn::update;
using gpu::random;
namespace cuda = fprnn::cuda;

template <class T>
void check_equivalent(const shape& s, direction way, bool carries) {
    INFO(s.to_string(), ", carry ", carries);
    const cuda::device gpu;
    const auto lambda = random<T>(s, 1, 0.2, 0.9), u = random<T>(s, 2), h_bar = random<T>(s, 3);
    const shape state{s[0], s[2]};
    const auto carry = carries ? random<T>(state, 4) : tensor<T>();
    const auto carry_bar = carries ? random<T>(state, 5) : tensor<T>();
    const auto there = [&](const tensor<T>& x) { return x.empty() && !carries ? cuda::tensor<T>() : copy(gpu, x); };
    const auto gpu_lambda = copy(gpu, lambda), gpu_carry = there(carry);

    const auto h = fprnn::scan(lambda, u, carry, way);
    const auto gpu_h = cuda::scan(gpu_lambda, copy(gpu, u), gpu_carry, way);
    CHECK(checks::ulps(copy_to_host(gpu_h), h) <= 16);

    fprnn::scan_cotangents<T> once(s), twice(s);
    fprnn::scan_back(lambda, h, carry, h_bar, carry_bar, once, way);
    twice = once;
    fprnn::scan_back(lambda, h, carry, h_bar, carry_bar, twice, way);
    cuda::scan_cotangents<T> bars(gpu, s);
    bars.lambda = copy(gpu, u);  // whatever was there
    const auto back = [&]<update Update>() {
        cuda::scan_back<Update>(gpu_lambda, gpu_h, gpu_carry, copy(gpu, h_bar), there(carry_bar), bars, way);
    };
    const auto check = [&](const fprnn::scan_cotangents<T>& expected) {
        CHECK(checks::ulps(copy_to_host(bars.lambda), expected.lambda) <= 32);
        CHECK(checks::ulps(copy_to_host(bars.u), expected.u) <= 32);
        CHECK(checks::ulps(copy_to_host(bars.carry), expected.carry) <= 32);
    };
    back.template operator()<update::overwrite>();
    check(once);
    back.template operator()<update::accumulate>();
    check(twice);
}

TEST_CASE("cuda scan: the operation is equivalent to the host's, and leaves no memory behind") {
    fake::state = {};
    check_equivalent<float>({2, 5, 3}, direction::forward, true);
    check_equivalent<float>({1, 20, 33}, direction::reversed, false);
    check_equivalent<double>({1, 70, 2}, direction::forward, false);
    check_equivalent<double>({2, 0, 3}, direction::reversed, true);
    check_equivalent<double>({0, 5, 3}, direction::forward, true);
    check_equivalent<std::complex<float>>({2, 5, 3}, direction::reversed, true);
    check_equivalent<std::complex<double>>({1, 20, 33}, direction::forward, true);
    check_equivalent<std::complex<double>>({2, 70, 1}, direction::reversed, false);
    CHECK(fake::state.memory.empty());
}

TEST_CASE("cuda scan: bf16 is added up in float and rounded once, there and back") {
    fake::state = {};
    bf16_scans::check({2, 5, 3}, direction::forward, true);
    bf16_scans::check({1, 70, 33}, direction::reversed, true);
    bf16_scans::check({1, 300, 2}, direction::forward, false);
    CHECK(fake::state.memory.empty());
}

TEST_CASE("cuda scan: whichever call fails, its name is in the error, and no memory is left behind") {
    fake::state = {};
    const cuda::device gpu;
    const auto x = copy(gpu, random<float>({1, 30, 33}, 1));
    const auto before = fake::state.memory.size();
    int call = 0;
    for (;; ++call) {
        fake::state.calls = 0, fake::state.failing = call, fake::state.failed.clear();
        try {
            (void)cuda::scan(x, x);
            break;
        } catch (const cuda::error& e) {
            INFO(e.what());
            CHECK(std::string(e.what()).find(fake::state.failed) == 0);
        }
        CHECK(fake::state.memory.size() == before);
    }
    CHECK(fake::state.failed.empty());
    CHECK(call >= 4);  // three pieces of memory, one of which is cleared
}

TEST_CASE("cuda scan: shapes that do not match and tensors of several devices are named") {
    fake::state = {};
    const cuda::device gpu(0), same(0), other(1);
    const auto on = [](const cuda::device& d, const shape& s) { return cuda::tensor<float>(d, s); };
    const shape s{4, 8, 16};
    const auto a = on(gpu, s), none = cuda::tensor<float>();
    CHECK_THROWS_WITH_AS(cuda::scan(a, on(gpu, {4, 8, 15})), "scan: lambda is [4,8,16] but u is [4,8,15]",
                         argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(on(gpu, {4, 16}), a), "scan: lambda must be [B,T,D], got [4,16]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(a, a, on(gpu, {4, 15})), "scan: carry must be [4,16], got [4,15]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(a, on(other, s)), "scan: u is on GPU 1 but lambda is on GPU 0", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(a, on(same, s)),
                         "scan: u is on GPU 0, of another device object, but lambda is on GPU 0", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan(a, a, on(other, {4, 16})), "scan: carry is on GPU 1 but lambda is on GPU 0",
                         argument_error);
    auto wrong = on(gpu, {4, 8, 15});
    CHECK_THROWS_WITH_AS(cuda::scan_into(wrong, a, a), "scan: lambda is [4,8,16] but h is [4,8,15]", argument_error);

    cuda::scan_cotangents<float> bars(gpu, s), elsewhere(other, s);
    CHECK_THROWS_WITH_AS(cuda::scan_back(a, wrong, none, a, none, bars),
                         "scan_back: lambda is [4,8,16] but h is [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan_back(a, a, none, wrong, none, bars),
                         "scan_back: lambda is [4,8,16] but h_bar is [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan_back(a, a, wrong, a, none, bars), "scan_back: carry must be [4,16], got [4,8,15]",
                         argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan_back(a, a, none, a, wrong, bars),
                         "scan_back: carry_bar must be [4,16], got [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::scan_back(a, a, none, a, none, elsewhere),
                         "scan_back: into.lambda is on GPU 1 but lambda is on GPU 0", argument_error);
    bars.carry = on(gpu, {4, 15});
    CHECK_THROWS_WITH_AS(cuda::scan_back(a, a, none, a, none, bars), "scan_back: into.carry must be [4,16], got [4,15]",
                         argument_error);
}

}  // namespace

#endif
