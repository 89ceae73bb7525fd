#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/hash.hpp>
#include <fprnn/core/random.hpp>
#include <fprnn/tasks/split.hpp>

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// Files as a text's bytes.
namespace fprnn::detail {

/// The bytes of a part, of one file after the other.
struct text_part {
    std::string text;  // its name
    split part = split::train;
    std::vector<std::string> files{};
    std::string bytes{};

    index size() const { return static_cast<index>(bytes.size()); }
    std::int32_t byte(index i) const { return static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]); }

    void require_window(index T) const {
        require(T < size(), "text_files", [&] {
            return "windows of T = " + std::to_string(T) + " need at least " +
                   std::to_string(static_cast<std::uint64_t>(T) + 1) + " bytes, got " + std::to_string(size()) +
                   " in the " + name_of(part) + " part of '" + text + "'";
        });
    }
};

[[noreturn]] inline void fail_to_read(const std::string& path, int error) {
    throw std::runtime_error(path + ": " + std::generic_category().message(error));
}

struct text_file {
    std::string name;  // its path relative to the folder
    std::uint64_t bytes = 0;
};

/// The regular files below a folder in any order. Symbolic links are not followed: they could lead to a file
/// twice, or in circles.
inline std::vector<text_file> files_below(const std::string& root) {
    struct close_folder {
        void operator()(DIR* d) const { ::closedir(d); }
    };
    std::vector<text_file> files;
    std::vector<std::string> folders{""};
    while (!folders.empty()) {
        const std::string below = std::move(folders.back()), folder = root + "/" + below;
        folders.pop_back();
        const std::unique_ptr<DIR, close_folder> entries(::opendir(folder.c_str()));
        if (!entries) fail_to_read(folder, errno);
        errno = 0;
        while (const dirent* entry = ::readdir(entries.get())) {
            const std::string name = entry->d_name, path = folder + name;
            if (name != "." && name != "..") {
                struct stat found {};
                if (::lstat(path.c_str(), &found) != 0) fail_to_read(path, errno);
                if (S_ISDIR(found.st_mode)) folders.push_back(below + name + "/");
                if (S_ISREG(found.st_mode)) files.push_back({below + name, static_cast<std::uint64_t>(found.st_size)});
            }
            errno = 0;
        }
        if (errno != 0) fail_to_read(folder, errno);
    }
    return files;
}

/// Appends as many bytes of the file as it had when it was listed.
inline void append_file(const std::string& path, std::uint64_t expected, std::string& bytes) {
    struct close_file_of_text {
        void operator()(std::FILE* f) const { std::fclose(f); }
    };
    const std::unique_ptr<std::FILE, close_file_of_text> f(std::fopen(path.c_str(), "rb"));
    if (!f) fail_to_read(path, errno);
    const std::size_t before = bytes.size(), n = static_cast<std::size_t>(expected);
    bytes.resize(before + n);
    if (std::fread(bytes.data() + before, 1, n, f.get()) == n) return;
    if (std::ferror(f.get())) fail_to_read(path, errno);
    throw std::runtime_error(path + ": became shorter than " + std::to_string(n) + " bytes while it was read");
}

/// Uniform on [0,1), a function of the name alone: FNV-1a's 64 bits, mixed by Philox.
inline double position_of(std::string_view name) { return random_stream(seed{fnv1a(name)}, 0).uniform(0); }

/// The last component of a path, of what it leads to where that is . or .. or nothing.
inline std::string last_component(std::string path) {
    const auto last = [&] {
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        return path.substr(path.rfind('/') + 1);
    };
    std::string name = last();
    if (!name.empty() && name != "." && name != "..") return name;
    const std::unique_ptr<char, void (*)(void*)> whole(::realpath(path.c_str(), nullptr), std::free);
    if (whole) path = whole.get();
    name = last();
    return name.empty() ? path : name;
}

}  // namespace fprnn::detail
