#pragma once

#include <fprnn/tasks/text_part.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fprnn {

/// A story of bAbI and its questions: lines of lower-case words with one space between them.
///
///     statement    "mary moved to the bathroom ."
///     question     "where is mary ? bathroom", the answer being one word, such as "n,w"
///
/// The words "." and "?" are nowhere else.
struct babi_story {
    index task = 0;  ///< 1 … 20
    std::vector<std::string> lines{};
};

/// Stories in three parts, those of a part in the order of their tasks.
struct babi_stories {
    std::string name;
    std::vector<babi_story> train{}, validation{}, test{};

    std::vector<babi_story>& of(split part) {
        return part == split::train ? train : part == split::validation ? validation : test;
    }
    const std::vector<babi_story>& of(split part) const { return const_cast<babi_stories&>(*this).of(part); }
};

inline constexpr index babi_tasks = 20;
inline constexpr std::size_t babi_longest_line = 1024;                      ///< bytes
inline constexpr std::uint64_t babi_longest_file = std::uint64_t{1} << 28;  ///< bytes

namespace detail {

/// Visits what stands between spaces.
template <class Visit>
void for_each_word(std::string_view text, Visit&& visit) {
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        if (!word.empty()) visit(word);
        text.remove_prefix(std::min(word.size() + 1, text.size()));
    }
}

/// Reads a bAbI file line by line and knows where it is.
class babi_reader {
public:
    babi_reader(std::string_view bytes, const std::string& name, index task) : rest_(bytes), file_(name), task_(task) {}

    std::vector<babi_story> read() {
        require(!rest_.empty(), "parse_babi", [&] { return file_ + ": expected stories, got an empty file"; });
        while (!rest_.empty()) {
            ++number_;
            read_line(next_line());
        }
        return std::move(stories_);
    }

private:
    template <class Got>
    void expect(bool ok, const std::string_view expected, Got&& got) const {
        require(ok, "parse_babi", [&] {
            return file_ + ":" + std::to_string(number_) + ": expected " + std::string(expected) + ", got " + got();
        });
    }
    void expect_text(bool ok, std::string_view expected, std::string_view got) const {
        expect(ok, expected, [&] {
            std::string quoted = "'";
            for (const char c : got.substr(0, 60)) quoted += c == '\t' ? "\\t" : std::string(1, c);
            return quoted + (got.size() > 60 ? "'…" : "'");
        });
    }

    std::string_view next_line() {
        const std::size_t end = rest_.find('\n');
        std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        expect(line.size() <= babi_longest_line, "a line of at most " + std::to_string(babi_longest_line) + " bytes",
               [&] { return std::to_string(line.size()); });
        for (std::size_t i = 0; i < line.size(); ++i)
            expect((line[i] >= ' ' && line[i] <= '~') || line[i] == '\t', "printable ASCII", [&] {
                return "the byte " + std::to_string(static_cast<unsigned char>(line[i])) + " at position " +
                       std::to_string(i + 1);
            });
        return line;
    }

    void read_line(std::string_view line) {
        const std::string_view id = line.substr(0, line.find(' '));
        std::string_view text = line.substr(id.size());
        if (id != "1") {
            const std::string next = stories_.empty() ? "" : std::to_string(stories_.back().lines.size() + 1);
            expect_text(!next.empty() && id == next, "the id 1" + (next.empty() ? next : " or " + next), id);
        } else {
            stories_.push_back({task_});
        }
        std::string& read = stories_.back().lines.emplace_back();
        const std::size_t tab = text.find('\t');
        if (tab == std::string_view::npos) {
            const std::string_view statement = without_last_spaces(text);
            expect_text(!statement.ends_with('?'), "a TAB and an answer behind '?'", text);
            expect_text(statement.ends_with('.'), "'.' at the end of a statement, or '?' and a TAB", text);
            append_words(statement.substr(0, statement.size() - 1), read);
            read += " .";
            return;
        }
        const std::string_view question = without_last_spaces(text.substr(0, tab));
        const std::string_view after = text.substr(tab + 1), answer = after.substr(0, after.find('\t'));
        expect_text(question.ends_with('?'), "'?' before the first TAB", text);
        expect_text(answer.size() < after.size(), "a second TAB, behind the answer", text);
        append_words(question.substr(0, question.size() - 1), read);
        read += " ? ";
        expect_text(!answer.empty(), "an answer", text);
        append_word(answer, "one word as an answer", read);
        check_supports(after.substr(answer.size() + 1));
    }

