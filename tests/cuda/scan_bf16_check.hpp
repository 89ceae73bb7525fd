#pragma once

#include "random.hpp"

#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/scan.hpp>
#include <fprnn/ops/scan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

/// Scans of numbers that are stored as bf16 against those of the same numbers in float on the CPU, wherever
/// the kernels of the device run.
namespace bf16_scans {

using fprnn::direction;
using fprnn::shape;
using fprnn::tensor;
using fprnn::update;
namespace cuda = fprnn::cuda;

/// Every number is what is expected, added up in float in another order and rounded once: by half a unit of
/// its last place.
inline bool is_rounded_once(const cuda::tensor<cuda::bf16>& x, const tensor<float>& expected) {
    const auto got = cuda::to_float(cuda::copy_to_host(x));
    if (got.shape() != expected.shape()) return false;
    float largest = 0;
    for (const float number : expected) largest = std::max(largest, std::abs(number));
    const float sums = 16 * std::numeric_limits<float>::epsilon() * largest;
    for (fprnn::index i = 0; i < got.size(); ++i) {
        const float half_a_unit = expected[i] == 0 ? 0 : std::ldexp(1.0f, std::ilogb(expected[i]) - 8);
        if (!(std::abs(got[i] - expected[i]) <= half_a_unit + sums)) return false;
    }
    return true;
}

/// The scan and its adjoint, which overwrites and then adds to what there is.
inline void check(const shape& s, direction way, bool carries) {
    INFO(s.to_string(), ", carry ", carries);
    const cuda::device gpu;
    const shape state{s[0], s[2]};
    using numbers = tensor<cuda::bf16>;
    const auto stored = [](const shape& extents, std::uint64_t stream, double deviation = 1, double mean = 0) {
        return cuda::round_to_bf16(gpu::random<float>(extents, stream, deviation, mean));
    };
    const auto wide = [](const numbers& x) { return x.empty() ? tensor<float>() : cuda::to_float(x); };
    const auto there = [&](const numbers& x) { return x.empty() ? cuda::tensor<cuda::bf16>() : gpu.copy(x); };
    const numbers lambda = stored(s, 1, 0.1, 0.9), u = stored(s, 2), h_bar = stored(s, 3),
                  carry = carries ? stored(state, 4) : numbers(), carry_bar = carries ? stored(state, 5) : numbers();

    const auto gpu_h = cuda::scan(gpu.copy(lambda), gpu.copy(u), there(carry), way);
    CHECK(is_rounded_once(gpu_h, fprnn::scan(wide(lambda), wide(u), wide(carry), way)));

    fprnn::scan_cotangents<float> bars(s);
    cuda::scan_cotangents<cuda::bf16> into(gpu, s);
    into.lambda = gpu.copy(u);  // whatever was there
    const auto back = [&]<update Update>() {
        const auto h = cuda::copy_to_host(gpu_h);
        fprnn::scan_back(wide(lambda), wide(h), wide(carry), wide(h_bar), wide(carry_bar), bars, way);
        cuda::scan_back<Update>(gpu.copy(lambda), gpu_h, there(carry), gpu.copy(h_bar), there(carry_bar), into, way);
        CHECK(is_rounded_once(into.lambda, bars.lambda));
        CHECK(is_rounded_once(into.u, bars.u));
        CHECK(is_rounded_once(into.carry, bars.carry));
    };
    back.template operator()<update::overwrite>();
    const auto begin = [&](tensor<float>& bar, cuda::tensor<cuda::bf16>& gpu_bar, std::uint64_t stream) {
        const auto before = stored(gpu_bar.shape(), stream, 10);
        gpu_bar = gpu.copy(before);
        bar = wide(before);
    };
    begin(bars.lambda, into.lambda, 6), begin(bars.u, into.u, 7), begin(bars.carry, into.carry, 8);
    back.template operator()<update::accumulate>();
}

}  // namespace bf16_scans
