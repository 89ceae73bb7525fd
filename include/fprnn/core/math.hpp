#pragma once

#include <fprnn/core/host_device.hpp>

#include <cmath>

/// Scalar mathematics under the names that a backend's packs answer to by argument-dependent lookup, so that a body
/// written with `using namespace math` runs on one channel or on a whole register of them.
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
FPRNN_BOTH inline T abs(T x) {
    return x < T(0) ? -x : x;
}
template <class T>
FPRNN_BOTH inline T maximum(T a, T b) {
    return a < b ? b : a;
}
template <class T>
FPRNN_BOTH inline T multiply_add(T a, T b, T c) {
    return a * b + c;
}
template <class T>
FPRNN_BOTH inline T select(bool condition, T yes, T no) {
    return condition ? yes : no;
}
FPRNN_BOTH inline bool any(bool condition) { return condition; }

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

}  // namespace fprnn::math
