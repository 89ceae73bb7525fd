#pragma once

#include "data.hpp"
#include "network.hpp"

#include <fprnn/train/trainer.hpp>

#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace experiment {

struct exhibit;

/// Everything that can be asked for on the command line, checked.
struct options {
    const exhibit* shown = nullptr;  ///< the figure, table or comparison that is asked for; null: one model
    int seeds = 1;                   ///< trainings of each member, from `seed` on
    bool paper_size = false;         ///< whether sizes and steps are the paper's, where it is shown

    data_options data{};
    architecture model{};
    std::string task_name = "word-problem", model_name = "fp-mamba", mixer_name = "householder";
    std::optional<double> mixer_bias{};  ///< of Kronecker's and blocks' gates at the start; none: the task's default
    std::uint64_t seed = 0;
    int restarts = 0;  ///< most trainings of other seeds, as long as none is good enough

    fp::training_options training{.first_length = 2, .steps = 12000, .optimiser = {.weight_decay = 0.1}};
    fp::index windows = 1;      ///< that a sequence is trained in, each from the carry of the one before
    double windows_from = 0.5;  ///< share of the training from which on
    fp::chunked schedule{.length = 1, .tolerance = 1e-4, .ell_max = 100};
    bool draws_ell_max = false;  ///< whether a batch's ell_max is drawn in training, from Γ(4, 1)
    bool one_step = false;

    std::optional<int> test_ell_max{};  ///< iterations in tests, when they are not bounded as in training
    std::vector<fp::index> test_lengths;
    bool tests_prefixes = false;  ///< accuracies of shorter sequences are those of the longest ones' beginnings
    fp::index test_sequences = 1024;

    experiment::machine machine{};
    std::filesystem::path out = "out";
    fp::index checkpoint_every = 0;  ///< steps; 0: there are none
    fp::index validate_every = 0;    ///< steps; 0: tests are at the end alone
    bool resume = false;

    /// Those that were, such as "--seed", and their texts; the others are the job's, the task's or the
    /// model's default.
    std::map<std::string, std::string> given{};

    /// Of parameters and data, which must not share random numbers.
    fp::seed seed_of_data() const { return {seed + 1}; }
    double start_of_gates() const {
        const bool open =
            data.task == data_options::kind::word_problem && model.mixer == architecture::mixing::kronecker;
        return mixer_bias.value_or(open ? 4 : 0);  // docs/decisions/0020
    }
    fp::chunked test_schedule() const {
        return {.length = schedule.length,
                .tolerance = schedule.tolerance,
                .ell_max = test_ell_max.value_or(schedule.ell_max)};
    }
    std::optional<network::drawn_schedule> drawn_schedule() const {
        if (!draws_ell_max) return std::nullopt;
        return network::drawn_schedule{.schedule = schedule, .ell_max = {.seed = seed_of_data()}};
    }
    /// Whether the beginning of a sequence is solved as a sequence that ends there: all at once it is
    /// iterated until the whole is solved, which differs by the tolerance.
    bool beginnings_are_sequences() const { return schedule.length == 1 || schedule.tolerance <= 1e-4; }
    fp::adjoint adjoint() const {
        if (one_step) return fp::one_step{};
        return fp::implicit{.tolerance = schedule.tolerance, .ell_max = 100};
    }
};

/// Sets options where the user was silent.
struct defaults {
    options& o;

    template <class V>
    void operator()(const char* option, V& place, std::type_identity_t<V> value) const {
        if (!o.given.contains(option)) place = std::move(value);
    }
};

/// Reads and checks the command line, and touches nothing else. None when only help, the version or the list
/// was asked for, which are then printed. Errors: fprnn::argument_error with one line that names option,
/// expected and got.
std::optional<options> read_options(int argc, const char* const* argv, std::ostream& printed);

/// Defaults of the task, the model and the exhibit.
void fill_in(options& o);
void use_task(options& o, const std::string& task);
void use_model(options& o, const std::string& model);
/// Tokens of the longest sequence, in training or in tests.
fp::index longest_sequence(const options& o);
/// As many as that for a transformer.
void give_room(options& o);
void use_mixer(options& o, const std::string& mixer, int reflections = 1);

/// Refuses what no option can say alone; nothing is trained before that. Errors: as for read_options.
void check_together(const options& o);

/// The options of each model that is trained, in a folder of its own.
std::vector<options> models_of(const options& o);

/// The folder of the k-th attempt, from 1 on.
std::filesystem::path attempt_folder(const std::filesystem::path& out, int k);

/// The trainings of which the best becomes the model, each in a folder of its own; without restarts the
/// options themselves.
std::vector<options> attempts_of(const options& o);

/// "a single model", or what the exhibit is asked for by.
std::string job_of(const options& o);

const char* name_of(architecture::block kind);

/// "16,32,50-60": lengths and ranges of them, sorted. Errors: as for the option.
std::vector<fp::index> lengths_of(const std::string& text);

}  // namespace experiment