    static std::string_view without_last_spaces(std::string_view text) {
        while (text.ends_with(' ')) text.remove_suffix(1);
        return text;
    }

    void append_words(std::string_view text, std::string& line) const {
        for_each_word(text, [&](std::string_view word) {
            if (!line.empty()) line += ' ';
            append_word(word, "words of letters, digits, ' , and -", line);
        });
        expect_text(!line.empty(), "a word before the mark", text);
    }

    void append_word(std::string_view word, std::string_view expected, std::string& line) const {
        for (const char c : word) {
            const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
            expect_text(upper || lower || digit || c == '\'' || c == ',' || c == '-', expected, word);
            line += upper ? static_cast<char>(c - 'A' + 'a') : c;
        }
    }

    // There may be none: nothing supports "nothing".
    void check_supports(std::string_view supports) const {
        const std::size_t question = stories_.back().lines.size();
        for_each_word(supports, [&](std::string_view field) {
            std::size_t id = 0;
            for (const char c : field.substr(0, 9))
                id = c >= '0' && c <= '9' ? 10 * id + static_cast<std::size_t>(c - '0') : question;
            expect_text(id >= 1 && id < question && field == std::to_string(id), "the id of an earlier line", field);
        });
    }

    std::string_view rest_;
    const std::string& file_;
    index task_, number_ = 0;
    std::vector<babi_story> stories_;
};

/// The stories of a file, none when it does not exist.
inline std::vector<babi_story> read_babi_file(const std::string& path, index task) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return {};
        fail_to_read(path, errno);
    }
    const auto bytes = static_cast<std::uint64_t>(found.st_size);
    require(S_ISREG(found.st_mode), "read_babi", [&] { return path + ": expected a file, got none that is regular"; });
    require(bytes <= babi_longest_file, "read_babi", [&] {
        return path + ": expected at most " + std::to_string(babi_longest_file) + " bytes, got " +
               std::to_string(bytes);
    });
    std::string text;
    append_file(path, bytes, text);
    return babi_reader(text, path, task).read();
}

}  // namespace detail

/// The stories of a bAbI file, given as its bytes. A line is one of
///
///     ID statement.
///     ID question?<TAB>answer<TAB>IDs of supporting lines
///
/// IDs count the lines of a story from 1, and each 1 begins a story. Words become lower-case; supports are
/// earlier lines or none, and are checked and left out. Lines end with LF or CRLF, the last one with nothing,
/// too. argument_error "parse_babi: FILE:LINE: expected …, got …" at the first line that is not so, that has
/// a byte which is not printable ASCII, or is longer than babi_longest_line, and when there are no bytes.
///
/// Source: Weston et al. 2015, bAbI 1.2. The published preprocessing of catbAbI loses the last story of every
/// file; here it is kept.
inline std::vector<babi_story> parse_babi(std::string_view bytes, const std::string& file, index task) {
    return detail::babi_reader(bytes, file, task).read();
}

/// The tasks of a folder such as en-valid-10k, files qa1_train.txt, qa1_valid.txt, qa1_test.txt …
/// qa20_test.txt, of the tasks that it has; it gives the stories their name. argument_error when it has no
/// task, or one without all three parts, a file is no regular one or has more than babi_longest_file bytes,
/// or as parse_babi; std::runtime_error "PATH: reason" when a file cannot be read.
inline babi_stories read_babi(const std::string& folder) {
    constexpr std::array parts{std::pair{split::train, "train"}, std::pair{split::validation, "valid"},
                               std::pair{split::test, "test"}};
    babi_stories result{detail::last_component(folder)};
    for (index task = 1; task <= babi_tasks; ++task) {
        std::string present, absent;
        for (const auto& [part, name] : parts) {
            const std::string file = "qa" + std::to_string(task) + "_" + name + ".txt";
            auto stories = detail::read_babi_file(folder + "/" + file, task);
            (stories.empty() ? absent : present) += " " + file;
            auto& all = result.of(part);
            all.insert(all.end(), std::make_move_iterator(stories.begin()), std::make_move_iterator(stories.end()));
        }
        require(present.empty() || absent.empty(), "read_babi",
                [&] { return "a task needs three parts, and '" + folder + "' has" + present + " but not" + absent; });
    }
    require(!result.train.empty(), "read_babi", [&] {
        return "expected qa1_train.txt, qa1_valid.txt, qa1_test.txt, or those of another task up to qa20, got none in "
               "'" +
               folder + "'";
    });
    return result;
}

}  // namespace fprnn
