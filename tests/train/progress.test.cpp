#include <fprnn/train/progress.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>

namespace {

using fprnn::duration_text;
using fprnn::index;
using fprnn::progress;
using fprnn::progress_line;
using fprnn::progress_report;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string content(std::FILE* file) {
    std::rewind(file);
    std::string text;
    for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    return text;
}

TEST_CASE("progress: durations are short, rounded and never cut") {
    CHECK(duration_text(42) == "42s");
    CHECK(duration_text(59.6) == "1m00s");
    CHECK(duration_text(185) == "3m05s");
    CHECK(duration_text(7620) == "2h07m");
    CHECK(duration_text(-1) == "?");
    CHECK(duration_text(nan) == "?");
}

TEST_CASE("progress: a line has the parts that are known, and only whole ones that fit") {
    progress_report r{
        .step = 12, .sequences = 100, .loss = 1.23456, .token_accuracy = .5, .sequence_accuracy = .25, .iterations = 7};
    CHECK(progress_line(r, 3000, 812.4, 185, 200) ==
          "12/3000  loss 1.235  token 0.5000  sequence 0.2500  iterations 7  812.4 seq/s  left 3m05s");
    for (int width = 0; width < 100; ++width)
        CHECK(static_cast<int>(progress_line(r, 3000, 812.4, 185, width).size()) <= width);
    CHECK(progress_line({.step = 1}, 3, 0, 185, 200) == "1/3  left 3m05s");
    r.loss = nan;
    CHECK(progress_line(r, 3, 0, 1, 16).find("nan") != std::string::npos);
}

TEST_CASE("progress: a file gets plain lines, the first and the last step among them") {
    std::FILE* file = std::tmpfile();
    {
        progress p(file, 100, 1000);
        for (index i = 1; i <= 100; ++i) p.update({.step = i});
        p.print("done");
    }
    const std::string text = content(file);
    std::fclose(file);
    CHECK(text.find('\r') == std::string::npos);
    CHECK(text.find("1/100") == 0);
    CHECK(text.find("\n100/100") != std::string::npos);
    CHECK(text.substr(text.size() - 6) == "\ndone\n");
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("progress: a loop that ends by the clock says how much is over") {
    std::FILE* file = std::tmpfile();
    {
        progress p(file, 1000000, 0);
        p.update({.step = 1, .done = 1.0});
    }
    const std::string text = content(file);
    std::fclose(file);
    CHECK(text == "1/1000000  left 0s\n");
}

TEST_CASE("progress: what others did before counts neither for the rate nor for the time that is left") {
    std::FILE* file = std::tmpfile();
    {
        progress p(file, 100, 0, {.step = 50, .sequences = 1000});
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        p.update({.step = 51, .sequences = 1000});
    }
    const std::string text = content(file);
    std::fclose(file);
    CHECK(text.find("51/100  left ") == 0);  // no rate
    CHECK(text != "51/100  left 0s\n");      // 49 times 30 milliseconds or more
}

TEST_CASE("progress: on a terminal one line is rewritten within the window's width") {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    const winsize window{24, 30, 0, 0};
    REQUIRE(::ioctl(terminal, TIOCSWINSZ, &window) == 0);
    std::FILE* file = ::fdopen(terminal, "w");
    {
        progress p(file, 2);
        p.update({.step = 1, .loss = 1, .token_accuracy = .5, .sequence_accuracy = .5});
        p.update({.step = 1});
        p.update({.step = 2, .loss = 1});
        p.print("between");
        p.update({.step = 2});
    }
    // The terminal hands on what was written when it likes, and in pieces.
    std::string text;
    pollfd ready{master, POLLIN, 0};
    while (text.find("between") == std::string::npos && ::poll(&ready, 1, 5000) > 0) {
        char buffer[4096];
        const auto n = ::read(master, buffer, sizeof buffer);
        if (n <= 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    std::fclose(file);
    ::close(master);
    CHECK(text.find("\r1/2  loss 1  token 0.5000\x1b[K\r2/2") == 0);
    CHECK(text.find("\r\x1b[Kbetween") != std::string::npos);
}

TEST_CASE("progress: what it cannot show is refused") {
    CHECK_THROWS_WITH_AS(progress(nullptr, 1), "progress: out is null", fprnn::argument_error);
    CHECK_THROWS_AS(progress(stderr, -1), fprnn::argument_error);
    CHECK_THROWS_AS(progress(stderr, 1, -1), fprnn::argument_error);
}

}  // namespace
