// The diagonal scan on a GPU against the rate at which the GPU copies memory, against cub::DeviceScan and
// against a block for each column.

#include "cuda_yardsticks.cuh"

#include <fprnn/core/random.hpp>
#include <fprnn/cuda/scan.cuh>

#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

// Not in an anonymous namespace: there `cuda` would be ambiguous in what nvcc writes.
namespace scan_bench {

using fprnn::index;
using fprnn::shape;
using fprnn::update;
using gpu_bench::rotation;
using gpu_bench::seconds;
namespace cuda = fprnn::cuda;

template <class T>
struct arrays {
    cuda::tensor<T> lambda, u, h, h_bar;
    cuda::scan_cotangents<T> bars;

    arrays(const cuda::device& d, const fprnn::tensor<T>& decay, const fprnn::tensor<T>& input)
        : lambda(copy(d, decay)),
          u(copy(d, input)),
          h(cuda::scan(lambda, u)),
          h_bar(copy(d, input)),
          bars(d, decay.shape()) {}
};

/// The device's results of the first and the last sequence, against the host's.
template <class T>
bool right(const arrays<T>& x, const fprnn::tensor<T>& lambda, const fprnn::tensor<T>& u) {
    const auto h = copy_to_host(x.h), lambda_bar = copy_to_host(x.bars.lambda), u_bar = copy_to_host(x.bars.u);
    const shape& s = lambda.shape();
    const shape one{1, s[1], s[2]};
    using view = fprnn::view<const float>;
    for (index b : {index(0), s[0] - 1}) {
        const index at = b * s[1] * s[2];
        fprnn::tensor<float> decay(one), input(one);
        for (index i = 0; i < decay.size(); ++i)
            decay[i] = static_cast<float>(lambda[at + i]), input[i] = static_cast<float>(u[at + i]);
        const auto expected = fprnn::scan(decay, input);
        fprnn::scan_cotangents<float> bars(one);
        fprnn::scan_back(view(decay), view(expected), {}, view(input), {}, bars);
        // h goes into λ̄ as it is stored.
        const float most = sizeof(T) == 2 ? 2e-2f : 1e-3f;
        const auto near = [&](T a, float b_) {
            return std::abs(static_cast<float>(a) - b_) <= most * (1 + std::abs(b_));
        };
        for (index i = 0; i < expected.size(); ++i)
            if (!near(h[at + i], expected[i]) || !near(lambda_bar[at + i], bars.lambda[i]) ||
                !near(u_bar[at + i], bars.u[i]))
                return false;
    }
    return true;
}

/// Of two ways to the same numbers.
template <class T>
bool agree(const fprnn::tensor<T>& a, const fprnn::tensor<T>& b) {
    const float most = sizeof(T) == 2 ? 2e-2f : 1e-3f;
    for (index i = 0; i < a.size(); ++i) {
        const auto x = static_cast<float>(a[i]), y = static_cast<float>(b[i]);
        if (!(std::abs(x - y) <= most * (1 + std::abs(y)))) return false;
    }
    return true;
}

void line(const char* name, const shape& s, const char* formula, double bytes, double time, double copy_rate) {
    std::printf("%-13s %-16s %-22s %9.1f MB %9.1f us %8.1f GB/s  %.3f of copy\n", name, s.to_string().c_str(), formula,
                bytes * 1e-6, time * 1e6, bytes / time * 1e-9, bytes / time / copy_rate);
}

template <class T>
constexpr const char* name_of = std::is_same_v<T, cuda::bf16> ? "bf16" : "float";

/// Of arrays whose columns are one after the other: what scan_back says of the same numbers as [B·D, T, 1].
template <class T>
bool agrees_with_scan_back(const cuda::device& d, index columns, index tokens, const arrays<T>& x) {
    const shape s{columns, tokens, 1};
    const auto same = [&](const cuda::tensor<T>& a) { return copy(d, fprnn::view<const T>{a.data(), s}); };
    cuda::scan_cotangents<T> expected(d, s);
    cuda::scan_back<update::overwrite>(same(x.lambda), same(x.h), {}, same(x.h_bar), {}, expected);
    return agree(copy_to_host(x.bars.lambda), copy_to_host(expected.lambda)) &&
           agree(copy_to_host(x.bars.u), copy_to_host(expected.u));
}

/// Returns whether the results were right; wrong ones are not timed.
template <class T>
bool measure(const cuda::device& d, const shape& s, gpu_bench::figures& to) {
    const fprnn::random_stream random({1}, 0);
    fprnn::tensor<T> lambda(s), u(s);
    for (index i = 0; i < lambda.size(); ++i) {
        const auto k = static_cast<std::uint64_t>(i);
        lambda[i] = static_cast<T>(static_cast<float>(0.9 + 0.1 * random.uniform(2 * k)));
        u[i] = static_cast<T>(static_cast<float>(random.uniform(2 * k + 1)));
    }
    const index array = s.count() * index(sizeof(T));
    const int sets = rotation(5 * array);
    std::vector<arrays<T>> x;
    for (int i = 0; i < sets; ++i) x.emplace_back(d, lambda, u);
    const auto at = [&](int i) -> arrays<T>& { return x[static_cast<std::size_t>(i)]; };
    const auto forward = [&](int i) { cuda::scan_into(at(i).h, at(i).lambda, at(i).u); };
    const auto back = [&]<update Update>(int i) {
        cuda::scan_back<Update>(at(i).lambda, at(i).h, {}, at(i).h_bar, {}, at(i).bars);
    };
    forward(0);
    back.template operator()<update::overwrite>(0);
    if (!right(x[0], lambda, u)) {
        std::printf("%s: wrong result\n", s.to_string().c_str());
        return false;
    }

    const auto copy_run = [&](int i) {
        cuda::check(cudaMemcpyAsync(at(i).h.data(), at(i).u.data(), static_cast<std::size_t>(array),
                                    cudaMemcpyDeviceToDevice, d.stream()),
                    "cudaMemcpyAsync");
    };
    const auto bytes = static_cast<double>(array);
    const double copy_time = seconds(d, sets, copy_run), rate = 2 * bytes / copy_time;
    const index columns = s[0] * s[2];
    gpu_bench::scan_by_key<T> by_key(d, columns, s[1]);
    const auto block_each = [&](int i) {
        cuda::launch(d, "one block each", gpu_bench::one_block_each<T, 256, 8>, columns, {256, 0}, s[1],
                     at(i).lambda.data(), at(i).u.data(), at(i).h.data());
    };
    const auto keys = [&](int i) { by_key(at(i).lambda.data(), at(i).u.data(), at(i).h.data()); };
    const auto keys_back = [&](int i) {
        arrays<T>& a = at(i);
        by_key.back(a.lambda.data(), a.h.data(), a.h_bar.data(), a.bars.lambda.data(), a.bars.u.data());
    };
    keys(0);
    const auto of_keys = copy_to_host(at(0).h);
    block_each(0);
    bool same = agree(of_keys, copy_to_host(at(0).h));
    keys_back(0);
    same = same && agrees_with_scan_back(d, columns, s[1], at(0));
    if (!same) {
        std::printf("%s: the yardsticks disagree\n", s.to_string().c_str());
        return false;
    }
    const double key_time = seconds(d, sets, keys), block_time = seconds(d, sets, block_each),
                 key_back_time = seconds(d, sets, keys_back);
    const double scan_time = seconds(d, sets, forward),
                 back_time = seconds(d, sets, [&](int i) { back.template operator()<update::overwrite>(i); });
    std::printf(
        "%s of %zu bytes a number: cub::DeviceScan by key takes %.2f, a block for each column %.2f of the scan's "
        "time, the adjoint by key %.2f of scan_back's\n",
        s.to_string().c_str(), sizeof(T), key_time / scan_time, block_time / scan_time, key_back_time / back_time);
    line("copy", s, "2 B T D: u in; h out", 2 * bytes, copy_time, rate);
    line("scan", s, "3 B T D: lambda, u; h", 3 * bytes, scan_time, rate);
    line("scan_back", s, "5 B T D: 3 in; 2 out", 5 * bytes, back_time, rate);
    line("scan_back +=", s, "7 B T D: 5 in; 2 out", 7 * bytes,
         seconds(d, sets, [&](int i) { back.template operator()<update::accumulate>(i); }), rate);
    const std::string name = s.to_string() + "/" + name_of<T> + "/";
    to(name + "copy", copy_time);
    to(name + "scan", scan_time);
    to(name + "scan/of_copy", 3 * bytes / scan_time / rate);
    to(name + "scan_back", back_time);
    to(name + "scan_back/of_copy", 5 * bytes / back_time / rate);
    to(name + "by_key", key_time);
    to(name + "by_key_back", key_back_time);
    to(name + "block_each", block_time);
    return true;
}

/// Every shape; the program's exit code.
int report(gpu_bench::figures& to) {
    const cuda::device d;
    std::printf("%s, %d multiprocessors; medians of single runs, arrays rotated through more than its cache\n",
                gpu_bench::name_of(d, to).c_str(), d.multiprocessors());
    bool ok = true;
    const std::vector<shape> large{{16, 2048, 2048},  {16, 2048, 512},  {1, 1 << 20, 1}, {1, 1 << 20, 16},
                                   {1, 1 << 20, 132}, {4, 1 << 18, 33}, {256, 16, 1024}},
        tried{{2, 64, 33}, {1, 512, 1}};
    for (const shape& s : gpu_bench::unless_small(large, tried)) ok = measure<float>(d, s, to) && ok;
    ok = measure<cuda::bf16>(d, gpu_bench::unless_small(large, tried)[0], to) && ok;
    return ok ? 0 : 1;
}

}  // namespace scan_bench

int main(int count, char** arguments) { return gpu_bench::run(count, arguments, scan_bench::report); }
