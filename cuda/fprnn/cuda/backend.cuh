#pragma once

#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/layer.hpp>
#include <fprnn/cuda/row.cuh>
#include <fprnn/cuda/selective_scan.cuh>
#include <fprnn/cuda/team_row.hpp>
#include <fprnn/cuda/train.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace fprnn::cuda::detail {

template <class T>
struct row_team {
    using type = team_row<T, block<row_threads>>;
};

/// As many registers as let all workers of a device be resident.
template <class T, class Body, int Items>
__global__ void __launch_bounds__(row_threads, 8) rows_kernel(index n, Body body) {
    for (index r = blockIdx.x; r < n; r += gridDim.x) {
        body.template row<team_row<T, block<row_threads>, Items>>(r, blockIdx.x);
        __syncthreads();  // what belongs to the worker is free again
    }
}

template <class T, class Body>
void start_rows(const device& d, index n, index workers, const Body& body) {
    constexpr int items = 64 / sizeof(T);
    if constexpr (holds_rows<Body>)
        if (body.channels <= items * row_threads)
            return launch(d, "rows", rows_kernel<T, Body, items>, workers, {row_threads, 0}, n, body);
    launch(d, "rows", rows_kernel<T, Body, 0>, workers, {row_threads, 0}, n, body);
}

/// Where a block is in its program, for bodies of one long row.
__device__ inline place& place_of_block() {
    __shared__ place here;
    return here;
}

/// A block's share of one long row: what belongs to the row that it executes.
template <class T>
struct share_of_row {
    template <class Body>
    __device__ static void each(index channels, Body&& body) {
        const index share = channels / place_of_block().rows, first = place_of_block().row * share;
        for (index i = threadIdx.x; i < share; i += row_threads) body(scalar_lane<T>{first + i});
    }
};

struct program_calls {
    alignas(16) char bytes[program_bytes];
};

// A program's functions and its kernel are of one source file: what a kernel has of registers, stack and
// shared memory, the compiler gathers from the functions there whose addresses are taken.
namespace {

/// 128 registers a thread, so that 512 rows are under way at a time on 128 multiprocessors.
__global__ void __launch_bounds__(row_threads, 4)
    program_kernel(index rows, int size, const __grid_constant__ program_calls calls) {
    for (index r = blockIdx.x; r < rows; r += gridDim.x) {
        const place here{r, rows, blockIdx.x};
        if (threadIdx.x == 0) place_of_block() = here;
        __syncthreads();
        execute(calls.bytes, size, here, [] { __syncthreads(); });
    }
}
void start_program(const device& d, index rows, const char* bytes, int size) {
    program_calls calls;
    std::memcpy(calls.bytes, bytes, static_cast<std::size_t>(size));
    launch(d, "program", program_kernel, d.workers(rows), {row_threads, 0}, rows, size, calls);
}

template <class T, class Body>
__device__ const step function_of_rows = &call_rows<typename row_team<T>::type, Body>;
template <class T, class Body>
__device__ const step function_of_share = &call_share<share_of_row<T>, Body>;
template <class T>
__device__ const step function_of_while = &call_while<T>;
__device__ const step function_of_back = &call_back;

/// The code at an address that stands in the GPU's memory.
code code_at(const device& d, const step& symbol) {
    return {d.function(&symbol,
                       [&] {
                           step function = nullptr;
                           check(cudaMemcpyFromSymbol(&function, symbol, sizeof function), "cudaMemcpyFromSymbol");
                           return function;
                       }),
            start_program};
}

}  // namespace

template <class T, class Body>
code code_of_rows(const device& d) {
    return code_at(d, function_of_rows<T, Body>);
}
template <class T, class Body>
code code_of_share(const device& d) {
    return code_at(d, function_of_share<T, Body>);
}
template <class T>
code code_of_while(const device& d) {
    return code_at(d, function_of_while<T>);
}
template <class T>
code code_of_back(const device& d) {
    return code_at(d, function_of_back);
}

}  // namespace fprnn::cuda::detail
