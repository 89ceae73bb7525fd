// Where CUDA's headers are: the operation as a user calls it, over a runtime and a kernel of the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_selective_scan.hpp"

#include <fprnn/ops/selective_scan.hpp>

#include <ops/checks.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

template <class T>
void check_equivalent(const shape& s, index N, bool carries) {
    INFO(s.to_string(), ", N = ", N);
    const cuda::device gpu;
    const auto delta = random<T>(s, 1, 0.3, 0.5), u = random<T>(s, 2), omega = random<T>({N, s[2]}, 3, 0.3);
    const auto b = random<T>({s[0], s[1], N}, 4), c = random<T>({s[0], s[1], N}, 5);
    const auto H = carries ? random<T>({s[0], N, s[2]}, 6) : tensor<T>();
    const auto expected = fprnn::selective_scan(delta, omega, b, c, u, H);
    const auto got = cuda::selective_scan(copy(gpu, delta), copy(gpu, omega), copy(gpu, b), copy(gpu, c), copy(gpu, u),
                                          carries ? copy(gpu, H) : cuda::tensor<T>());
    CHECK(checks::ulps(copy_to_host(got.y), expected.y) <= 2);
    CHECK(checks::ulps(copy_to_host(got.H), expected.H) <= 2);
}

TEST_CASE(
    "cuda selective scan: the operation is equivalent to the host's for any number of states, and leaves no memory") {
    fake::state = {};
    for (index N : {1, 4, 5, 8, 16, 17, 32, 33, 64}) check_equivalent<float>({2, 9, 11}, N, N % 2 == 0);
    for (index N : {3, 8, 9, 16, 32}) check_equivalent<double>({1, 6, 7}, N, N % 2 == 0);
    check_equivalent<float>({2, 0, 3}, 4, true);
    check_equivalent<float>({0, 3, 3}, 4, true);
    check_equivalent<float>({2, 3, 0}, 4, true);
    CHECK(fake::state.memory.empty());
}

TEST_CASE("cuda selective scan: skip, gate and softplus reach the kernel") {
    fake::state = {};
    const cuda::device gpu;
    const shape s{1, 4, 3}, n{1, 4, 2};
    const auto x = random<double>(s, 1), omega = random<double>({2, 3}, 2), b = random<double>(n, 3),
               D = random<double>({3}, 4), z = random<double>(s, 5);
    const auto gpu_x = copy(gpu, x), gpu_b = copy(gpu, b), gpu_D = copy(gpu, D), gpu_z = copy(gpu, z);
    const auto got = copy_to_host(cuda::selective_scan(gpu_x, copy(gpu, omega), gpu_b, gpu_b, gpu_x, {},
                                                       {.skip = &gpu_D, .gate = &gpu_z, .softplus = true})
                                      .y);
    auto expected = fprnn::selective_scan(fprnn::softplus(x), omega, b, b, x).y;
    const auto open = fprnn::silu(z);
    for (index i = 0; i < x.size(); ++i) expected[i] = (expected[i] + D[i % 3] * x[i]) * open[i];
    CHECK(checks::ulps(got, expected) <= 2);
}

/// Lets call after call of CUDA fail, of which there are `calls` or more.
template <class Operation>
void check_failures(const Operation& operation, int calls) {
    const auto before = fake::state.memory.size();
    int call = 0;
    for (;; ++call) {
        fake::state.calls = 0, fake::state.failing = call, fake::state.failed.clear();
        try {
            operation();
            break;
        } catch (const cuda::error& e) {
            INFO(e.what());
            CHECK(std::string(e.what()).find(fake::state.failed) == 0);
        }
        CHECK(fake::state.memory.size() == before);
    }
    CHECK(fake::state.failed.empty());
    CHECK(call >= calls);
}

