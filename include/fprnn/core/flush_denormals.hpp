#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace fprnn {

/// While it lives, numbers of this thread below the smallest normal one count as zero, where the processor can do so. States
/// that decay make many of them, and each operation on one takes a hundred times as long as others do.
class flush_denormals {
public:
    flush_denormals(const flush_denormals&) = delete;
    flush_denormals& operator=(const flush_denormals&) = delete;

#if defined(__SSE__)
    static constexpr bool supported = true;
    flush_denormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | flush_results | operands_are_zero); }
    ~flush_denormals() { _mm_setcsr(before_); }

private:
    static constexpr unsigned flush_results = 1u << 15, operands_are_zero = 1u << 6;
    unsigned before_;
#elif defined(__aarch64__)
    static constexpr bool supported = true;
    flush_denormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" ::"r"(before_ | std::uint64_t(1) << 24));
    }
    ~flush_denormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

private:
    std::uint64_t before_;
#else
    static constexpr bool supported = false;
    flush_denormals() {}
    ~flush_denormals() {}
#endif
};

}  // namespace fprnn
