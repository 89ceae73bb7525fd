#pragma once

#include <fprnn/core/number_text.hpp>
#include <fprnn/core/tensor.hpp>

#include <functional>
#include <string>
#include <vector>

namespace fprnn {

/// What is said of a mixer beside the laws that all of them keep, and how exactly laws are to hold.
struct mixer_claims {
    /// The definition: Q [D,D] of the raw numbers, one array a map. None: nobody says which matrix was meant.
    std::function<tensor<double>(index D, const std::vector<tensor<double>>& raw)> dense{};
    bool norm_at_most_one = false;  ///< ‖Q‖₂ ≤ 1, whatever the raw numbers are
    bool contracts = false;         ///< ‖I − Q‖₂ < 1, whatever the raw numbers are
    /// On a team of several threads, too: not of a mixer of plain loops, which is one for the CPU alone.
    bool several_threads = true;
    /// None: of 1, 2, 3, 4, 8, 17 and 18 those that M::check accepts, or else the least that it accepts.
    std::vector<index> widths{};
    double rounding = 1e-12;  ///< between two ways to one array, relative to its largest number or to 1
    double gradient = 1e-7;   ///< between gradients and difference quotients, as gradcheck_result::error
};

struct broken_law {
    std::string law;
    std::string team;  ///< that the mixer's functions ran on
    index width = 0;   ///< D, the first at which it is broken
    double by = 0;     ///< NaN where a number is
    double allowed = 0;
    std::string where;  ///< the worst entry

    std::string to_string() const {
        const auto digits = [](double x) { return detail::number_text(x, std::chars_format::general, 3); };
        return law + ": at D = " + std::to_string(width) + " on " + team + " off by " + digits(by) + ", allowed is " +
               digits(allowed) + (where.empty() ? "" : " (" + where + ")");
    }
};

struct mixer_verdict {
    std::vector<index> widths;       ///< at which the laws were tried
    std::vector<broken_law> broken;  ///< each law once

    bool ok() const { return broken.empty(); }
    /// A line that says that all is well, or one for each broken law.
    std::string to_string() const {
        std::string at;
        for (const index D : widths) at += (at.empty() ? "" : ", ") + std::to_string(D);
        if (ok()) return "the laws of a mixer hold at D = " + at;
        std::string text = "laws of a mixer, tried at D = " + at + ", are broken:";
        for (const broken_law& b : broken) text += "\n  " + b.to_string();
        return text;
    }
};

}  // namespace fprnn