/// What the adjoint adds to cotangents that were there, or writes over them.
template <fprnn::update Update = fprnn::update::accumulate, class T = float>
void check_back(const shape& s, index N, bool carries) {
    INFO(s.to_string(), ", N = ", N);
    const cuda::device gpu;
    const auto delta = random<T>(s, 1, 0.3, 0.5), u = random<T>(s, 2), omega = random<T>({N, s[2]}, 3, 0.3),
               y_bar = random<T>(s, 7);
    const auto b = random<T>({s[0], s[1], N}, 4), c = random<T>({s[0], s[1], N}, 5);
    const auto H = carries ? random<T>({s[0], N, s[2]}, 6) : tensor<T>(),
               H_bar = carries ? random<T>({s[0], N, s[2]}, 8) : tensor<T>();
    fprnn::selective_scan_cotangents<T> expected(s, N);
    for (tensor<T>* x : {&expected.delta, &expected.omega, &expected.b, &expected.c, &expected.u, &expected.H})
        x->fill(T(0.25));
    cuda::selective_scan_cotangents<T> got(gpu, s, N);
    for (auto [to, from] : {std::pair{&got.delta, &expected.delta},
                            {&got.omega, &expected.omega},
                            {&got.b, &expected.b},
                            {&got.c, &expected.c},
                            {&got.u, &expected.u},
                            {&got.H, &expected.H}})
        *to = copy(gpu, *from);
    if (Update == fprnn::update::overwrite) expected = {s, N};
    fprnn::selective_scan_back(delta, omega, b, c, u, H, y_bar, H_bar, expected);
    const auto there = [&](const tensor<T>& x) { return x.empty() ? cuda::tensor<T>() : copy(gpu, x); };
    cuda::selective_scan_back<Update>(copy(gpu, delta), copy(gpu, omega), copy(gpu, b), copy(gpu, c), copy(gpu, u),
                                      there(H), copy(gpu, y_bar), there(H_bar), got);
    CHECK(checks::ulps(copy_to_host(got.delta), expected.delta) <= 16);
    CHECK(checks::ulps(copy_to_host(got.omega), expected.omega) <= 16);
    CHECK(checks::ulps(copy_to_host(got.b), expected.b) <= 16);
    CHECK(checks::ulps(copy_to_host(got.c), expected.c) <= 16);
    CHECK(checks::ulps(copy_to_host(got.u), expected.u) <= 16);
    CHECK(checks::ulps(copy_to_host(got.H), expected.H) <= 16);
}

TEST_CASE(
    "cuda selective scan: the adjoint is equivalent to the host's, accumulates or overwrites, and leaves no memory") {
    fake::state = {};
    constexpr auto overwrite = fprnn::update::overwrite;
    for (index N : {1, 4, 5, 16, 17, 32}) check_back({2, 9, 11}, N, N % 2 == 0);
    for (index N : {3, 8, 16}) check_back<overwrite, double>({1, 6, 7}, N, N % 2 == 0);
    for (const shape& s : {shape{2, 0, 3}, shape{0, 3, 3}, shape{2, 3, 0}}) {
        check_back(s, 4, true);
        check_back<overwrite>(s, 4, true);
    }
    check_back<overwrite>({2, 3, 3}, 0, false);
    CHECK(fake::state.memory.empty());
}

/// ⟨ȳ, y⟩ + ⟨Ḣ, H⟩ along a direction in one argument after the other: its slope by differences is the product
/// with that argument's cotangent.
TEST_CASE("cuda selective scan: the adjoint through softplus, skip and gate is the slope of differences") {
    fake::state = {};
    const cuda::device gpu;
    const shape s{2, 11, 5}, n{2, 11, 3}, states{2, 3, 5};
    enum name : std::size_t { delta, omega, b, c, u, H, skip, gate };
    const std::vector<tensor<double>> x{random<double>(s, 1),   random<double>({3, 5}, 2), random<double>(n, 3),
                                        random<double>(n, 4),   random<double>(s, 5),      random<double>(states, 6),
                                        random<double>({5}, 7), random<double>(s, 8)};
    const auto y_bar = random<double>(s, 9), H_bar = random<double>(states, 10);
    const auto dot = [](const tensor<double>& p, const tensor<double>& q) {
        double sum = 0;
        for (index i = 0; i < p.size(); ++i) sum += p[i] * q[i];
        return sum;
    };
    for (int k = 0; k < 8; ++k) {
        CAPTURE(k);
        const bool softplus = (k & 1) != 0, has_skip = (k & 2) != 0, has_gate = (k & 4) != 0;
        const auto with = [&](const auto& operation, std::size_t moved, double h) {
            std::vector<cuda::tensor<double>> at;
            for (std::size_t i = 0; i < x.size(); ++i) {
                auto value = x[i];
                // Without softplus Δ is positive.
                if (i == delta && !softplus)
                    for (double& step : value) step = std::abs(step) + 0.1;
                const auto way = random<double>(value.shape(), 20);
                if (i == moved)
                    for (index j = 0; j < value.size(); ++j) value[j] += h * way[j];
                at.push_back(copy(gpu, value));
            }
            const cuda::selective_scan_around<double> around{has_skip ? &at[skip] : nullptr,
                                                             has_gate ? &at[gate] : nullptr, softplus};
            return operation(at, around);
        };
        const auto value = [&](const auto& at, const auto& around) {
            const auto out = cuda::selective_scan(at[delta], at[omega], at[b], at[c], at[u], at[H], around);
            return dot(copy_to_host(out.y), y_bar) + dot(copy_to_host(out.H), H_bar);
        };
        const auto got = with(
            [&](const auto& at, const auto& around) {
                cuda::selective_scan_cotangents<double> into(gpu, s, 3, around);
                cuda::selective_scan_back(at[delta], at[omega], at[b], at[c], at[u], at[H], copy(gpu, y_bar),
                                          copy(gpu, H_bar), into, around);
                return into;
            },
            delta, 0);
        const cuda::tensor<double>* bar[] = {&got.delta, &got.omega, &got.b,    &got.c,
                                             &got.u,     &got.H,     &got.skip, &got.gate};
        for (std::size_t i = 0; i < x.size(); ++i) {
            CAPTURE(i);
            if ((i == skip && !has_skip) || (i == gate && !has_gate)) continue;
            const double h = 1e-5, slope = (with(value, i, h) - with(value, i, -h)) / (2 * h);
            CHECK(dot(copy_to_host(*bar[i]), random<double>(x[i].shape(), 20)) == doctest::Approx(slope).epsilon(1e-7));
        }
    }
}

