#pragma once

#include <fprnn/core/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
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
    int open(const char* path, int flags, mode_t mode = 0666) const { return ::open(path, flags, mode); }
    int chmod(int descriptor, mode_t mode) const { return ::fchmod(descriptor, mode); }
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

/// The part of a file that is being written: open, under a name that no other process or thread has, and
/// removed in the end unless it was renamed.
template <class System>
class unfinished_file {
public:
    /// `replaced`: the file that is there; its owner, group and permissions become the part's, before
    /// anything is in it.
    unfinished_file(const System& system, const std::filesystem::path& path, const struct stat* replaced)
        : system_(system), path_(path) {
        constexpr mode_t permissions = 0777;
        static std::atomic<unsigned> count{0};
        do {
            part_ = path.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".part";
            descriptor_ = uninterrupted([&] {
                return system_.open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                    replaced ? replaced->st_mode & permissions : 0666);
            });
        } while (descriptor_ < 0 && errno == EEXIST);
        if (descriptor_ < 0) fail_to_write(path_);
        if (!replaced) return;
        try {
            keep(*replaced, replaced->st_mode & permissions);
        } catch (...) {
            remove();
            throw;
        }
    }
    unfinished_file(const unfinished_file&) = delete;
    unfinished_file& operator=(const unfinished_file&) = delete;
    ~unfinished_file() { remove(); }

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
    void keep(const struct stat& replaced, mode_t mode) {
        struct stat own {};
        if (::fstat(descriptor_, &own) != 0) fail_to_write(path_);
        // Only root may give files away, and only to one's own groups may others.
        const bool same_group = (own.st_uid == replaced.st_uid && own.st_gid == replaced.st_gid) ||
                                ::fchown(descriptor_, replaced.st_uid, replaced.st_gid) == 0 ||
                                ::fchown(descriptor_, static_cast<uid_t>(-1), replaced.st_gid) == 0;
        // Another group may do what everybody may.
        if (!same_group) mode &= ~mode_t{070} | mode << 3;
        // A file system that has none refuses to set them, and has the same for both files.
        if ((own.st_mode & 07777) != mode && system_.chmod(descriptor_, mode) != 0) fail_to_write(path_);
    }
    void remove() {
        if (descriptor_ >= 0) system_.close(std::exchange(descriptor_, -1));
        if (!part_.empty()) ::unlink(part_.c_str());
        part_.clear();
    }

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

/// The path itself, or where it leads when it is a symbolic link, be there a file or not.
inline std::filesystem::path target_of(std::filesystem::path path) {
    constexpr int most = 40;  // links that Linux follows
    for (int links = 0;; ++links) {
        std::error_code error;
        if (!std::filesystem::is_symlink(path, error)) return path;
        if (links == most) fail_to_write(path, ELOOP);
        const auto target = std::filesystem::read_symlink(path, error);
        if (error) fail_to_write(path, error.value());
        path = path.parent_path() / target;
    }
}

template <class System>
void write_file(const System& system, const std::filesystem::path& named, std::string_view text) {
    const std::filesystem::path path = target_of(named);
    std::error_code error;
    const auto there = std::filesystem::status(path, error).type();
    if (there == std::filesystem::file_type::directory) fail_to_write(path, EISDIR);
    // As root, a rename would put a file in the place of /dev/null.
    if (!error && there != std::filesystem::file_type::regular && there != std::filesystem::file_type::not_found)
        throw std::runtime_error("cannot write " + path.string() + ": not a regular file");
    struct stat replaced {};
    const bool replaces = ::stat(path.c_str(), &replaced) == 0;
    const folder_of folder(system, path);
    unfinished_file part(system, path, replaces ? &replaced : nullptr);
    part.write(text);
    part.rename();
    folder.sync();
}
}  // namespace detail

/// Writes the file anew. It appears whole or not at all, for other processes and after a power failure alike:
/// a file beside it, NAME.PROCESS-NUMBER.part, is written, synced and renamed. A symbolic link stays one:
/// what it leads to is NAME. A file that is replaced keeps its permissions, and owner and group as far as the
/// process may give them; other hard links to it keep what was in it. std::runtime_error "cannot write NAME:
/// reason" when that fails;
/// the file is then as it was and nothing is left beside it. (One exception: when all went well but the
/// folder cannot be synced, the new file is there and may not survive a power failure.) A process that is
/// killed can leave a part.
inline void write_file(const std::filesystem::path& path, std::string_view text) {
    detail::write_file(detail::system_calls{}, path, text);
}

namespace detail {
/// Creates a folder and its parents where they lack, so that they survive a power failure; says why that
/// failed. std::runtime_error when one cannot be synced.
inline std::error_code make_folder(const std::filesystem::path& folder) {
    std::error_code error, none;
    std::vector<std::filesystem::path> made;
    auto p = std::filesystem::absolute(folder, error);
    if (error) return error;
    for (; !std::filesystem::exists(p, none); p = p.parent_path()) made.push_back(p);
    std::filesystem::create_directories(folder, error);
    if (error) return error;
    for (const auto& m : made) folder_of(system_calls{}, m).sync();
    return error;
}

/// The same for who writes into it: std::runtime_error "cannot write FOLDER: reason". Without a name it is
/// the current one.
inline void need_folder(const std::filesystem::path& folder) {
    if (folder.empty()) return;
    if (const std::error_code error = make_folder(folder)) fail_to_write(folder, error.value());
}
}  // namespace detail

/// Creates the folder and its parents where they lack, durably, and writes and removes a file in it:
/// argument_error when that fails, so that a long job can ask before it starts.
inline void require_writable_folder(const std::filesystem::path& folder, std::string_view operation) {
    const auto refuse = [&](const std::string& why) {
        throw argument_error(std::string(operation) + ": expected a folder that can be written, got '" +
                             folder.string() + "' (" + why + ")");
    };
    std::error_code error;
    try {
        error = detail::make_folder(folder);
    } catch (const std::exception& e) {
        refuse(e.what());
    }
    if (error) refuse(error.message());
    if (!std::filesystem::is_directory(folder, error)) refuse(error ? error.message() : "not a folder");
    try {
        const std::filesystem::path probe = folder / ".write_probe";
        write_file(probe, "?");
        std::filesystem::remove(probe);
    } catch (const std::exception& e) {
        refuse(e.what());
    }
}

}  // namespace fprnn
