#pragma once

#include <fprnn/core/shape.hpp>

// Philox needs no vector instructions, whose headers would be a quarter of the time that fprnn.hpp takes to
// compile. Who wants Random123's AES generators, too, includes them before.
#ifndef R123_USE_SSE
#define R123_USE_SSE 0
#define R123_USE_AES_NI 0
#define R123_USE_X86INTRIN_H 0
#endif
#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>

namespace fprnn {

/// Names the source of all random numbers of a run.
struct seed {
    std::uint64_t value = 0;
};

/// Random numbers by address: number i of stream s is a pure function of (seed, s, i), so any order of use
/// and any number of threads give the same numbers. The bits are Philox4x32-10 (Salmon et al. 2011,
/// Random123); the transforms are computed here in double because std::normal_distribution differs between
/// standard libraries.
class random_stream {
public:
    /// A number's address: any integer.
    struct address {
        template <std::integral Integer>
        address(Integer i) : value(static_cast<std::uint64_t>(i)) {}
        std::uint64_t value;
    };

    random_stream(seed s, address stream) : key_(s.value), stream_(stream.value) {}

    /// 64 random bits.
    std::uint64_t bits(address i) const {
        const auto w = block(i.value >> 1);
        const std::size_t h = (i.value & 1) * 2;
        return (std::uint64_t{w[h + 1]} << 32) | w[h];
    }

    /// Uniform on [0,1), 53 bits.
    double uniform(address i) const { return static_cast<double>(bits(i) >> 11) * 0x1p-53; }

    /// Standard normal, by Box and Muller; numbers 2k and 2k+1 come from one block.
    double normal(address i) const {
        const std::uint64_t pair = i.value & ~std::uint64_t{1};
        const double radius = std::sqrt(-2.0 * std::log1p(-uniform(pair)));
        const double angle = 2.0 * std::numbers::pi * uniform(pair + 1);
        return radius * ((i.value & 1) ? std::sin(angle) : std::cos(angle));
    }

    /// Uniform on {0, …, n−1}, exact up to n/2^64.
    std::uint64_t below(address i, std::uint64_t n) const {
        const std::uint64_t b = bits(i), high = b >> 32, low = b & 0xffffffffu;
        if (n <= 0xffffffffu) return ((high * n) + ((low * n) >> 32)) >> 32;
        return b % n;
    }

private:
    std::array<std::uint32_t, 4> block(std::uint64_t i) const {
        const r123::Philox4x32::ctr_type counter{{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                                                  static_cast<std::uint32_t>(stream_),
                                                  static_cast<std::uint32_t>(stream_ >> 32)}};
        const r123::Philox4x32::key_type key{
            {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)}};
        const auto r = r123::Philox4x32{}(counter, key);
        return {r[0], r[1], r[2], r[3]};
    }

    std::uint64_t key_;
    std::uint64_t stream_;
};

}  // namespace fprnn
