#pragma once

#include <fprnn/core/number_text.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/core/terminal.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace fprnn {

/// What a training loop has to say after a step; what it leaves out is not shown.
struct progress_report {
    index step = 0;       ///< steps done
    index sequences = 0;  ///< sequences seen since the start, all batches together
    std::optional<double> loss{};
    std::optional<double> token_accuracy{};     ///< share of tokens, in [0,1]
    std::optional<double> sequence_accuracy{};  ///< share of sequences without a mistake, in [0,1]
    std::optional<double> iterations{};         ///< median of the fixed-point iterations
    std::optional<double> done{};               ///< share of the work that is over, where it is not step/total
    std::optional<double> most_seconds{};       ///< that are left at most, such as those to a time limit
};

/// "42s", "3m05s" or "2h07m"; "?" when it is not known.
inline std::string duration_text(double seconds) {
    if (!(seconds >= 0 && seconds < 1e9)) return "?";
    const auto s = static_cast<long>(std::lround(seconds));
    char text[32];
    if (s < 60)
        std::snprintf(text, sizeof text, "%lds", s);
    else if (s < 3600)
        std::snprintf(text, sizeof text, "%ldm%02lds", s / 60, s % 60);
    else
        std::snprintf(text, sizeof text, "%ldh%02ldm", s / 3600, s / 60 % 60);
    return text;
}

/// One line of at most `width` columns. A part that no longer fits is left out whole, so no number is ever
/// cut.
inline std::string progress_line(const progress_report& r, index total, double sequences_per_second,
                                 double seconds_left, int width) {
    std::string line = std::to_string(r.step) + "/" + std::to_string(total);
    if (static_cast<int>(line.size()) > width) line.clear();
    const auto part = [&](const std::string& text) {
        if (static_cast<int>(line.size() + 2 + text.size()) <= width) line += (line.empty() ? "" : "  ") + text;
    };
    const auto general = [](double x) { return detail::number_text(x, std::chars_format::general, 4); };
    const auto fixed = [](double x) { return detail::number_text(x, std::chars_format::fixed, 4); };
    if (r.loss) part("loss " + general(*r.loss));
    if (r.token_accuracy) part("token " + fixed(*r.token_accuracy));
    if (r.sequence_accuracy) part("sequence " + fixed(*r.sequence_accuracy));
    if (r.iterations) part("iterations " + general(*r.iterations));
    if (sequences_per_second > 0) part(general(sequences_per_second) + " seq/s");
    part("left " + duration_text(seconds_left));
    return line;
}

/// Shows how training goes. On a terminal one line is rewritten, at most ten times a second and never wider
/// than the window; elsewhere, in a file, a log or where TERM is missing or "dumb", a plain line is written
/// every `seconds_between_lines`, without any control character. There are no colours. The first step and
/// step `total` are always shown. Rate and time left are means since construction, of what came after
/// `begun`, which was done before. Does not own the file.
class progress {
public:
    /// argument_error when out is null, total negative or the interval not a number of at least 0.
    progress(std::FILE* out, index total, double seconds_between_lines = 10, const progress_report& begun = {})
        : out_(out), total_(total), begun_(begun), rewrites_(rewrites_lines(out)) {
        require(out != nullptr, "progress", [] { return "out is null"; });
        require(total >= 0, "progress", [&] { return "total must be at least 0, got " + std::to_string(total); });
        require(seconds_between_lines >= 0, "progress", [&] {
            return "seconds_between_lines must be at least 0, got " + detail::number_text(seconds_between_lines);
        });
        interval_ = rewrites_ ? 0.1 : seconds_between_lines;
    }
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress() { finish(); }

    /// Shows the report if it is time to.
    void update(const progress_report& report) {
        const double elapsed = std::chrono::duration<double>(clock::now() - start_).count();
        if (elapsed < next_ && report.step != total_) return;
        next_ = elapsed + interval_;
        const double rate = elapsed > 0 ? static_cast<double>(report.sequences - begun_.sequences) / elapsed : 0;
        const double done = share(report), now = done - share(begun_);
        double left = now > 0 ? elapsed * (1 - done) / now : std::numeric_limits<double>::quiet_NaN();
        if (report.most_seconds && !(left <= *report.most_seconds)) left = std::max(0.0, *report.most_seconds);
        const std::string line = progress_line(report, total_, rate, left, width());
        std::fprintf(out_, rewrites_ ? "\r%s\x1b[K" : "%s\n", line.c_str());
        std::fflush(out_);
        open_ = rewrites_;
    }

    /// Writes a line that stays, such as a result in between.
    void print(std::string_view text) {
        std::fprintf(out_, "%s%.*s\n", open_ ? "\r\x1b[K" : "", static_cast<int>(text.size()), text.data());
        std::fflush(out_);
        open_ = false;
    }

    /// Ends the line that is being rewritten, so that what follows starts on a line of its own.
    void finish() {
        if (!open_) return;
        std::fputc('\n', out_);
        std::fflush(out_);
        open_ = false;
    }

private:
    using clock = std::chrono::steady_clock;

    double share(const progress_report& r) const {
        return r.done.value_or(static_cast<double>(r.step) / static_cast<double>(total_));
    }

    // Asked anew each time because windows are resized. The last column stays free: some terminals wrap on
    // it.
    int width() const { return is_terminal(out_) ? columns_of(out_) - 1 : std::numeric_limits<int>::max(); }

    std::FILE* out_;
    index total_;
    progress_report begun_;
    bool rewrites_;
    double interval_ = 0;
    double next_ = 0;
    bool open_ = false;
    clock::time_point start_ = clock::now();
};

}  // namespace fprnn
