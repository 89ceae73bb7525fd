#pragma once

#include <fprnn/cuda/device.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

/// Times on a GPU, by its own clock.
namespace gpu_bench {

using fprnn::index;
namespace cuda = fprnn::cuda;

class event {
public:
    event() { cuda::check(cudaEventCreate(&event_), "cudaEventCreate"); }
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() { (void)cudaEventDestroy(event_); }

    void record(const cuda::device& d) { cuda::check(cudaEventRecord(event_, d.stream()), "cudaEventRecord"); }
    double seconds_since(const event& start) const {
        cuda::check(cudaEventSynchronize(event_), "cudaEventSynchronize");
        float milliseconds = 0;
        cuda::check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
        return milliseconds * 1e-3;
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// Keeps a GPU busy, for some 2 ms, while the host says what comes next: events then tell how long that takes, and not how long
/// it takes the host to say it.
__global__ void keep_busy() {
    const long long begin = clock64();
    while (clock64() - begin < 4'000'000) {
    }
}

/// The median of single runs, run(i) on the i-th set of arrays.
inline double seconds(const cuda::device& d, int sets, const std::function<void(int)>& run) {
    constexpr int warm_up = 5, runs = 41;
    std::vector<event> at(runs + 1);
    for (int i = 0; i < warm_up; ++i) run(i % sets);
    keep_busy<<<1, 1, 0, d.stream()>>>();
    cuda::check(cudaGetLastError(), "keep_busy");
    at[0].record(d);
    for (int i = 0; i < runs; ++i) {
        run(i % sets);
        at[static_cast<std::size_t>(i) + 1].record(d);
    }
    std::vector<double> times;
    for (std::size_t i = 0; i < runs; ++i) times.push_back(at[i + 1].seconds_since(at[i]));
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[runs / 2];
}

/// So many sets of `bytes` that none is in a cache when its turn comes again.
inline int rotation(index bytes) {
    constexpr index out_of_cache = index(512) << 20;
    return static_cast<int>(std::clamp<index>(out_of_cache / std::max<index>(bytes, 1) + 1, 2, 64));
}

/// What main returns: report(), 77 where there is no GPU or no driver, which says that nothing was measured, 1 after any other error.
inline int run(int (*report)()) {
    try {
        return report();
    } catch (const cuda::error& e) {
        const bool none = e.code() == cudaErrorNoDevice || e.code() == cudaErrorInsufficientDriver;
        std::fprintf(stderr, "%s: %s\n", none ? "skipped" : "failed", e.what());
        return none ? 77 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "failed: %s\n", e.what());
        return 1;
    }
}

}  // namespace gpu_bench
