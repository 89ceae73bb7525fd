#include "catalogue.hpp"
#include "choices.hpp"

namespace experiment {

std::span<const exhibit* const> exhibits() {
    using namespace catalogue;
    static constexpr const exhibit* all[] = {&comparison,
                                             &interpolation,
                                             &parameters_of_a5,
                                             &parameters_of_copying,
                                             &fp_rnn_variants,
                                             &fp_rnn_iterations,
                                             &a5_and_s5,
                                             &dependence,
                                             &copying,
                                             &train_time,
                                             &language_iterations,
                                             &complexity,
                                             &language,
                                             &length_128,
                                             &catbabi,
                                             &arithmetic,
                                             &capped_iterations,
                                             &iterations_in_training,
                                             &two_solutions};
    return all;
}

std::string job_of(const exhibit& e) {
    switch (e.of) {
        case exhibit::kind::comparison: return "--compare";
        case exhibit::kind::figure: return std::string("--figure ") + e.name;
        case exhibit::kind::table: return std::string("--table ") + e.name;
    }
    return {};
}

namespace {
const std::string of_seed = "seed_";

/// What was given for some of the members says nothing of a model that has not got it.
void keep_what_it_has(options& o) {
    if (!has_heads(o.model)) o.given.erase("--heads");
    if (o.model.kind != architecture::block::transformer) o.given.erase("--context");
    if (!has_mixer(o.model)) o.given.erase("--mixer");
    if (o.model.kind != architecture::block::fp_mamba) o.model.gate = {}, o.given.erase("--gate");
    if (!has_mixer(o.model) || o.model.mixer != architecture::mixing::householder)
        for (const char* option : {"--reflections", "--reflection-scale"}) o.given.erase(option);
    if (!mixer_has_gates(o.model)) o.mixer_bias = {}, o.given.erase("--mixer-bias");
}
}  // namespace

std::filesystem::path without_seed(const std::filesystem::path& folder) {
    return folder.filename().string().starts_with(of_seed) ? folder.parent_path() : folder;
}

std::vector<member> members_of(const options& o) {
    std::vector<member> all = o.shown->members(o), seeded;
    for (member& one : all) keep_what_it_has(one.settings);
    for (const member& one : all)
        for (int k = 0; k < o.seeds; ++k) {
            seeded.push_back(one);
            options& settings = seeded.back().settings;
            settings.seed += static_cast<std::uint64_t>(k);
            if (k > 0) settings.out /= of_seed + std::to_string(settings.seed);  // --seeds may grow with --resume
        }
    return seeded;
}

}  // namespace experiment
