#pragma once

#include <fprnn/core/number_text.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/io/read_file.hpp>

#include <charconv>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fprnn {

/// A table that grows row by row and can be read while it does: every row is flushed.
class csv_file {
public:
    /// A number, a text, or nothing for an empty cell. NaN and infinity are written as nan and inf; a text
    /// stands in quotes where it has to (RFC 4180).
    struct cell {
        std::string text;
        template <class N>
            requires std::is_arithmetic_v<N> cell(N x) {
                if constexpr (std::is_integral_v<N>) {
                    text = std::to_string(x);
                } else {
                    text = detail::number_text(static_cast<double>(x), std::chars_format::general, 7);
                }
            }
        cell(const std::optional<double>& x) {
            if (x) text = cell(*x).text;
        }
        cell(const std::string& words) : text(words) {
            if (words.find_first_of(",\"\r\n") == words.npos) return;
            for (std::size_t i = 0; (i = text.find('"', i)) != text.npos; i += 2) text.insert(i, 1, '"');
            text = '"' + text + '"';
        }
    };

    /// A new table. std::runtime_error when the file cannot be written; its name is in the message.
    csv_file(const std::filesystem::path& path, std::string_view header) : path_(path), file_(open(path, "w")) {
        line(std::string(header));
    }

    /// The table of a run that is taken up again, without what came after row `last`: of a file that is
    /// there, the rows from the top that have the header's number of cells and whose first cell counts up to
    /// `last`; what follows was written later, or half. Where a row before `last` is damaged, the table ends
    /// before it, and the file as it was is kept as path.damaged. A new table where there is no file, or no
    /// more than a part of the header. std::runtime_error when the file cannot be read or written, or has
    /// another header.
    static csv_file continued(const std::filesystem::path& path, std::string_view header, index last) {
        if (!std::filesystem::exists(path)) return {path, header};
        // A pipe would be waited for, for ever.
        if (!std::filesystem::is_regular_file(path)) throw std::runtime_error(path.string() + ": not a regular file");
        const std::string text = read_file(path, std::numeric_limits<std::uintmax_t>::max());
        const std::string first = std::string(header) + "\n";
        if (first.starts_with(text)) return {path, header};
        if (!text.starts_with(first))
            throw std::runtime_error(path.string() + ": expected a table of " + std::string(header) + ", got " +
                                     text.substr(0, std::min(text.find('\n'), header.size())));
        std::size_t end = first.size();
        index rows = 0, before = std::numeric_limits<index>::min();
        for (std::size_t next; (next = text.find('\n', end)) != text.npos; end = next + 1, ++rows) {
            index at = 0;
            const auto [rest, error] = std::from_chars(text.data() + end, text.data() + next, at);
            const bool is_damaged = error != std::errc{} || (*rest != ',' && *rest != '\n') || at <= before ||
                                    cells_of(std::string_view(text).substr(end, next - end)) != cells_of(header);
            if (is_damaged && before < last) write_file(path.string() + ".damaged", text);
            if (is_damaged || at > last) break;
            before = at;
        }
        write_file(path, std::string_view(text).substr(0, end));
        return {path, rows};
    }

    /// Rows so far, those of a table that was continued among them.
    index rows() const { return rows_; }

    void row(std::initializer_list<cell> cells) { row(std::vector<cell>(cells)); }
    void row(const std::vector<cell>& cells) {
        std::string text;
        for (const cell& c : cells) text += (&c == cells.data() ? "" : ",") + c.text;
        line(text);
        ++rows_;
    }

    /// Makes the rows so far survive a power failure. std::runtime_error when that fails.
    void sync() {
        if (detail::uninterrupted([&] { return ::fsync(::fileno(file_.get())); }) != 0) detail::fail_to_write(path_);
    }

private:
    /// Commas within quotes are of a text.
    static index cells_of(std::string_view row) {
        index cells = 1;
        bool quoted = false;
        for (const char c : row) {
            quoted ^= c == '"';
            cells += c == ',' && !quoted;
        }
        return cells;
    }
    static detail::file open(const std::filesystem::path& path, const char* how) {
        detail::file f(std::fopen(path.c_str(), how));
        if (!f) detail::fail_to_write(path);
        return f;
    }
    csv_file(const std::filesystem::path& path, index rows) : path_(path), file_(open(path, "a")), rows_(rows) {}

    void line(const std::string& text) {
        if (std::fprintf(file_.get(), "%s\n", text.c_str()) < 0 || std::fflush(file_.get()) != 0)
            detail::fail_to_write(path_);
    }

    std::filesystem::path path_;
    detail::file file_;
    index rows_ = 0;
};

}  // namespace fprnn
