#pragma once

#include <fprnn/io/files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace fprnn {

/// The bytes of a file. std::runtime_error "path: …" when it cannot be read or has more than `most`; no more
/// than that is ever held in memory, whatever the path leads to.
inline std::string read_file(const std::filesystem::path& path, std::uintmax_t most) {
    const auto refuse = [&](const std::string& why) { throw std::runtime_error(path.string() + ": " + why); };
    const detail::file f(std::fopen(path.c_str(), "rb"));
    if (!f) refuse(std::strerror(errno));
    std::string bytes;
    std::error_code none;
    const std::uintmax_t expected = std::filesystem::file_size(path, none);
    if (!none) bytes.reserve(static_cast<std::size_t>(std::min(expected, most)));
    char block[1 << 16];
    while (const std::size_t n = std::fread(block, 1, sizeof block, f.get())) {
        if (n > most - bytes.size()) refuse("is longer than the " + std::to_string(most) + " bytes that it may have");
        bytes.append(block, n);
    }
    if (std::ferror(f.get())) refuse(std::strerror(errno));
    return bytes;
}

}  // namespace fprnn
