#pragma once

#include "cuda_measure.hpp"

#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

/// What scans on a GPU are compared with, in the same run.
namespace gpu_bench {

/// h ↦ a h + b
struct affine_pair {
    float a, b;
};
struct compose {
    __host__ __device__ affine_pair operator()(const affine_pair& first, const affine_pair& second) const {
        return {first.a * second.a, second.a * first.b + second.b};
    }
};

// Of arrays whose columns are one after the other, [B·D, T]: what a scan by key can read. T is a power of
// two, so that keys cost no division.
struct column_of {
    int log2_tokens;
    __host__ __device__ int operator()(int i) const { return i >> log2_tokens; }
};
struct same_column {
    __host__ __device__ bool operator()(int a, int b) const { return a == b; }
};
template <class T>
struct pair_at {
    const T *lambda, *u;
    __host__ __device__ affine_pair operator()(int i) const {
        return {static_cast<float>(lambda[i]), static_cast<float>(u[i])};
    }
};
template <class T>
struct state_of {
    __host__ __device__ T operator()(const affine_pair& p) const { return static_cast<T>(p.b); }
};

// The adjoint goes from the last number to the first: i counts from there.
template <class T>
struct pair_back_at {
    int last, tokens;
    const T *lambda, *h_bar;
    __host__ __device__ affine_pair operator()(int i) const {
        const int at = last - i;
        return {(at & (tokens - 1)) + 1 < tokens ? static_cast<float>(lambda[at + 1]) : 0.0f,
                static_cast<float>(h_bar[at])};
    }
};
/// Where the adjoint's scan leaves g: ū_t = g_t, λ̄_t = g_t h_{t−1}.
template <class T>
struct cotangents_at {
    int last, tokens;
    const T* h;
    T *lambda_bar, *u_bar;
    int first = 0;

    struct place {
        const cotangents_at& all;
        int at;
        __host__ __device__ void operator=(const affine_pair& p) const {
            all.u_bar[at] = static_cast<T>(p.b);
            all.lambda_bar[at] =
                static_cast<T>((at & (all.tokens - 1)) > 0 ? p.b * static_cast<float>(all.h[at - 1]) : 0.0f);
        }
    };
    __host__ __device__ cotangents_at operator+(int i) const {
        cotangents_at later = *this;
        later.first += i;
        return later;
    }
    __host__ __device__ place operator[](int i) const { return {*this, last - first - i}; }
};

/// cub::DeviceScan by key over (λ,u) pairs: reads λ and u, writes h; keys cost no memory. Its adjoint, over
/// (λ_{t+1},ḣ_t) from the end, reads h as it writes λ̄ and ū.
template <class T>
class scan_by_key {
public:
    scan_by_key(const cuda::device& d, index columns, index tokens)
        : device_(d), count_(static_cast<int>(columns * tokens)), tokens_(static_cast<int>(tokens)) {
        if (!std::has_single_bit(static_cast<std::size_t>(tokens)))
            throw std::invalid_argument("scan_by_key: tokens: expected a power of two, got " + std::to_string(tokens));
        std::size_t bytes = 0, bytes_back = 0;
        forward(nullptr, bytes, nullptr, nullptr, nullptr);
        back(nullptr, bytes_back, nullptr, nullptr, nullptr, nullptr, nullptr);
        scratch_ = cuda::tensor<unsigned char>(d, {static_cast<index>(std::max(bytes, bytes_back))});
    }
    void operator()(const T* lambda, const T* u, T* h) {
        auto bytes = static_cast<std::size_t>(scratch_.size());
        forward(scratch_.data(), bytes, lambda, u, h);
    }
    void back(const T* lambda, const T* h, const T* h_bar, T* lambda_bar, T* u_bar) {
        auto bytes = static_cast<std::size_t>(scratch_.size());
        back(scratch_.data(), bytes, lambda, h, h_bar, lambda_bar, u_bar);
    }

private:
    template <class Pairs, class To>
    void call(void* scratch, std::size_t& bytes, const Pairs& pairs, const To& to) const {
        const thrust::counting_iterator<int> i(0);
        cuda::check(
            cub::DeviceScan::InclusiveScanByKey(
                scratch, bytes,
                thrust::make_transform_iterator(i, column_of{std::countr_zero(static_cast<unsigned>(tokens_))}),
                thrust::make_transform_iterator(i, pairs), to, compose{}, count_, same_column{}, device_.stream()),
            "cub::DeviceScan::InclusiveScanByKey");
    }
    void forward(void* scratch, std::size_t& bytes, const T* lambda, const T* u, T* h) const {
        call(scratch, bytes, pair_at<T>{lambda, u}, thrust::make_transform_output_iterator(h, state_of<T>{}));
    }
    void back(void* scratch, std::size_t& bytes, const T* lambda, const T* h, const T* h_bar, T* lambda_bar,
              T* u_bar) const {
        call(scratch, bytes, pair_back_at<T>{count_ - 1, tokens_, lambda, h_bar},
             cotangents_at<T>{count_ - 1, tokens_, h, lambda_bar, u_bar});
    }

    cuda::device device_;
    int count_, tokens_;
    cuda::tensor<unsigned char> scratch_;
};

/// Every column [T] by one block, chunk after chunk.
template <class T, int Threads, int Items>
__global__ void __launch_bounds__(Threads) one_block_each(index tokens, const T* lambda, const T* u, T* h) {
    using load = cub::BlockLoad<T, Threads, Items, cub::BLOCK_LOAD_TRANSPOSE>;
    using store = cub::BlockStore<T, Threads, Items, cub::BLOCK_STORE_TRANSPOSE>;
    using scan = cub::BlockScan<affine_pair, Threads>;
    __shared__ union {
        typename load::TempStorage load;
        typename store::TempStorage store;
        typename scan::TempStorage scan;
    } shared;
    const index start = blockIdx.x * tokens;
    float state = 0;
    for (index first = 0; first < tokens; first += Threads * Items) {
        const int left = static_cast<int>(tokens - first < Threads * Items ? tokens - first : Threads * Items);
        T a[Items], b[Items];
        load(shared.load).Load(lambda + start + first, a, left, T(1.0f));
        __syncthreads();
        load(shared.load).Load(u + start + first, b, left, T(0.0f));
        __syncthreads();
        affine_pair maps[Items], all;
        for (int i = 0; i < Items; ++i) maps[i] = {static_cast<float>(a[i]), static_cast<float>(b[i])};
        scan(shared.scan).InclusiveScan(maps, maps, compose{}, all);
        __syncthreads();
        for (int i = 0; i < Items; ++i) b[i] = static_cast<T>(maps[i].a * state + maps[i].b);
        store(shared.store).Store(h + start + first, b, left);
        __syncthreads();
        state = all.a * state + all.b;
    }
}

/// As many exponentials as a selective scan of [columns, tokens] takes that has N states, and nothing else.
template <int N>
__global__ void __launch_bounds__(128) exponentials_alone(index columns, index tokens, float rate, float* to) {
    const index column = index(blockIdx.x) * 128 + threadIdx.x;
    if (column >= columns) return;
    float x[N];
    for (int n = 0; n < N; ++n) x[n] = rate * static_cast<float>(n + 1);
    for (index t = 0; t < tokens; ++t)
#pragma unroll
        for (int n = 0; n < N; ++n) x[n] = fprnn::math::exp2(rate * x[n]);
    float sum = 0;
    for (int n = 0; n < N; ++n) sum += x[n];
    to[column] = sum;
}

}  // namespace gpu_bench
