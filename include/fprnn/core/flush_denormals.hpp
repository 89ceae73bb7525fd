#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace fprnn {

/// While it lives, numbers of this thread below the smallest normal one count as zero, where the processor
/// can do so. States that decay make many of them, and operations on them are many times slower than others.
class flush_denormals {
public:
    flush_denormals(const flush_denormals&) = delete;
    flush_denormals& operator=(const flush_denormals&) = delete;

#if defined(__SSE__)
    static constexpr bool supported = true;
    flush_denormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | modes); }
    /// What a body has raised or set besides stays.
    ~flush_denormals() { _mm_setcsr((_mm_getcsr() & ~modes) | (before_ & modes)); }

private:
    static constexpr unsigned modes = 1u << 15 | 1u << 6;  // results are flushed, operands are zero
    unsigned before_;
#elif defined(__aarch64__)
    static constexpr bool supported = true;
    flush_denormals() : before_(get()) { set(before_ | mode); }
    ~flush_denormals() { set((get() & ~mode) | (before_ & mode)); }

private:
    static constexpr std::uint64_t mode = std::uint64_t(1) << 24;
    static std::uint64_t get() {
        std::uint64_t control;
        asm volatile("mrs %0, fpcr" : "=r"(control));
        return control;
    }
    static void set(std::uint64_t control) { asm volatile("msr fpcr, %0" ::"r"(control)); }
    std::uint64_t before_;
#else
    static constexpr bool supported = false;
    flush_denormals() {}
    ~flush_denormals() {}
#endif
};

}  // namespace fprnn
