#pragma once

#include <compare>

/// The library's version, in this one place: CMake reads these lines.
#define FPRNN_VERSION_MAJOR 0
#define FPRNN_VERSION_MINOR 1
#define FPRNN_VERSION_PATCH 0

namespace fprnn {

/// A semantic version; `version >= version_number{0, 2, 0}` is a constant.
struct version_number {
    int major, minor, patch;
    friend constexpr bool operator==(const version_number&, const version_number&) = default;
    friend constexpr auto operator<=>(const version_number&, const version_number&) = default;
};
inline constexpr version_number version{FPRNN_VERSION_MAJOR, FPRNN_VERSION_MINOR, FPRNN_VERSION_PATCH};

#define FPRNN_TEXT_OF(major, minor, patch) #major "." #minor "." #patch
#define FPRNN_TEXT(major, minor, patch) FPRNN_TEXT_OF(major, minor, patch)
/// "0.1.0"
inline constexpr const char* version_text = FPRNN_TEXT(FPRNN_VERSION_MAJOR, FPRNN_VERSION_MINOR, FPRNN_VERSION_PATCH);
#undef FPRNN_TEXT
#undef FPRNN_TEXT_OF

}  // namespace fprnn
