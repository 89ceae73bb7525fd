#include "io/scratch_folder.hpp"

#include <fprnn/io/standard_streams.hpp>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <memory>

namespace {

TEST_CASE(
    "standard streams: none that is closed is ever the number of a file, and those that are open stay what they are") {
    for (int closed = 0; closed < 8; ++closed) {
        const pid_t child = ::fork();
        if (child == 0) {
            const int before = ::dup(STDERR_FILENO);
            for (int d = 0; d < 3; ++d)
                if (closed >> d & 1) ::close(d);
            fprnn::open_standard_streams();
            int wrong = ::open("/dev/null", O_RDONLY) <= STDERR_FILENO;
            for (int d = 0; d < 3; ++d) wrong += ::fcntl(d, F_GETFD) == -1;
            wrong += (closed & 6) && ::write(closed & 2 ? 1 : 2, "lost", 4) != 4;
            ::close(before);
            ::_exit(wrong);
        }
        int state = 0;
        ::waitpid(child, &state, 0);
        CHECK((WIFEXITED(state) && WEXITSTATUS(state) == 0));
    }
}

TEST_CASE("standard streams: what could not be printed is said to be lost, also when the failure was long ago") {
    struct close_stream {
        void operator()(std::FILE* f) const { std::fclose(f); }
    };
    const std::unique_ptr<std::FILE, close_stream> full(std::fopen("/dev/full", "w"));
    REQUIRE(full);
    fprnn::require_printed(full.get(), "the log");
    std::fputs("a line\n", full.get());
    CHECK_THROWS_WITH_AS(fprnn::require_printed(full.get(), "the log"), "cannot write the log: No space left on device",
                         std::runtime_error);

    // Only the buffered rest is written at the end, and that succeeds.
    const fprnn::testing::scratch_folder folder;
    const std::unique_ptr<std::FILE, close_stream> file(std::fopen((folder.path / "log").c_str(), "w"));
    REQUIRE(file);
    CHECK(std::fgetc(file.get()) == EOF);  // sets the stream's error, as a failed write does
    CHECK_THROWS_WITH_AS(fprnn::require_printed(file.get(), "the log"),
                         "cannot write the log: an earlier line was lost", std::runtime_error);
}

}  // namespace
