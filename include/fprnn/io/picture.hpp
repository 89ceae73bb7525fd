#pragma once

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
};

}  // namespace fprnn
