#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// What a stream can show. Nothing in the library writes colours, so NO_COLOR (no-color.org) has nothing to
/// switch off.
namespace fprnn {

inline bool is_terminal(std::FILE* out) { return out && ::isatty(::fileno(out)) == 1; }

/// Whether a line that was written can be written over: a terminal that TERM names, and not as "dumb".
inline bool rewrites_lines(std::FILE* out) {
    const char* kind = std::getenv("TERM");
    return is_terminal(out) && kind && *kind && std::string_view(kind) != "dumb";
}

/// The columns of a terminal, or of COLUMNS where it does not say; otherwise 80, which is also what a file
/// has.
inline int columns_of(std::FILE* out) {
    if (!is_terminal(out)) return 80;
    winsize size{};
    if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char* text = std::getenv("COLUMNS");
    const std::string_view digits = text ? text : "";
    int columns = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
    const bool known = error == std::errc{} && end == digits.data() + digits.size() && columns > 0;
    return known ? columns : 80;
}

/// Words in lines of at most so many columns, the last without its end; a longer word has a line of its own.
/// A character of UTF-8 is a column.
inline std::string wrapped(const std::string& text, std::size_t columns) {
    std::string lines, word;
    std::size_t at = 0;
    constexpr const char* spaces = " \t\n\v\f\r";  // a stream would ask the locale, in some of which 0xa0 is one
    for (std::size_t begin = 0, end; (begin = text.find_first_not_of(spaces, begin)) != text.npos; begin = end) {
        end = std::min(text.find_first_of(spaces, begin), text.size());
        word = text.substr(begin, end - begin);
        const auto width = static_cast<std::size_t>(
            std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xc0) != 0x80; }));
        const bool fits = at + 1 + width <= columns;
        if (at > 0) lines += fits ? ' ' : '\n';
        at = (at > 0 && fits ? at + 1 : 0) + width;
        lines += word;
    }
    return lines;
}

}  // namespace fprnn
