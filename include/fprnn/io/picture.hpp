#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What is drawn: curves on axes, one or several figures in a picture.
namespace fprnn {

struct curve {
    std::string label;  ///< in the key and above its bars; empty: in neither, and there are no bars
    std::vector<double> x;
    std::vector<double> y;  ///< what is not finite, or not positive on a logarithmic axis, is left out
    std::string colour = "#1f4e9c";
    double width = 3.5;
    int dash = 1;  ///< gnuplot's dash type, 1 for solid
    bool points = true;
    /// The interval of each y, drawn as a band; none: there is none.
    std::vector<double> low{}, high{};
};

struct axis {
    std::string label;
    int log = 0;  ///< base of a logarithmic axis; 0: linear
    /// None: what the curves need; a linear y axis then begins at 0 or below.
    std::optional<std::pair<double, double>> limits{};

    /// argument_error as picture::validate.
    void validate(const char* name) const {
        require(log == 0 || log >= 2, "picture", [&] {
            return std::string(name) + ".log is a base of at least 2, or 0: linear, got " + std::to_string(log);
        });
        if (!limits) return;
        const double low = limits->first, high = limits->second;
        require(math::is_finite(low) && math::is_finite(high) && low < high && (log == 0 || low > 0), "picture", [&] {
            return std::string(name) + ".limits must be finite and rise, " +
                   (log == 0 ? "" : "on a logarithmic axis from above 0, ") + "got " + detail::number_text(low) +
                   " and " + detail::number_text(high);
        });
    }
};

/// A line across a figure at one value of an axis.
struct mark {
    double at = 0;
    std::string label;
};

struct figure {
    std::string title;
    axis x;
    axis y;
    std::vector<curve> curves;
    std::optional<mark> upright{};  ///< at an x; what lies beyond has a tinted ground
    std::optional<mark> level{};    ///< at a y
    std::string dashed{};           ///< what the curves without a label show, if there are any
};

/// Figures in rows of two, under one title and above one key, that of the curves of the first figure; or one
/// figure.
struct picture {
    std::string title;
    std::vector<figure> figures;

    picture(std::string t, std::vector<figure> f) : title(std::move(t)), figures(std::move(f)) {}
    picture(const figure& f) : figures{f} {}

    /// argument_error unless there is a figure, a curve's y are as many as its x, its intervals as many or
    /// none, limits are finite and rise, and those of a logarithmic axis are positive.
    void validate() const {
        require(!figures.empty(), "picture", [] { return std::string("expected a figure, got none"); });
        for (const figure& f : figures) {
            f.x.validate("x");
            f.y.validate("y");
            for (const curve& c : f.curves) {
                const auto fits = [&](const char* name, const std::vector<double>& v, bool may_lack) {
                    require(v.size() == c.x.size() || (may_lack && v.empty()), "picture", [&] {
                        return "curve '" + c.label + "': " + name + " must have as many numbers as x, " +
                               std::to_string(c.x.size()) + ", got " + std::to_string(v.size());
                    });
                };
                fits("y", c.y, false);
                fits("low", c.low, c.high.empty());
                fits("high", c.high, c.low.empty());
            }
        }
    }
};

}  // namespace fprnn
