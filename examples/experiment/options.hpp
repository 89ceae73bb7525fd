#pragma once

#include "data.hpp"
#include "network.hpp"

#include <fprnn/train/trainer.hpp>

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace experiment {

struct exhibit;

/// Everything that can be asked for on the command line, checked.
struct options {
    const exhibit* shown = nullptr;  ///< the figure, table or comparison that is asked for; null: one model
    int seeds = 1;                   ///< trainings of each member, from `seed` on

    data_options data{};
    architecture model{};
    std::string task_name = "word-problem", model_name = "fp-mamba", mixer_name = "householder";
    std::uint64_t seed = 0;

    fp::training_options training{};
    fp::chunked schedule{.length = 1, .tolerance = 1e-4, .ell_max = 100};
    bool one_step = false;

    std::optional<int> test_ell_max{};  ///< iterations in tests, when they are not bounded as in training
    std::vector<fp::index> test_lengths;
    bool tests_prefixes = false;  ///< accuracies of shorter sequences are those of the longest ones' beginnings
    fp::index test_sequences = 1024;

    experiment::machine machine{};
    std::filesystem::path out = "out";
    fp::index checkpoint_every = 0;  ///< steps; 0: there are none
    bool resume = false;

    std::set<std::string>
        given;  ///< those that were, such as "--seed"; the others are the job's or the model's default

    /// Of parameters and data, which must not share random numbers.
    fp::seed seed_of_data() const { return {seed + 1}; }
    fp::chunked test_schedule() const {
        return {.length = schedule.length,
                .tolerance = schedule.tolerance,
                .ell_max = test_ell_max.value_or(schedule.ell_max)};
    }
    fp::adjoint adjoint() const {
        if (one_step) return fp::one_step{};
        return fp::implicit{.tolerance = schedule.tolerance, .ell_max = 100};
    }
};

/// Reads and checks the command line, and touches nothing else. None when only help or the version was asked for, which
/// are then printed. Errors: fprnn::argument_error with one line that names option, expected and got.
std::optional<options> read_options(int argc, const char* const* argv, std::ostream& printed);

/// The options of each model that is trained, in a folder of its own.
std::vector<options> models_of(const options& o);

/// "a single model", or what the exhibit is asked for by.
std::string job_of(const options& o);

/// All options, as they are written to config.json.
nlohmann::ordered_json to_json(const options& o);

/// Those that the trained parameters depend on: a run goes on only with equal ones. The others say what is done with the
/// model, where, and on how many threads.
nlohmann::ordered_json training_configuration(const options& o);

const char* name_of(architecture::block kind);

/// Defaults that differ between tasks and models, where the user was silent.
void use_task(options& o, const std::string& task);
void use_model(options& o, const std::string& model);
void use_mixer(options& o, const std::string& mixer, int reflections = 1);
/// "16,32,50-60": lengths and ranges of them, sorted. Errors: as for the option.
std::vector<fp::index> lengths_of(const std::string& text);

}  // namespace experiment
