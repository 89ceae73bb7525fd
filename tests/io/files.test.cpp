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

struct stat info_of(const fs::path& path) {
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info;
}
mode_t mode_of(const fs::path& path) { return info_of(path).st_mode & 07777; }

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
    int open(const char* path, int flags, mode_t mode = 0666) const {
        return fails("open") ? -1 : system_calls::open(path, flags, mode);
    }
    int chmod(int descriptor, mode_t mode) const { return fails("chmod") ? -1 : system_calls::chmod(descriptor, mode); }
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
    int open(const char* path, int flags, mode_t mode = 0666) const {
        if ((flags & O_CREAT) && other.empty()) ::close(system_calls::open((other = path).c_str(), flags));
        return system_calls::open(path, flags, mode);
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
    CHECK(mode_of(folder.path / "a.txt") == 0644);
}

TEST_CASE("files: a file that is written anew keeps its permissions, whatever the mask, and is never open to more") {
    const scratch_folder folder;
    const auto path = folder.path / "a.txt";
    fprnn::write_file(path, "before");
    for (const mode_t mode : {0600u, 0640u, 0666u, 0755u, 0400u}) {
        CAPTURE(mode);
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        fprnn::write_file(path, "after");
        CHECK(mode_of(path) == mode);
    }
    // What another process sees of the part.
    struct : fprnn::detail::system_calls {
        mutable mode_t seen = 0;
        ssize_t write(int descriptor, const char* bytes, std::size_t n) const {
            struct stat info {};
            REQUIRE(::fstat(descriptor, &info) == 0);
            seen = info.st_mode & 07777;
            return system_calls::write(descriptor, bytes, n);
        }
    } system;
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    fprnn::detail::write_file(system, path, "text");
    CHECK(system.seen == 0600);
}

TEST_CASE("files: root leaves a file to its owner and group; from others, another group gets no more than everybody") {
    const scratch_folder folder;
    const auto path = folder.path / "a.txt";
    fprnn::write_file(path, "before");
    if (::chown(path.c_str(), 12345, 23456) != 0) return;  // not root
    REQUIRE(::chmod(path.c_str(), 0640) == 0);
    fprnn::write_file(path, "after");
    CHECK(info_of(path).st_uid == 12345);
    CHECK(info_of(path).st_gid == 23456);
    CHECK(mode_of(path) == 0640);

    REQUIRE(::chmod(path.c_str(), 0664) == 0);
    REQUIRE(::chmod(folder.path.c_str(), 0777) == 0);
    const auto before = ::geteuid();
    if (::seteuid(12346) != 0) return;
    std::string said;
    try {
        fprnn::write_file(path, "other");
    } catch (const std::runtime_error& e) {
        said = e.what();
    }
    REQUIRE(::seteuid(before) == 0);
    CHECK(said == "");
    CHECK(info_of(path).st_uid == 12346);
    CHECK(mode_of(path) == 0644);
}

TEST_CASE("files: a symbolic link stays one, and what it leads to is written whole or not at all") {
    const scratch_folder folder;
    const auto there = folder.path / "there", here = folder.path / "here";
    fs::create_directory(there);
    fs::create_directory(here);
    fprnn::write_file(there / "a.txt", "before");
    fs::permissions(there / "a.txt", fs::perms(0606));
    fs::create_symlink("../there/a.txt", here / "relative");
    fs::create_symlink(there / "a.txt", here / "absolute");
    fs::create_symlink("relative", here / "link of a link");
    for (const char* name : {"relative", "absolute", "link of a link"}) {
        CAPTURE(name);
        fprnn::write_file(here / name, name);
        CHECK(fs::is_symlink(here / name));
        CHECK_FALSE(fs::is_symlink(there / "a.txt"));
        CHECK(content(there / "a.txt") == name);
        CHECK(mode_of(there / "a.txt") == 0606);
    }
    const failing_calls full{{}, 3, ENOSPC};
    CHECK_THROWS_WITH_AS(fprnn::detail::write_file(full, here / "absolute", "after"),
                         ("cannot write " + (there / "a.txt").string() + ": No space left on device").c_str(),
                         std::runtime_error);
    CHECK(content(there / "a.txt") == "link of a link");
    CHECK(files_in(there) == 1);

    // To where nothing is yet, and to where nothing can be.
    fs::create_symlink(there / "b.txt", here / "new");
    fprnn::write_file(here / "new", "text");
    CHECK(fs::is_symlink(here / "new"));
    CHECK(content(there / "b.txt") == "text");
    fs::create_symlink("/none/c.txt", here / "nowhere");
    CHECK_THROWS_WITH_AS(fprnn::write_file(here / "nowhere", "text"),
                         "cannot write /none/c.txt: No such file or directory", std::runtime_error);
    fs::create_symlink("two", here / "one");
    fs::create_symlink("one", here / "two");
    CHECK_THROWS_AS(fprnn::write_file(here / "one", "text"), std::runtime_error);
    CHECK(fs::is_symlink(here / "one"));
    CHECK(files_in(here) == 7);
}

TEST_CASE(
    "files: whichever call fails, the error names file and reason, the file is as it was and nothing is beside it") {
    const scratch_folder folder;
    const auto path = folder.path / "a.txt";
    std::vector<std::string> failed;
    for (int which = 0;; ++which) {
        fprnn::write_file(path, "before");
        fs::permissions(path, fs::perms(0606));  // others than a new file has
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
        const bool renamed = which >= 7;
        CHECK(content(path) == (renamed ? "after" : "before"));
        const bool closes_folder = which == 8;
        CHECK(said == (closes_folder ? ""
                                     : "cannot write " + path.string() + ": " +
                                           (which % 2 ? "Input/output error" : "No space left on device")));
    }
    CHECK(failed ==
          std::vector<std::string>{"open", "open", "chmod", "write", "sync", "close", "rename", "sync", "close"});
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
    CHECK_THROWS_WITH_AS(fprnn::write_file(folder.path / "null", "x"), "cannot write /dev/null: not a regular file",
                         std::runtime_error);
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