TEST_CASE("cuda selective scan: the skip's and the gate's cotangents are accumulated or overwritten, too") {
    fake::state = {};
    const cuda::device gpu;
    const shape s{3, 4, 5};
    const auto x = copy(gpu, random<float>(s, 1)), omega = copy(gpu, random<float>({2, 5}, 2)),
               b = copy(gpu, random<float>({3, 4, 2}, 3)), D = copy(gpu, random<float>({5}, 4));
    const cuda::selective_scan_around<float> around{.skip = &D, .gate = &x, .softplus = true};
    cuda::selective_scan_cotangents<float> once(gpu, s, 2, around), twice(gpu, s, 2, around);
    const auto back = [&](auto& into) { cuda::selective_scan_back(x, omega, b, b, x, {}, x, {}, into, around); };
    back(once), back(twice), back(twice);
    const auto skip = copy_to_host(once.skip), gate = copy_to_host(once.gate);
    auto expected_skip = skip, expected_gate = gate;
    for (float& v : expected_skip) v *= 2;
    for (float& v : expected_gate) v *= 2;
    CHECK(checks::ulps(copy_to_host(twice.skip), expected_skip) <= 2);
    CHECK(checks::ulps(copy_to_host(twice.gate), expected_gate) <= 2);
    cuda::selective_scan_back<fprnn::update::overwrite>(x, omega, b, b, x, {}, x, {}, twice, around);
    CHECK(checks::ulps(copy_to_host(twice.skip), skip) == 0);
    CHECK(checks::ulps(copy_to_host(twice.gate), gate) == 0);

    // Without sequences a sum is zero.
    const cuda::tensor<float> none(gpu, {0, 4, 5}), none_b(gpu, {0, 4, 2});
    cuda::selective_scan_cotangents<float> nothing(gpu, {0, 4, 5}, 2);
    nothing.skip = std::move(once.skip);
    cuda::selective_scan_back<fprnn::update::overwrite>(none, omega, none_b, none_b, none, {}, none, {}, nothing,
                                                        {.skip = &D});
    CHECK(checks::ulps(copy_to_host(nothing.skip), tensor<float>({5})) == 0);
}

TEST_CASE("cuda selective scan: whichever call of the adjoint fails, its name is in the error, and no memory is left") {
    fake::state = {};
    const cuda::device gpu;
    const auto x = copy(gpu, random<float>({1, 5, 3}, 1)), omega = copy(gpu, random<float>({2, 3}, 2)),
               b = copy(gpu, random<float>({1, 5, 2}, 3));
    const auto D = copy(gpu, random<float>({3}, 4));
    const cuda::selective_scan_around<float> around{.skip = &D, .gate = &x, .softplus = true};
    cuda::selective_scan_cotangents<float> into(gpu, {1, 5, 3}, 2, around);
    check_failures([&] { cuda::selective_scan_back(x, omega, b, b, x, {}, x, {}, into); }, 9);
    check_failures([&] { cuda::selective_scan_back(x, omega, b, b, x, {}, x, {}, into, around); }, 11);
}

TEST_CASE("cuda selective scan: what the adjoint adds to is what it was, whichever of its calls fails") {
    fake::state = {};
    const cuda::device gpu;
    const auto x = copy(gpu, random<float>({1, 5, 3}, 1)), omega = copy(gpu, random<float>({2, 3}, 2)),
               b = copy(gpu, random<float>({1, 5, 2}, 3)), D = copy(gpu, random<float>({3}, 4));
    const cuda::selective_scan_around<float> around{.skip = &D, .gate = &x, .softplus = true};
    int failed = 0;
    for (bool fails = true; fails; ++failed) {
        cuda::selective_scan_cotangents<float> into(gpu, {1, 5, 3}, 2, around);
        fake::state.calls = 0;
        fake::state.failing = failed;
        try {
            cuda::selective_scan_back(x, omega, b, b, x, {}, x, {}, into, around);
            fails = false;
        } catch (const cuda::error&) {
        }
        fake::state.failing = std::numeric_limits<int>::max();
        for (const auto* bar : {&into.delta, &into.omega, &into.b, &into.c, &into.u, &into.H, &into.skip, &into.gate})
            for (const float number : copy_to_host(*bar)) CHECK((number == 0) == fails);
    }
    CHECK(failed > 9);
}

