#pragma once

#include <cstdint>
#include <string_view>

namespace fprnn::detail {

inline constexpr std::uint64_t fnv1a_start = 14695981039346656037u, fnv1a_prime = 1099511628211u;

/// FNV-1a of 64 bits, of what follows the bytes whose hash is given: any change within one byte is found for
/// certain, any other goes unseen with a chance of about 2⁻⁶⁴. The starts of parameters, the split of texts
/// and the checksums of files depend on it.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = fnv1a_start) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * fnv1a_prime;
    return hash;
}

}  // namespace fprnn::detail
