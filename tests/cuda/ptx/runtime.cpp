#include "../fake_blas.hpp"
#include "../fake_runtime.hpp"
#include "machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What a program of nvcc's calls of CUDA, for a program that runs where there is no GPU: preloaded, it takes
/// the place of CUDA's runtime and of cuBLAS. Memory is the host's, as for the tests on the host; kernels are
/// executed as the PTX that the program carries, which is there uncompressed (--no-compress). At its end it
/// says what it saw on standard error; after a race the program fails.
///
///     LD_PRELOAD=build/release/cuda/libptx_runtime.so build/release/cuda/scan.test
///
/// PTX_SEED is another order of turns. With PTX_TRAFFIC it also says what kernels ask of memory, by their
/// names.
namespace {

struct binary {
    std::string_view bytes;
    std::unique_ptr<ptx::module> compiled;

    /// Errors: ptx::error without PTX, and what it says of it.
    const ptx::module& module() {
        if (!compiled) {
            const auto begin = bytes.find(".version ");
            if (begin == bytes.npos) throw ptx::error("there is no PTX, or it is compressed");
            compiled = ptx::parse(bytes.data() + begin);
        }
        return *compiled;
    }
};
struct symbol {
    binary* in;
    std::string name;
};

struct program {
    std::map<const void*, symbol> kernels, variables;
    ptx::machine machine{fake::state.memory, seed()};

    program() {
        fake::state.gpus = 1;
        fake::state.multiprocessors = ptx::machine::resident;
        fake::state.guarded = true;
        machine.counts_traffic = std::getenv("PTX_TRAFFIC");
    }
    ~program() {
        const auto& done = machine.done;
        std::fprintf(stderr, "ptx: %llu launches, %llu instructions of threads, %llu races\n",
                     static_cast<unsigned long long>(done.launches), static_cast<unsigned long long>(done.instructions),
                     static_cast<unsigned long long>(done.races));
        for (const auto& [name, of] : machine.asked)
            std::fprintf(
                stderr,
                "ptx: %.3f MB read, %.3f written, %.3f and %.3f of them by a launch for the first time; shared memory "
                "%.3f of the turns that it needs: %s\n",
                double(of.read) * 1e-6, double(of.written) * 1e-6, double(of.first_read) * 1e-6,
                double(of.first_written) * 1e-6, double(of.turns) / std::max(1.0, double(of.least_turns)),
                name.c_str());
        for (const auto& words : done.words) std::fprintf(stderr, "ptx: %s\n", words.c_str());
        if (fake::state.overruns)
            std::fprintf(stderr, "ptx: %d allocations were written behind\n", fake::state.overruns);
        std::fflush(nullptr);
        if (done.races > 0 || fake::state.overruns > 0) std::_Exit(1);
    }
    static unsigned seed() {
        const char* given = std::getenv("PTX_SEED");
        return given ? static_cast<unsigned>(std::atoi(given)) : 1;
    }
};
program& here() {
    static program p;
    return p;
}

const symbol* find(const std::map<const void*, symbol>& all, const void* at) {
    const auto found = all.find(at);
    return found == all.end() ? nullptr : &found->second;
}

std::chrono::steady_clock::time_point& time_of(cudaEvent_t event) {
    return *reinterpret_cast<std::chrono::steady_clock::time_point*>(event);
}

}  // namespace

extern "C" {

/// What kernels have asked of memory so far; counted from the first call on.
ptx::traffic ptx_traffic() {
    here().machine.counts_traffic = true;
    ptx::traffic all;
    for (const auto& [name, of] : here().machine.asked) all += of;
    return all;
}

void** __cudaRegisterFatBinary(void* wrapper) {
    struct {
        std::uint32_t magic, version;
        const char* data;
    } given;
    std::memcpy(&given, wrapper, sizeof given);
    struct {
        std::uint32_t magic;
        std::uint16_t version, bytes;
        std::uint64_t follow;
    } head;
    std::memcpy(&head, given.data, sizeof head);
    return reinterpret_cast<void**>(new binary{{given.data, head.bytes + head.follow}, nullptr});
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** in, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                            int*) {
    here().kernels[host] = {reinterpret_cast<binary*>(in), name};
}
void __cudaRegisterVar(void** in, char* host, char*, const char* name, int, std::size_t, int, int) {
    here().variables[host] = {reinterpret_cast<binary*>(in), name};
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind) {
    const symbol* of = find(here().variables, from);
    if (!of) return fake::state.result("cudaMemcpyFromSymbol", cudaErrorInvalidSymbol);
    const auto& variable = of->in->module().globals.at(of->name);
    if (offset + bytes > variable.bytes) return fake::state.result("cudaMemcpyFromSymbol", cudaErrorInvalidValue);
    std::memcpy(to, variable.memory.get() + offset, bytes);
    return fake::state.result("cudaMemcpyFromSymbol");
}

/// Benchmarks ask for the name; what they time here is the interpreter.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    std::strcpy(properties->name, "interpreter of PTX");
    return fake::state.result("cudaGetDeviceProperties");
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = reinterpret_cast<cudaEvent_t>(new std::chrono::steady_clock::time_point);
    return fake::state.result("cudaEventCreate");
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete &time_of(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    time_of(event) = std::chrono::steady_clock::now();
    return fake::state.result("cudaEventRecord");
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return fake::state.result("cudaEventSynchronize"); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    *milliseconds = std::chrono::duration<float, std::milli>(time_of(end) - time_of(start)).count();
    return fake::state.result("cudaEventElapsedTime");
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    *total = *free = fake::arena::bytes;
    for (const auto& [data, bytes] : fake::state.memory) *free -= std::min(*free, bytes);
    return fake::state.result("cudaMemGetInfo");
}

/// What a block may take without having asked for more.
static bool fits(int threads, std::size_t shared_bytes) { return threads <= 1024 && shared_bytes <= 48 * 1024; }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                   std::size_t shared_bytes, unsigned) {
    *blocks = fits(threads, shared_bytes) ? 1 : 0;
    return fake::state.result("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* launch, const void* kernel, void** arguments) {
    const symbol* of = find(here().kernels, kernel);
    if (!of) return fake::state.result("cudaLaunchKernelExC", cudaErrorInvalidDeviceFunction);
    const auto grid = launch->gridDim, block = launch->blockDim;
    const auto blocks = grid.x, threads = block.x;
    const auto shared_bytes = launch->dynamicSmemBytes;
    if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1 || launch->numAttrs != 0)
        return fake::state.result("cudaLaunchKernelExC", cudaErrorNotSupported);
    if (blocks == 0 || threads == 0 || !fits(static_cast<int>(threads), shared_bytes))
        return fake::state.result("cudaLaunchKernelExC", cudaErrorInvalidConfiguration);
    const auto& module = of->in->module();
    const auto& function = module.functions.at(of->name);
    std::vector<std::string> copies;  // the caller's are gone when a graph starts
    for (std::size_t k = 0; k < function.parameters.size(); ++k)
        copies.emplace_back(static_cast<const char*>(arguments[k]), function.parameters[k].bytes);
    fake::enqueue([&module, &function, copies, blocks, threads, shared_bytes] {
        std::vector<const void*> pointers;
        for (const auto& copy : copies) pointers.push_back(copy.data());
        here().machine.launch(module, function, pointers.data(), blocks, threads, shared_bytes);
    });
    return fake::state.result("cudaLaunchKernelExC");
}
}