TEST_CASE("cuda selective scan: whichever call fails, its name is in the error, and no memory is left behind") {
    fake::state = {};
    const cuda::device gpu;
    const auto x = copy(gpu, random<float>({1, 5, 3}, 1)), omega = copy(gpu, random<float>({2, 3}, 2)),
               b = copy(gpu, random<float>({1, 5, 2}, 3));
    check_failures([&] { (void)cuda::selective_scan(x, omega, b, b, x); }, 3);  // y, H and the kernel
}

TEST_CASE("cuda selective scan: shapes that do not match, too many states and several devices are named") {
    fake::state = {};
    const cuda::device gpu(0), other(1);
    const auto on = [](const cuda::device& d, const shape& s) { return cuda::tensor<float>(d, s); };
    const auto x = on(gpu, {4, 8, 16}), omega = on(gpu, {2, 16}), b = on(gpu, {4, 8, 2});
    const auto says = [&](const char* what, const auto& delta, const auto& w, const auto& beta, const auto& c,
                          const auto& u, const cuda::tensor<float>& H = {},
                          const cuda::selective_scan_around<float>& around = {}) {
        CHECK_THROWS_WITH_AS(cuda::selective_scan(delta, w, beta, c, u, H, around), what, argument_error);
    };
    const auto wrong = on(gpu, {4, 8, 15});
    says("selective_scan: delta is [4,8,15] but u is [4,8,16]", wrong, omega, b, b, x);
    says("selective_scan: u must be [B,T,D], got [2,16]", x, omega, b, b, omega);
    says("selective_scan: omega must be [2,16], got [2,15]", x, on(gpu, {2, 15}), b, b, x);
    says("selective_scan: b must be [4,8,2], got [4,8,15]", x, omega, wrong, b, x);
    says("selective_scan: c must be [4,8,2], got [4,8,15]", x, omega, b, wrong, x);
    says("selective_scan: H must be [4,2,16], got [4,8,15]", x, omega, b, b, x, wrong);
    says("selective_scan: skip must be [16], got [2,16]", x, omega, b, b, x, {}, {.skip = &omega});
    says("selective_scan: gate is [4,8,15] but u is [4,8,16]", x, omega, b, b, x, {}, {.gate = &wrong});
    says("selective_scan: N = 65 states, at most 64 fit the registers of a thread", x, on(gpu, {65, 16}),
         on(gpu, {4, 8, 65}), on(gpu, {4, 8, 65}), x);
    cuda::selective_scan_cotangents<float> into(gpu, {4, 8, 16}, 2), narrow(gpu, {4, 8, 15}, 2);
    const auto back_says = [&](const char* what, const auto& y_bar, const auto& H_bar, auto& to) {
        CHECK_THROWS_WITH_AS(cuda::selective_scan_back(x, omega, b, b, x, {}, y_bar, H_bar, to), what, argument_error);
    };
    back_says("selective_scan_back: y_bar must be [4,8,16], got [4,8,15]", wrong, cuda::tensor<float>(), into);
    back_says("selective_scan_back: H_bar must be [4,2,16], got [4,8,15]", x, wrong, into);
    back_says("selective_scan_back: into.delta must be [4,8,16], got [4,8,15]", x, cuda::tensor<float>(), narrow);
    const auto skip = on(gpu, {16});
    CHECK_THROWS_WITH_AS(cuda::selective_scan_back(x, omega, b, b, x, {}, x, {}, into, {.skip = &skip}),
                         "selective_scan_back: into.skip must be [16], got [0]", argument_error);
    CHECK_THROWS_WITH_AS(cuda::selective_scan_back(x, omega, b, b, x, {}, x, {}, into, {.gate = &x}),
                         "selective_scan_back: into.gate must be [4,8,16], got [0]", argument_error);
    into.H = on(other, {4, 2, 16});
    back_says("selective_scan_back: into.H is on GPU 1 but u is on GPU 0", x, cuda::tensor<float>(), into);
    CHECK_THROWS_WITH_AS(
        cuda::selective_scan_back(x, on(gpu, {33, 16}), on(gpu, {4, 8, 33}), on(gpu, {4, 8, 33}), x, {}, x, {}, into),
        "selective_scan_back: N = 33 states, at most 32 fit the registers of a thread", argument_error);
    says("selective_scan: b is on GPU 1 but u is on GPU 0", x, omega, on(other, {4, 8, 2}), b, x);
}

}  // namespace

#endif
