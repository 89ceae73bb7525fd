#pragma once

#include "experiment.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace experiment {

/// A training of an exhibit. Those with the same label are the same with other seeds.
struct member {
    std::string label, colour;
    options settings;  ///< `out` is a folder of its own
};

/// The members that were trained, which are less than all where a signal came, and what came of them.
struct trained {
    const options& o;
    std::vector<member> members;
    std::vector<outcome> results;
};

/// A figure or a table of the paper, or a comparison: what is trained for it, and what is drawn of that.
struct exhibit {
    enum class kind { comparison, figure, table };

    kind of;
    const char* name;
    const char* source;  ///< its label in the paper
    const char* shows;
    int minutes;  ///< of one seed at the default size, on two cores of the machine where it was measured
    /// Its defaults, where the user was silent.
    void (*fill_in)(options& o);
    /// The paper's, where the user was silent; null: there are none.
    void (*paper_size)(options& o);
    std::vector<member> (*members)(const options& o);
    /// Draws and prints what was trained.
    void (*show)(const trained& t);
};

std::span<const exhibit* const> exhibits();

/// As it is asked for: "--figure interpolation".
std::string job_of(const exhibit& e);

/// The folder of a member, whatever its seed.
std::filesystem::path without_seed(const std::filesystem::path& folder);

/// The members, each `o.seeds` times.
std::vector<member> members_of(const options& o);

}  // namespace experiment
