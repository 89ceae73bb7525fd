#pragma once

#include <fprnn/cuda/device.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iomanip>
#include <locale>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Times on a GPU, by its own clock.
namespace gpu_bench {

using fprnn::index;
namespace cuda = fprnn::cuda;

/// Whether --small was given: every shape is small and run once, to try the programs themselves. What is
/// printed and written then are no measurements.
inline bool small = false;
template <class T>
T unless_small(const T& measured, const T& tried) {
    return small ? tried : measured;
}

/// What --figures FILE asks for, and nothing without it: a line "name value" each, seconds unless the name
/// ends with what else it is. The names are bench/report_gpu.py's. Errors: a file that cannot be written.
class figures {
public:
    explicit figures(const char* file) {
        if (file) out_.open(file);
        if (!out_) throw std::runtime_error(std::string(file) + " cannot be written");
        out_.exceptions(std::ios::failbit | std::ios::badbit);
        out_.imbue(std::locale::classic());
        out_ << std::setprecision(9);
    }
    template <class Value>
    void operator()(const std::string& name, const Value& value) {
        if (out_.is_open()) out_ << name << ' ' << value << std::endl;
    }

private:
    std::ofstream out_;
};

/// The GPU's name, which is among the figures with the versions of CUDA.
inline std::string name_of(const cuda::device& d, figures& to) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, d.gpu()), "cudaGetDeviceProperties");
    int runtime = 0;
    cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    const auto version = [](int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); };
    to("gpu", properties.name);
    to("cuda_runtime", version(runtime / 1000, runtime % 1000 / 10));
    to("nvcc", version(__CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__));
    return properties.name;
}

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

/// Keeps a GPU busy, for some 2 ms, while the host says what comes next: events then tell how long that
/// takes, and not how long it takes the host to say it. A million of these, each from the one before, take 4
/// million clocks or more. (No clock is read, because decision 0018's interpreter has none.)
__global__ void keep_busy() {
    unsigned x = threadIdx.x;
    for (int i = 0; i < 1'000'000; ++i) asm volatile("mad.lo.s32 %0, %0, 5, 1;" : "+r"(x));
}

inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// The median of single runs, run(i) on the i-th set of arrays.
inline double seconds(const cuda::device& d, int sets, const std::function<void(int)>& run) {
    const int warm_up = unless_small(5, 0), runs = unless_small(41, 1);
    std::vector<event> at(static_cast<std::size_t>(runs) + 1);
    for (int i = 0; i < warm_up; ++i) run(i % sets);
    if (!small) {
        keep_busy<<<1, 1, 0, d.stream()>>>();
        cuda::check(cudaGetLastError(), "keep_busy");
    }
    at[0].record(d);
    for (int i = 0; i < runs; ++i) {
        run(i % sets);
        at[static_cast<std::size_t>(i) + 1].record(d);
    }
    std::vector<double> times;
    for (std::size_t i = 1; i < at.size(); ++i) times.push_back(at[i].seconds_since(at[i - 1]));
    return median(times);
}

/// So many sets of `bytes` that none is in a cache when its turn comes again.
inline int rotation(index bytes) {
    if (small) return 2;
    constexpr index out_of_cache = index(512) << 20;
    return static_cast<int>(std::clamp<index>(out_of_cache / std::max<index>(bytes, 1) + 1, 2, 64));
}

/// What main returns: report(figures), 77 where there is no GPU or no driver, which says that nothing was
/// measured, 2 where the arguments are others than --figures FILE and --small, and --problem FOLDER of a
/// program that has one to write, 1 after any other error.
inline int run(int count, char** arguments, int (*report)(figures&), const char** problem = nullptr) {
    const char* file = nullptr;
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        const char** value = name == "--figures" ? &file : name == "--problem" ? problem : nullptr;
        if (name == "--small") {
            small = true;
        } else if (value && i + 1 < count) {
            *value = arguments[++i];
        } else {
            std::fprintf(stderr, "usage: %s [--figures FILE] [--small]%s\n", arguments[0],
                         problem ? " [--problem FOLDER]" : "");
            return 2;
        }
    }
    try {
        figures to(file);
        return report(to);
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
