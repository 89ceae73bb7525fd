#pragma once

#include <fprnn/core/number_text.hpp>
#include <fprnn/core/terminal.hpp>
#include <fprnn/io/gnuplot.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace fprnn {

/// A picture as text, at most `columns` wide where that is 22 or more: one block a curve, one bar a point, at
/// most `most_points` of a curve. Braces, which group gnuplot's subscripts, are left out. Errors: what
/// picture::validate refuses.
inline std::string text_chart(const picture& p, int columns = 80, std::size_t most_points = 16) {
    p.validate();
    // "1234567 *|" before the bar, "| 0.0001235" behind it.
    constexpr int around = 10 + 11, longest = 50;
    const int width = std::clamp(columns - around, 0, longest);
    const auto line = [&](const std::string& text) {
        return wrapped(text, static_cast<std::size_t>(std::max(columns, 1))) + "\n";
    };
    std::string text;
    if (!p.title.empty()) text += line(p.title);
    for (const figure& f : p.figures) {
        const detail::extent e = detail::extents_of(f).y;
        const auto position = [&](double y) { return f.y.log == 0 ? y : std::log(y); };
        const double low = position(e.low), high = position(e.high);
        if (&f != &p.figures.front() || !p.title.empty()) text += "\n";
        if (!f.title.empty()) text += line(f.title);
        text += line(f.y.label + "; " + f.x.label + (f.upright ? "; * " + f.upright->label : ""));
        for (const curve& c : f.curves) {
            curve drawn{.label = {}, .x = {}, .y = {}};
            detail::for_each_point(f, c, [&](double x, double y) {
                drawn.x.push_back(x);
                drawn.y.push_back(y);
            });
            const std::size_t points = drawn.x.size(), shown = std::min(points, most_points);
            if (c.label.empty() || points == 0) continue;
            text += "\n" + line(c.label);
            for (std::size_t i = 0; i < shown; ++i) {
                const std::size_t j = shown < 2 ? 0 : i * (points - 1) / (shown - 1);
                const double share = high > low ? std::clamp((position(drawn.y[j]) - low) / (high - low), 0.0, 1.0) : 0;
                const auto full = static_cast<std::size_t>(std::lround(width * share));
                const std::string x = detail::number_text(drawn.x[j], std::chars_format::general, 7);
                text += std::string(7 - std::min<std::size_t>(x.size(), 7), ' ') + x +
                        (f.upright && f.upright->at == drawn.x[j] ? " *|" : "  |") + std::string(full, '#') +
                        std::string(static_cast<std::size_t>(width) - full, ' ') + "| " +
                        (f.y.limits ? detail::number_text(drawn.y[j], std::chars_format::fixed, 3)
                                    : detail::number_text(drawn.y[j], std::chars_format::general, 4)) +
                        "\n";
            }
        }
    }
    std::erase_if(text, [](char c) { return c == '{' || c == '}'; });
    return text;
}

}  // namespace fprnn
