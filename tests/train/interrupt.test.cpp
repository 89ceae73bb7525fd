#include <fprnn/train/interrupt.hpp>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace {

using fprnn::interrupt;

/// How a process ends that does this, as a shell says it: its status, or 128 and the signal. Signals that
/// this one ignores, as under nohup or behind a shell's &, end that one.
template <class Work>
int status_of(Work&& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
        ::_exit(work());
    }
    int state = 0;
    ::waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

TEST_CASE("interrupt: the first signal of each kind is noted and ends nothing") {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const int status = status_of([&] {
            const interrupt guard;
            std::raise(signal);
            return interrupt::requested() ? 7 : 0;
        });
        CHECK(status == 7);
    }
}

TEST_CASE("interrupt: after the first signal, SIGINT and SIGTERM end the program, and SIGHUP does not") {
    for (const int first : {SIGINT, SIGTERM, SIGHUP})
        for (const int second : {SIGINT, SIGTERM, SIGHUP}) {
            const int status = status_of([&] {
                const interrupt guard;
                std::raise(first);
                std::raise(second);
                return 7;
            });
            CHECK(status == (second == SIGHUP ? 7 : 128 + second));
        }
}

TEST_CASE("interrupt: a SIGHUP that is ignored, as under nohup, stays ignored") {
    CHECK(status_of([] {
              std::signal(SIGHUP, SIG_IGN);
              const interrupt guard;
              const bool before = interrupt::requested();
              std::raise(SIGHUP);
              return interrupt::requested() == before ? 7 : 1;
          }) == 7);
}

TEST_CASE("interrupt: signals do afterwards what they did before") {
    CHECK(status_of([] {
              { const interrupt guard; }
              std::raise(SIGHUP);
              return 0;
          }) == 128 + SIGHUP);
}

}  // namespace
