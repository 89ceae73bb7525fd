#pragma once

#include <fprnn/core/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace fprnn {

namespace detail {
struct close_file {
    void operator()(std::FILE* f) const { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, close_file>;

[[noreturn]] inline void fail_to_write(const std::filesystem::path& path) {
    throw std::runtime_error("cannot write " + path.string() + ": " + std::strerror(errno));
}
inline file open_to_write(const std::filesystem::path& path) {
    file f(std::fopen(path.c_str(), "w"));
    if (!f) fail_to_write(path);
    return f;
}
}  // namespace detail

/// Writes the file anew. It appears whole or not at all. std::runtime_error when it cannot be written.
inline void write_file(const std::filesystem::path& path, std::string_view text) {
    const std::filesystem::path part = path.string() + ".part";
    detail::file f = detail::open_to_write(part);
    const bool written = std::fwrite(text.data(), 1, text.size(), f.get()) == text.size();
    if (!written || std::fflush(f.get()) != 0) detail::fail_to_write(part);
    f.reset();
    std::filesystem::rename(part, path);
}

/// Creates the folder and its parents where they lack, and writes and removes a file in it: argument_error when that
/// fails, so that a long job can ask before it starts.
inline void require_writable_folder(const std::filesystem::path& folder, std::string_view operation) {
    const auto refuse = [&](const std::string& why) {
        throw argument_error(std::string(operation) + ": expected a folder that can be written, got '" +
                             folder.string() + "' (" + why + ")");
    };
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) refuse(error.message());
    if (!std::filesystem::is_directory(folder)) refuse("not a folder");
    try {
        const std::filesystem::path probe = folder / ".write_probe";
        write_file(probe, "?");
        std::filesystem::remove(probe);
    } catch (const std::exception& e) {
        refuse(e.what());
    }
}

/// A table that grows row by row and can be read while it does: every row is flushed.
class csv_file {
public:
    /// A number, or nothing for an empty cell. NaN and infinity are written as nan and inf.
    struct cell {
        std::string text;
        template <class N>
            requires std::is_arithmetic_v<N> cell(N x) {
                if constexpr (std::is_integral_v<N>) {
                    text = std::to_string(x);
                } else {
                    char digits[32];
                    std::snprintf(digits, sizeof digits, "%.7g", static_cast<double>(x));
                    text = digits;
                }
            }
        cell(const std::optional<double>& x) {
            if (x) text = cell(*x).text;
        }
    };

    /// std::runtime_error when the file cannot be written; its name is in the message.
    csv_file(const std::filesystem::path& path, std::string_view header)
        : path_(path), file_(detail::open_to_write(path)) {
        line(std::string(header));
    }
    void row(std::initializer_list<cell> cells) {
        std::string text;
        for (const cell& c : cells) text += (&c == cells.begin() ? "" : ",") + c.text;
        line(text);
    }

private:
    void line(const std::string& text) {
        if (std::fprintf(file_.get(), "%s\n", text.c_str()) < 0 || std::fflush(file_.get()) != 0)
            detail::fail_to_write(path_);
    }

    std::filesystem::path path_;
    detail::file file_;
};

}  // namespace fprnn
