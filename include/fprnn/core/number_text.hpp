#pragma once

#include <fprnn/core/math.hpp>

#include <charconv>
#include <string>

/// Numbers as text, which is the same in every locale, C's and C++'s: printf and streams write 0,5 in some,
/// and group digits.
namespace fprnn::detail {

/// x for a message, in as few digits as bring back its bits. A NaN is "nan": its sign is chance, and differs
/// between instruction sets.
inline std::string number_text(double x) {
    if (math::is_nan(x)) return "nan";
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

/// x as printf writes it in the locale "C": general is "%.*g", fixed "%.*f", scientific "%.*e", with a
/// precision of at most
/// 60. A NaN is "nan".
inline std::string number_text(double x, std::chars_format format, int precision) {
    if (math::is_nan(x)) return "nan";
    char text[400];  // the largest number has 309 digits before its point
    return {text, std::to_chars(text, text + sizeof text, x, format, precision).ptr};
}

}  // namespace fprnn::detail
