#pragma once

#include "experiment.hpp"

#include <fprnn/io/picture.hpp>

#include <span>
#include <string>
#include <vector>

namespace experiment {

/// A training of an exhibit. Those with the same label are the same with other seeds.
struct member {
    std::string label, colour;
    options settings;  ///< `out` is a folder of its own
};

/// A figure or a table of the paper, or a comparison: what is trained for it, and what is drawn of that.
struct exhibit {
    const char* name;
    const char* job;     ///< as it is asked for: "--figure interpolation"
    const char* source;  ///< in the paper
    const char* shows;
    const char* cost;  ///< of one seed at the default size
    /// Its defaults, where the user was silent.
    void (*fill_in)(options& o);
    std::vector<member> (*members)(const options& o);
    /// Pictures and tables of what was trained, which is less than all where a signal came, into o.out.
    void (*show)(const options& o, const std::vector<member>& trained, const std::vector<outcome>& results);
};

std::span<const exhibit> exhibits();

/// The members, each `o.seeds` times.
std::vector<member> members_of(const options& o);

}  // namespace experiment
