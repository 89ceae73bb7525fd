#pragma once

#include <fprnn/core/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace fprnn {

namespace detail {
struct close_file {
    void operator()(std::FILE* f) const { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, close_file>;

[[noreturn]] inline void fail_to_write(const std::filesystem::path& path, int error = errno) {
    throw std::runtime_error("cannot write " + path.string() + ": " + std::generic_category().message(error));
}

/// The calls that write_file makes; a test puts failing ones in their place.
struct system_calls {
    int open(const char* path, int flags) const { return ::open(path, flags, 0666); }
    ssize_t write(int descriptor, const char* bytes, std::size_t n) const { return ::write(descriptor, bytes, n); }
    int sync(int descriptor) const { return ::fsync(descriptor); }
    int close(int descriptor) const { return ::close(descriptor); }
    int rename(const char* from, const char* to) const { return ::rename(from, to); }
};

/// A call's result, made again for as long as signals interrupt it.
template <class Call>
auto uninterrupted(Call call) {
    for (;;)
        if (const auto result = call(); result >= 0 || errno != EINTR) return result;
}

/// The part of a file that is being written: open, under a name that no other process or thread has, and removed in the end
/// unless it was renamed.
template <class System>
class unfinished_file {
public:
    unfinished_file(const System& system, const std::filesystem::path& path) : system_(system), path_(path) {
        static std::atomic<unsigned> count{0};
        do {
            part_ = path.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".part";
            descriptor_ =
                uninterrupted([&] { return system_.open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC); });
        } while (descriptor_ < 0 && errno == EEXIST);
        if (descriptor_ < 0) fail_to_write(path_);
    }
    unfinished_file(const unfinished_file&) = delete;
    unfinished_file& operator=(const unfinished_file&) = delete;
    ~unfinished_file() {
        if (descriptor_ >= 0) system_.close(descriptor_);
        if (!part_.empty()) ::unlink(part_.c_str());
    }

    void write(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto n = uninterrupted([&] { return system_.write(descriptor_, bytes.data(), bytes.size()); });
            // Nothing written and no reason given would be asked for ever.
            if (n <= 0) fail_to_write(path_, n == 0 ? EIO : errno);
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    void rename() {
        if (uninterrupted([&] { return system_.sync(descriptor_); }) != 0) fail_to_write(path_);
        // Some file systems report a full disk only here.
        if (system_.close(std::exchange(descriptor_, -1)) != 0) fail_to_write(path_);
        if (system_.rename(part_.c_str(), path_.c_str()) != 0) fail_to_write(path_);
        part_.clear();
    }

private:
    const System& system_;
    const std::filesystem::path& path_;
    std::string part_;
    int descriptor_ = -1;
};

/// The folder of a file, which can make its names survive a power failure.
template <class System>
class folder_of {
public:
    folder_of(const System& system, const std::filesystem::path& path) : system_(system), path_(path) {
        const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
        descriptor_ = uninterrupted([&] { return system_.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
        if (descriptor_ < 0) fail_to_write(path_);
    }
    folder_of(const folder_of&) = delete;
    folder_of& operator=(const folder_of&) = delete;
    ~folder_of() { system_.close(descriptor_); }

    void sync() const {
        const bool done = uninterrupted([&] { return system_.sync(descriptor_); }) == 0;
        // Not every file system can; such a one keeps its names by other means or not at all.
        if (!done && errno != EINVAL && errno != ENOTSUP) fail_to_write(path_);
    }

private:
    const System& system_;
    const std::filesystem::path& path_;
    int descriptor_ = -1;
};

template <class System>
void write_file(const System& system, const std::filesystem::path& path, std::string_view text) {
    std::error_code error;
    const auto there = std::filesystem::status(path, error).type();
    if (there == std::filesystem::file_type::directory) fail_to_write(path, EISDIR);
    // As root, a rename would put a file in the place of /dev/null.
    if (!error && there != std::filesystem::file_type::regular && there != std::filesystem::file_type::not_found)
        throw std::runtime_error("cannot write " + path.string() + ": not a regular file");
    const folder_of folder(system, path);
    unfinished_file part(system, path);
    part.write(text);
    part.rename();
    folder.sync();
}
}  // namespace detail

/// Writes the file anew. It appears whole or not at all, for other processes and after a power failure alike: a file beside it,
/// NAME.PROCESS-NUMBER.part, is written, synced and renamed. std::runtime_error "cannot write NAME: reason" when that fails;
/// the file is then as it was and nothing is left beside it. (One exception: when all went well but the folder cannot be
/// synced, the new file is there and may not survive a power failure.) A process that is killed can leave a part.
inline void write_file(const std::filesystem::path& path, std::string_view text) {
    detail::write_file(detail::system_calls{}, path, text);
}

/// Creates the folder and its parents where they lack, durably, and writes and removes a file in it: argument_error when that
/// fails, so that a long job can ask before it starts.
inline void require_writable_folder(const std::filesystem::path& folder, std::string_view operation) {
    const auto refuse = [&](const std::string& why) {
        throw argument_error(std::string(operation) + ": expected a folder that can be written, got '" +
                             folder.string() + "' (" + why + ")");
    };
    std::error_code error;
    std::vector<std::filesystem::path> made;
    auto p = std::filesystem::absolute(folder, error);
    if (error) refuse(error.message());
    for (; !std::filesystem::exists(p, error); p = p.parent_path()) made.push_back(p);
    std::filesystem::create_directories(folder, error);
    if (error) refuse(error.message());
    if (!std::filesystem::is_directory(folder, error)) refuse(error ? error.message() : "not a folder");
    try {
        for (const auto& m : made) detail::folder_of(detail::system_calls{}, m).sync();
        const std::filesystem::path probe = folder / ".write_probe";
        write_file(probe, "?");
        std::filesystem::remove(probe);
    } catch (const std::exception& e) {
        refuse(e.what());
    }
}

}  // namespace fprnn
