#pragma once

#include <fprnn/core/host_device.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

/// Scalar mathematics under the names that a backend's packs answer to by argument-dependent lookup, so that
/// a body written with `using namespace math` runs on one channel or on a whole register of them.
namespace fprnn::math {

template <class T>
FPRNN_BOTH inline T exp(T x) {
    return ::exp(x);
}
/// 2^x. Where e^(a b) is wanted, b log₂e is often at hand once for many a, and 2^x costs less than e^x.
template <class T>
FPRNN_BOTH inline T exp2(T x) {
    return ::exp2(x);
}
template <class T>
FPRNN_BOTH inline T log1p(T x) {
    return ::log1p(x);
}
template <class T>
FPRNN_BOTH inline T sqrt(T x) {
    return ::sqrt(x);
}
template <class T>
FPRNN_BOTH inline T ceil(T x) {
    return ::ceil(x);
}
template <class T>
FPRNN_BOTH inline T abs(T x) {
    return x < T(0) ? -x : x;
}
template <class T>
FPRNN_BOTH inline T maximum(T a, T b) {
    return a < b ? b : a;
}
/// a b + c, with one rounding where the processor that is compiled for has it: packs answer likewise, and the
/// compiler has no choice. In a b + c d it rounds either product.
template <class T>
FPRNN_BOTH inline T multiply_add(T a, T b, T c) {
#if defined(__CUDA_ARCH__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA)
    if constexpr (std::is_same_v<T, float>) return __builtin_fmaf(a, b, c);
    if constexpr (std::is_same_v<T, double>) return __builtin_fma(a, b, c);
#endif
    return a * b + c;
}
template <class T>
FPRNN_BOTH inline T select(bool condition, T yes, T no) {
    return condition ? yes : no;
}
FPRNN_BOTH inline bool any(bool condition) { return condition; }

/// Numbers with the exponent bits of infinity are NaN or infinite. Above the largest exponent e^x overflows.
template <class T>
struct bits_of;
template <>
struct bits_of<float> {
    using type = std::uint32_t;
    static constexpr type sign = 0x80000000, infinity = 0x7f800000;
    static constexpr float largest_exponent = 0x1.62e42ep6f;
};
template <>
struct bits_of<double> {
    using type = std::uint64_t;
    static constexpr type sign = 0x8000000000000000, infinity = 0x7ff0000000000000;
    static constexpr double largest_exponent = 0x1.62e42fefa39efp9;
};

/// Whether x is neither NaN nor infinite. It looks at bits: with -ffast-math the compiler assumes that all
/// numbers are finite, and leaves std::isfinite(x) or x − x == 0 out.
template <class T>
FPRNN_BOTH inline bool is_finite(T x) {
    using bits = bits_of<T>;
    return (__builtin_bit_cast(typename bits::type, x) & bits::infinity) != bits::infinity;
}
template <class T>
FPRNN_BOTH inline bool is_nan(T x) {
    using bits = bits_of<T>;
    return (__builtin_bit_cast(typename bits::type, x) & ~bits::sign) > bits::infinity;
}

template <>
FPRNN_BOTH inline float exp(float x) {
    return ::expf(x);
}
template <>
FPRNN_BOTH inline float exp2(float x) {
#ifdef __CUDA_ARCH__
    float y;  // exp2f takes as many instructions again, for results below 2⁻¹²⁶; these are 0
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return ::exp2f(x);
#endif
}
template <>
FPRNN_BOTH inline float log1p(float x) {
    return ::log1pf(x);
}
template <>
FPRNN_BOTH inline float sqrt(float x) {
    return ::sqrtf(x);
}
template <>
FPRNN_BOTH inline float ceil(float x) {
    return ::ceilf(x);
}

/// 1 / (1 + e^{−x}), without the overflow of e^{−x} that the result does not show.
template <class T>
FPRNN_BOTH inline T logistic(T x) {
#ifndef __CUDA_ARCH__  // which has no flags
    if constexpr (std::is_floating_point_v<T>)
        if (x < -bits_of<T>::largest_exponent) return T(0);
#endif
    return T(1) / (T(1) + exp(-x));
}

}  // namespace fprnn::math
