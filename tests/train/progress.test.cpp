#include "locales.hpp"

#include <fprnn/train/progress.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
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

TEST_CASE("progress: no more time is left than there is to a limit") {
    std::FILE* file = std::tmpfile();
    {
        progress p(file, 1000000, 0);
        p.update({.step = 0, .most_seconds = 7200});
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        p.update({.step = 1, .most_seconds = 7.2});  // 30,000 seconds by the steps
        p.update({.step = 2, .most_seconds = -1});
    }
    const std::string text = content(file);
    std::fclose(file);
    CHECK(text == "0/1000000  left 2h00m\n1/1000000  left 7s\n2/1000000  left 0s\n");
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

/// A variable of the environment while it lives; null: unset.
struct environment {
    std::string name;
    std::optional<std::string> before;
    environment(const char* n, const char* value) : name(n) {
        if (const char* old = std::getenv(n)) before = old;
        set(value);
    }
    ~environment() { set(before ? before->c_str() : nullptr); }
    environment(const environment&) = delete;

private:
    void set(const char* value) const {
        if (value)
            ::setenv(name.c_str(), value, 1);
        else
            ::unsetenv(name.c_str());
    }
};

/// A terminal of 24 lines, and what was written to it.
class pseudo_terminal {
public:
    explicit pseudo_terminal(unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
        REQUIRE(master_ >= 0);
        REQUIRE(::grantpt(master_) == 0);
        REQUIRE(::unlockpt(master_) == 0);
        const int terminal = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
        REQUIRE(terminal >= 0);
        const winsize window{24, columns, 0, 0};
        REQUIRE(::ioctl(terminal, TIOCSWINSZ, &window) == 0);
        file = ::fdopen(terminal, "w");
    }
    ~pseudo_terminal() {
        std::fclose(file);
        ::close(master_);
    }
    pseudo_terminal(const pseudo_terminal&) = delete;

    /// All of it, up to where `last` is in it. The terminal hands on what was written when it likes, and in
    /// pieces.
    std::string written(const std::string& last) {
        std::string text;
        pollfd ready{master_, POLLIN, 0};
        while (text.find(last) == std::string::npos && ::poll(&ready, 1, 5000) > 0) {
            char buffer[4096];
            const auto n = ::read(master_, buffer, sizeof buffer);
            if (n <= 0) break;
            text.append(buffer, static_cast<std::size_t>(n));
        }
        return text;
    }

    std::FILE* file = nullptr;

private:
    int master_;
};

/// What a short training writes to a terminal.
std::string training(pseudo_terminal& terminal) {
    {
        progress p(terminal.file, 2, 0);
        p.update({.step = 1, .loss = 1, .token_accuracy = .5, .sequence_accuracy = .5});
        p.update({.step = 1});
        p.update({.step = 2, .loss = 1});
        p.print("between");
        p.update({.step = 2});
        p.finish();
        p.print("the end");
    }
    return terminal.written("the end");
}

TEST_CASE("progress: on a terminal one line is rewritten within the window's width") {
    const environment term("TERM", "xterm-256color");
    pseudo_terminal terminal(30);
    const std::string text = training(terminal);
    CHECK(text.find("\r1/2  loss 1  token 0.5000\x1b[K\r2/2") == 0);
    CHECK(text.find("\r\x1b[Kbetween") != std::string::npos);
}

TEST_CASE("progress: no colour is ever written, with NO_COLOR and without") {
    const environment term("TERM", "xterm-256color");
    for (const char* value : {static_cast<const char*>(nullptr), "", "1"}) {
        const environment no_color("NO_COLOR", value);
        pseudo_terminal terminal(80);
        const std::string text = training(terminal);
        // A colour is ESC [ numbers m; the rest of the line is cleared by ESC [ K, the only other sequence.
        for (std::size_t at = 0; (at = text.find('\x1b', at)) != text.npos; ++at) CHECK(text.substr(at, 3) == "\x1b[K");
    }
}

TEST_CASE("progress: a terminal that is dumb, or that TERM does not name, gets plain lines within its width") {
    for (const char* value : {static_cast<const char*>(nullptr), "", "dumb"}) {
        const environment term("TERM", value);
        pseudo_terminal terminal(30);
        const std::string text = training(terminal);
        CHECK(text.find('\x1b') == std::string::npos);
        // The terminal itself puts a carriage return before every line feed.
        CHECK(text.find("1/2  loss 1  token 0.5000\r\n") == 0);
        CHECK(text.find("\r\nbetween\r\n") != std::string::npos);
        for (std::size_t at = 0; (at = text.find('\r', at)) != text.npos; ++at) CHECK(text[at + 1] == '\n');
    }
}

TEST_CASE("columns_of: a window's, else COLUMNS, else 80, which a file always has") {
    const environment given("COLUMNS", "57");
    pseudo_terminal narrow(30), unknown(0);
    CHECK(fprnn::columns_of(narrow.file) == 30);
    CHECK(fprnn::columns_of(unknown.file) == 57);
    for (const char* value : {static_cast<const char*>(nullptr), "", "0", "-3", "wide", "57x", "99999999999999"}) {
        const environment no_use("COLUMNS", value);
        CHECK(fprnn::columns_of(unknown.file) == 80);
    }
    std::FILE* file = std::tmpfile();
    CHECK(fprnn::columns_of(file) == 80);
    CHECK_FALSE(fprnn::is_terminal(file));
    CHECK_FALSE(fprnn::rewrites_lines(file));
    std::fclose(file);
}

TEST_CASE("progress: what it cannot show is refused") {
    CHECK_THROWS_WITH_AS(progress(nullptr, 1), "progress: out is null", fprnn::argument_error);
    CHECK_THROWS_AS(progress(stderr, -1), fprnn::argument_error);
    CHECK_THROWS_AS(progress(stderr, 1, -1), fprnn::argument_error);
}

TEST_CASE("progress: numbers are the same in any locale") {
    const progress_report r{.step = 1000, .loss = 1.2345, .token_accuracy = 0.5, .iterations = 12345};
    const auto line = [&] { return progress_line(r, 3000, 812.4, 185, 200); };
    const std::string expected = "1000/3000  loss 1.234  token 0.5000  iterations 1.234e+04  812.4 seq/s  left 3m05s";
    CHECK(line() == expected);
    fprnn::testing::with_decimal_commas([&] { CHECK(line() == expected); });
}

}  // namespace
