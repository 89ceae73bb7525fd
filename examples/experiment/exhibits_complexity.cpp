#include "catalogue.hpp"
#include "members.hpp"

#include <fprnn/core/number_text.hpp>
#include <fprnn/io/csv_file.hpp>
#include <fprnn/io/files.hpp>
#include <fprnn/train/interrupt.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

/// The paper's table of complexities, measured.
namespace experiment {

namespace {

void fill_in_complexity(options& o) {
    const defaults use{o};
    use("--steps", o.training.steps, 1);
    use("--length", o.training.length, 128);
    use("--batch", o.training.batch, 32);
    use("--curriculum", o.training.first_length, o.training.length);
    use("--schedule", o.schedule.length, fp::whole_sequence);
    use("--adjoint", o.one_step, true);
    use("--test-lengths", o.test_lengths, {o.training.length});
    use("--test-sequences", o.test_sequences, o.training.batch);
}

std::vector<member> of_complexities(const options& o) {
    members m(o);
    m.add_baseline("mamba", "Mamba without convolution", diagonal_orange, o.model.size.layers);
    for (const int r : {1, 2, 4})
        m.add_fp_mamba("h" + std::to_string(r), "FP-Mamba-H, r = " + std::to_string(r), fp_blue, "householder", r);
    m.add_fp_mamba("dplr", "FP-Mamba-DPLR, r = 4", fp_blue, "dplr");
    m.add_fp_mamba("k", "FP-Mamba-K", fp_blue, "kronecker");
    return std::move(m).all();
}

/// The least of several, in nanoseconds a token.
template <class Work>
double nanoseconds(fp::index tokens, Work&& work) {
    constexpr int times = 7;
    double least = HUGE_VAL;
    for (int i = 0; i < times && !fp::interrupt::requested(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        work();
        least =
            std::min(least, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    return least / static_cast<double>(tokens);
}

struct costs {
    double forward, training;  ///< of a token, in nanoseconds
};

/// With exactly `iterations`, because no residual is so small.
costs measure(const outcome& r, const options& o, int iterations) {
    const auto model = r.model->with({o.schedule.length, 1e-30, iterations});
    const fp::index B = o.training.batch, T = o.training.length;
    fp::tensor<std::int32_t> tokens({B, T}), targets({B, T});
    r.task.train(tokens.view(), targets.view(), 0);
    fp::training_options step = o.training;
    step.steps = 1;
    step.warmup_steps = 0;
    const auto train = [&] {
        fp::training_state<network::real> state(r.theta, step);
        (void)model->train(state, step, r.task.train, [](const fp::training_step&) { return true; }, {});
    };
    return {nanoseconds(B * T, [&] { (void)model->solve(r.theta, tokens.view()); }), nanoseconds(B * T, train)};
}

/// Whether a signal has ended the measurement.
bool is_interrupted() {
    if (!fp::interrupt::requested()) return false;
    std::fputs("experiment: the times were not measured to the end; --resume measures them again\n", stderr);
    return true;
}

void show_complexity(const trained& t) {
    if (is_interrupted()) return;
    constexpr int most = 16;
    std::string table =
        "| model | parameters | forward, 1 iteration | each further one | training step, 1 iteration | each further "
        "one |\n"
        "|---|---:|---:|---:|---:|---:|\n";
    std::vector<std::vector<fp::csv_file::cell>> rows;
    double forward_of_first = 0, training_of_first = 0;
    for (std::size_t i = 0; i < t.results.size(); ++i) {
        const outcome& r = t.results[i];
        const costs one = measure(r, t.o, 1), many = measure(r, t.o, most);
        if (i == 0) {
            forward_of_first = one.forward;
            training_of_first = one.training;
        }
        const bool iterates = r.model->has_fixed_point();
        const auto fixed = [](double x, int digits) {
            return fp::detail::number_text(x, std::chars_format::fixed, digits);
        };
        const auto cell = [&](double nanoseconds, double of) {
            return " " + fixed(nanoseconds, 0) + " ns (" + fixed(nanoseconds / of, 2) + ") |";
        };
        const auto each = [&](double all, double first) {
            return iterates ? std::optional((all - first) / (most - 1)) : std::nullopt;
        };
        const auto forward = each(many.forward, one.forward), training = each(many.training, one.training);
        const auto further = [&](const std::optional<double>& nanoseconds, double of) {
            return nanoseconds ? cell(*nanoseconds, of) : std::string(" none |");
        };
        rows.push_back({t.members[i].label, r.parameters, one.forward, forward, one.training, training});
        table += "| " + t.members[i].label + " | " + std::to_string(r.parameters) + " |" +
                 cell(one.forward, forward_of_first) + further(forward, forward_of_first) +
                 cell(one.training, training_of_first) + further(training, training_of_first) + "\n";
    }
    if (is_interrupted()) return;
    fp::csv_file csv(t.o.out / (std::string(t.o.shown->name) + ".points.csv"),
                     "model,parameters,forward_ns,further_forward_ns,training_ns,further_training_ns");
    for (const auto& row : rows) csv.row(row);
    const auto path = t.o.out / (std::string(t.o.shown->name) + ".md");
    fp::write_file(path, table);
    std::printf("\nOf a token, and in parts of the first row's:\n%s\n%s\n", table.c_str(), path.c_str());
}

}  // namespace

const exhibit catalogue::complexity{
    exhibit::kind::table,
    "complexity",
    "tab. complexity",
    "measured time of a token by Mamba and by FP-Mamba's mixers, of the first iteration and of each further one",
    1,
    fill_in_complexity,
    nullptr,
    of_complexities,
    show_complexity};

}  // namespace experiment
