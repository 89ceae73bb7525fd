#include "io/scratch_folder.hpp"

#include <fprnn/io/files.hpp>
#include <fprnn/io/read_file.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <iterator>
#include <thread>

namespace {

namespace fs = std::filesystem;
using fprnn::testing::scratch_folder;

std::string content(const fs::path& path) { return fprnn::read_file(path, 1 << 20); }

auto files_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

/// The system, one of whose calls fails.
struct failing_calls : fprnn::detail::system_calls {
    int which = 0;   ///< the call that fails, counted from 0
    int reason = 0;  ///< errno
    mutable int calls = 0;
    mutable std::string failed{};

    bool fails(const char* call) const {
        if (calls++ != which) return false;
        failed = call;
        errno = reason;
        return true;
    }
    int open(const char* path, int flags) const { return fails("open") ? -1 : system_calls::open(path, flags); }
    ssize_t write(int descriptor, const char* bytes, std::size_t n) const {
        return fails("write") ? -1 : system_calls::write(descriptor, bytes, n);
    }
    int sync(int descriptor) const { return fails("sync") ? -1 : system_calls::sync(descriptor); }
    int close(int descriptor) const {
        const int result = system_calls::close(descriptor);
        return fails("close") ? -1 : result;
    }
    int rename(const char* from, const char* to) const { return fails("rename") ? -1 : system_calls::rename(from, to); }
};

/// A disk that takes three bytes a call and asks for each call to be made again.
struct slow_calls : fprnn::detail::system_calls {
    mutable int calls = 0;
    ssize_t write(int descriptor, const char* bytes, std::size_t n) const {
        errno = EINTR;
        return ++calls % 2 ? -1 : system_calls::write(descriptor, bytes, std::min<std::size_t>(n, 3));
    }
};

/// A folder in which the part of another process is where the first one would go.
struct crowded_folder : fprnn::detail::system_calls {
    mutable std::string other{};
    int open(const char* path, int flags) const {
        if ((flags & O_CREAT) && other.empty()) ::close(system_calls::open((other = path).c_str(), flags));
        return system_calls::open(path, flags);
    }
};

TEST_CASE("files: a file is written whole and nothing is left beside it") {
    const scratch_folder folder;
    fprnn::write_file(folder.path / "a.txt", "first");
    fprnn::write_file(folder.path / "a.txt", "second");
    CHECK(content(folder.path / "a.txt") == "second");
    fprnn::write_file(folder.path / "a.txt", "");
    CHECK(content(folder.path / "a.txt").empty());
    CHECK(files_in(folder.path) == 1);
    CHECK_THROWS_WITH_AS(
        fprnn::write_file(folder.path / "none" / "a.txt", ""),
        ("cannot write " + (folder.path / "none" / "a.txt").string() + ": No such file or directory").c_str(),
        std::runtime_error);
}

TEST_CASE("files: others may read a new file as far as the process's mask lets them") {
    const scratch_folder folder;
    const auto before = ::umask(022);
    fprnn::write_file(folder.path / "a.txt", "text");
    ::umask(before);
    struct stat info {};
    REQUIRE(::stat((folder.path / "a.txt").c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0644);
}

TEST_CASE(
    "files: whichever call fails, the error names file and reason, the file is as it was and nothing is beside it") {
    const scratch_folder folder;
    const auto path = folder.path / "a.txt";
    std::vector<std::string> failed;
    for (int which = 0;; ++which) {
        fprnn::write_file(path, "before");
        const failing_calls system{{}, which, which % 2 ? EIO : ENOSPC};
        std::string said;
        try {
            fprnn::detail::write_file(system, path, "after");
        } catch (const std::runtime_error& e) {
            said = e.what();
        }
        if (system.failed.empty()) break;
        CAPTURE(which);
        CAPTURE(system.failed);
        CHECK(files_in(folder.path) == 1);
        failed.push_back(system.failed);
        // The last two calls sync and close the folder, when the new file is already there.
        const bool renamed = which >= 6;
        CHECK(content(path) == (renamed ? "after" : "before"));
        const bool closes_folder = which == 7;
        CHECK(said == (closes_folder ? ""
                                     : "cannot write " + path.string() + ": " +
                                           (which % 2 ? "Input/output error" : "No space left on device")));
    }
    CHECK(failed == std::vector<std::string>{"open", "open", "write", "sync", "close", "rename", "sync", "close"});
}

TEST_CASE("files: short writes and interrupted ones are gone on with") {
    const scratch_folder folder;
    fprnn::detail::write_file(slow_calls{}, folder.path / "a.txt", "ten letters");
    CHECK(content(folder.path / "a.txt") == "ten letters");
}

TEST_CASE("files: the part of another process is neither written nor removed") {
    const scratch_folder folder;
    const crowded_folder system;
    fprnn::detail::write_file(system, folder.path / "a.txt", "text");
    CHECK(content(folder.path / "a.txt") == "text");
    CHECK(content(system.other).empty());
    CHECK(system.other.find((folder.path / "a.txt.").string() + std::to_string(::getpid()) + "-") == 0);
}

TEST_CASE("files: a disk that ends within a file leaves the file that was there") {
    // A limit on the size of files stands for the disk's end: the first write is short, the second fails.
    const scratch_folder folder;
    const auto path = folder.path / "a.txt";
    fprnn::write_file(path, "before");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit small = before;
    small.rlim_cur = 1000;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::string said;
    try {
        fprnn::write_file(path, std::string(1001, 'x'));
    } catch (const std::runtime_error& e) {
        said = e.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(said == "cannot write " + path.string() + ": File too large");
    CHECK(content(path) == "before");
    CHECK(files_in(folder.path) == 1);
}

TEST_CASE("files: neither a folder nor a device is replaced by a file") {
    const scratch_folder folder;
    const auto refused = [](const fs::path& path, const char* why) {
        CHECK_THROWS_WITH_AS(fprnn::write_file(path, "x"), ("cannot write " + path.string() + ": " + why).c_str(),
                             std::runtime_error);
    };
    fs::create_directory(folder.path / "folder");
    refused(folder.path / "folder", "Is a directory");
    fs::create_symlink("/dev/null", folder.path / "null");
    refused(folder.path / "null", "not a regular file");
    fprnn::write_file(folder.path / "file", "");
    refused(folder.path / "file" / "below", "Not a directory");
    CHECK(files_in(folder.path) == 3);
}

TEST_CASE("files: a file that several write at once is always one of theirs, whole") {
    const scratch_folder folder;
    const auto path = folder.path / "a.txt";
    const auto text = [](int i) { return std::string(20'000, static_cast<char>('a' + i)); };
    {
        std::vector<std::jthread> writers;
        for (int i = 0; i < 4; ++i)
            writers.emplace_back([&, i] {
                for (int k = 0; k < 10; ++k) fprnn::write_file(path, text(i));
            });
        for (int k = 0; k < 100; ++k) {
            if (!fs::exists(path)) continue;
            const std::string read = content(path);
            CHECK(read == text(read.empty() ? 0 : read.front() - 'a'));
        }
    }
    CHECK(files_in(folder.path) == 1);
}

TEST_CASE("files: a folder is made with its parents; what cannot be one is named") {
    const scratch_folder folder;
    fprnn::require_writable_folder(folder.path / "a" / "b", "--out");
    CHECK(fs::is_empty(folder.path / "a" / "b"));
    fprnn::write_file(folder.path / "file", "");
    const std::string path = (folder.path / "file").string();
    try {
        fprnn::require_writable_folder(path, "--out");
        FAIL("a file passed as a folder");
    } catch (const fprnn::argument_error& e) {
        CHECK(std::string(e.what()).find("--out: expected a folder that can be written, got '" + path + "' (") == 0);
    }
    CHECK_THROWS_AS(fprnn::require_writable_folder(folder.path / "file" / "below", "--out"), fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::require_writable_folder("", "--out"), fprnn::argument_error);
    // /proc takes no files, not even from root.
    CHECK_THROWS_AS(fprnn::require_writable_folder("/proc", "--out"), fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::require_writable_folder("/proc/none", "--out"), fprnn::argument_error);
}

}  // namespace
