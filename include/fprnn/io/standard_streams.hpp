#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace fprnn {

/// Opens /dev/null in the place of each standard descriptor that the process was started without, as `>&-`
/// does: a file that is opened later would get its number, and with it what is printed. std::runtime_error
/// when there is no /dev/null.
inline void open_standard_streams() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
        // The lowest free number is taken, which is this one: those below it are open.
        if (::open("/dev/null", O_RDWR) != descriptor)
            throw std::runtime_error("cannot open /dev/null: " + std::generic_category().message(errno));
    }
}

/// std::runtime_error "cannot write NAME: reason" when something that was printed to `out` has not arrived:
/// what a program asks before it claims success.
inline void require_printed(std::FILE* out, std::string_view name) {
    errno = 0;
    const bool flushed = std::fflush(out) == 0;
    if (flushed && std::ferror(out) == 0) return;
    throw std::runtime_error("cannot write " + std::string(name) + ": " +
                             (flushed ? "an earlier line was lost" : std::generic_category().message(errno)));
}

}  // namespace fprnn
