#include "exhibits.hpp"

#include "figures.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace experiment {

namespace {

/// Where the user was silent.
struct defaults {
    options& o;

    template <class V>
    defaults& operator()(const char* option, V& place, std::type_identity_t<V> value) {
        if (!o.given.contains(option)) place = std::move(value);
        return *this;
    }
};

/// Adds members one after the other, each in a folder below that of the exhibit.
struct members {
    const options& o;
    std::vector<member> all{};

    options& add(const std::string& folder, std::string label, std::string colour) {
        all.push_back({std::move(label), std::move(colour), o});
        all.back().settings.out = o.out / folder;
        return all.back().settings;
    }
};

/// Options that were given for FP-Mamba say nothing of a model that has not got them.
void use_baseline(options& o, const std::string& model) {
    for (const char* other : {"--mixer", "--reflections", "--reflection-scale"}) o.given.erase(other);
    use_model(o, model);
}

// FP-Mamba blue, diagonal models orange, LSTM green, Transformer grey; within a kind from light to dark.
constexpr const char *fp_blue = "#1f5fa8", *diagonal_orange = "#d9822b", *lstm_green = "#8fcaa3";

// --compare: all models have the same time. A step of FP-Mamba takes 16 ms of one core, one of the baselines 7 ms.
// Two cores need less than the limit, so that a seed has equal bits in every run; where it comes first, it is the same for all.
constexpr double compare_seconds = 120;
constexpr fp::index compare_steps = 8000, baseline_steps = 18000;

void fill_in_comparison(options& o) {
    defaults{o}("--steps", o.training.steps, compare_steps)("--time-limit", o.training.time_limit, compare_seconds)(
        "--test-lengths", o.test_lengths, lengths_of("4,8,12,16,24,32,48,64,96,128,192,256,384,512"));
}
std::vector<member> compared(const options& o) {
    members m{o};
    m.add("fp_mamba", "FP-Mamba", fp_blue);
    for (const auto& [name, label, colour] :
         {std::array{"mamba", "Mamba", diagonal_orange}, std::array{"lstm", "LSTM", lstm_green}}) {
        options& baseline = m.add(name, label, colour);
        use_baseline(baseline, name);
        if (!o.given.contains("--steps")) baseline.training.steps = baseline_steps;
    }
    return m.all;
}
void show_comparison(const options& o, const std::vector<member>& trained, const std::vector<outcome>& results) {
    auto models = by_member(trained, results);
    std::reverse(models.begin(), models.end());  // what is drawn later lies above
    // Where a model is as good as the LSTM, which is what can be reached, both are seen.
    for (drawn& m : models) m.width = m.label == "LSTM" ? 8 : m.width;
    draw(accuracy_picture(o, models), o, "accuracy");
    draw(training_picture(o, models), o, "training");
}

constexpr double interpolation_seconds = 240;
void fill_in_interpolation(options& o) {
    defaults{o}("--test-lengths", o.test_lengths, lengths_of("2-50"))("--time-limit", o.training.time_limit,
                                                                      interpolation_seconds)(
        "--schedule", o.schedule.length, fp::whole_sequence)("--adjoint", o.one_step, true)("--test-sequences",
                                                                                            o.test_sequences, 512);
}
std::vector<member> interpolated(const options& o) {
    constexpr std::pair<int, const char*> bounds[] = {{2, "#7fbf7b"}, {4, "#35978f"}, {8, "#4a90c2"}, {16, "#1b3f8b"}};
    members m{o};
    for (const auto& [ell_max, colour] : bounds) {
        options& one = m.add("ell_max_" + std::to_string(ell_max), "ℓ_{max} = " + std::to_string(ell_max), colour);
        one.schedule.ell_max = ell_max;
        // Only the training is bounded.
        one.test_ell_max = o.test_ell_max.value_or(o.schedule.ell_max);
        one.tests_prefixes = true;
    }
    return m.all;
}
void show_interpolation(const options& o, const std::vector<member>& trained, const std::vector<outcome>& results) {
    const auto models = by_member(trained, results);
    draw(score_picture(o, models, "FP-Mamba on " + o.data.group + ", trained with at most ℓ_{max} iterations"), o,
         "interpolation");
    draw(training_picture(o, models), o, "training");
}

constexpr exhibit catalogue[] = {
    {"compare", "--compare", "", "FP-Mamba beside Mamba and LSTM, the same time for each", "7 minutes",
     fill_in_comparison, compared, show_comparison},
    {"interpolation", "--figure interpolation", "fig. interpolation",
     "accuracy against length, of FP-Mamba trained with at most 2, 4, 8 and 16 iterations", "17 minutes",
     fill_in_interpolation, interpolated, show_interpolation},
};

}  // namespace

std::span<const exhibit> exhibits() { return catalogue; }

std::vector<member> members_of(const options& o) {
    std::vector<member> seeded;
    for (const member& one : o.shown->members(o))
        for (int k = 0; k < o.seeds; ++k) {
            seeded.push_back(one);
            options& settings = seeded.back().settings;
            settings.seed += static_cast<std::uint64_t>(k);
            if (o.seeds > 1) settings.out /= "seed_" + std::to_string(settings.seed);
        }
    return seeded;
}

}  // namespace experiment
