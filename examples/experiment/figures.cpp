#include "figures.hpp"

#include <fprnn/core/terminal.hpp>
#include <fprnn/io/figure.hpp>
#include <fprnn/io/means.hpp>
#include <fprnn/io/read_csv.hpp>

#include <cmath>
#include <cstdio>

namespace experiment {

namespace {

const char* colour_of(architecture::block kind) {
    using block = architecture::block;
    switch (kind) {
        case block::fp_mamba:
        case block::fp_mamba2:
        case block::fp_rnn: return "#1f5fa8";
        case block::mamba:
        case block::published_mamba:
        case block::mamba2:
        case block::delta_product:
        case block::gated_deltanet: return "#d9822b";
        case block::lstm: return "#8fcaa3";
        case block::transformer: return "#7a7a7a";
    }
    return "";
}

fp::mark training_length(const options& o) { return {static_cast<double>(o.training.length), "training length"}; }

/// A curve of one number of each test length: the mean of the seeds, and what lies between the least and the largest.
template <class Number>
fp::curve against_length(const drawn& m, const std::string& label, Number&& number) {
    fp::curve c{.label = label, .x = {}, .y = {}, .colour = m.colour, .width = m.width};
    const std::size_t seeds = m.results.size();
    for (std::size_t i = 0; i < m.results.front()->table.size(); ++i) {
        double sum = 0, low = HUGE_VAL, high = -HUGE_VAL;
        for (const outcome* r : m.results) {
            const double y = number(r->table[i]);
            sum += y;
            low = std::min(low, y);
            high = std::max(high, y);
        }
        c.x.push_back(static_cast<double>(m.results.front()->table[i].length));
        c.y.push_back(sum / static_cast<double>(seeds));
        if (seeds == 1) continue;
        c.low.push_back(low);
        c.high.push_back(high);
    }
    return c;
}

fp::curve thin(fp::curve c) {
    c.label.clear();
    c.width = 2;
    c.dash = 2;
    c.points = false;
    return c;
}

/// What a training was, step by step; columns of metrics.csv.
struct history {
    fp::running_means loss, length, iterations;

    explicit history(const std::filesystem::path& folder) {
        fp::read_csv(folder / "metrics.csv", {"step", "loss", "length", "median_iterations"}, [&](const auto& row) {
            loss.add(row[0], row[1]);
            length.add(row[0], row[2]);
            iterations.add(row[0], row[3]);
        });
    }
};

/// The axis of the steps; its label says how many a point stands for.
fp::axis step_axis(const std::vector<history>& all) {
    std::size_t most = 1;
    for (const history& h : all) most = std::max(most, h.loss.each());
    return {.label = most == 1 ? "training step" : "training step (means over up to " + std::to_string(most) + ")"};
}

/// What the number of iterations of a sequence is.
std::string iterations_title(const options& o) {
    if (o.schedule.length == fp::whole_sequence) return "Iterations of a sequence";
    return std::string("Iterations of a sequence's slowest ") + (o.schedule.length == 1 ? "token" : "chunk");
}

bool has_points(const fp::figure& f, std::size_t least) {
    for (const fp::curve& c : f.curves)
        if (static_cast<std::size_t>(std::count_if(c.y.begin(), c.y.end(), [&](double y) {
                return std::isfinite(y) && (f.y.log == 0 || y > 0);
            })) >= least)
            return true;
    return false;
}

}  // namespace

std::vector<drawn> alone(const outcome& result) {
    return {{.results = {&result}, .label = name_of(result.kind), .colour = colour_of(result.kind)}};
}

std::vector<drawn> by_member(const std::vector<member>& trained, const std::vector<outcome>& results) {
    std::vector<drawn> all;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto same =
            std::find_if(all.begin(), all.end(), [&](const drawn& d) { return d.label == trained[i].label; });
        if (same == all.end())
            all.push_back({.results = {&results[i]}, .label = trained[i].label, .colour = trained[i].colour});
        else
            same->results.push_back(&results[i]);
    }
    return all;
}

fp::picture accuracy_picture(const options& o, const std::vector<drawn>& models) {
    fp::figure f{.title = "State tracking on " + o.data.group + ", trained on sequences of " +
                          std::to_string(o.training.length) + " tokens",
                 .x = {.label = "length of the test sequence (tokens)", .log = 2},
                 .y = {.label = "accuracy on sequences", .limits = {{0, 1}}},
                 .curves = {},
                 .upright = training_length(o),
                 .dashed = "tokens"};
    for (const drawn& m : models) {
        f.curves.push_back(
            against_length(m, m.label, [](const test_result& t) { return t.evaluation.accuracy.sequence; }));
        f.curves.push_back(
            thin(against_length(m, m.label, [](const test_result& t) { return t.evaluation.accuracy.token; })));
    }
    return f;
}

fp::picture score_picture(const options& o, const std::vector<drawn>& models, const std::string& title) {
    fp::figure f{.title = title, .x = {}, .y = {}, .curves = {}, .upright = training_length(o)};
    for (const drawn& m : models) {
        const fp::task& task = m.results.front()->task;
        f.x.label = "length of the test sequence (" + task.length_unit + ")";
        f.y.label = task.score_name;
        if (!task.less_is_better) f.y.limits = {{0, 1}};
        f.curves.push_back(against_length(m, m.label, [](const test_result& t) { return t.score; }));
        f.curves.back().points = f.curves.back().x.size() <= 20;
    }
    return f;
}

fp::picture training_picture(const options& o, const std::vector<drawn>& models) {
    std::vector<history> histories;
    histories.reserve(models.size());
    for (const drawn& m : models) histories.emplace_back(m.results.front()->folder);
    const fp::axis step = step_axis(histories);
    const auto against_step = [&](fp::running_means history::*what) {
        std::vector<fp::curve> curves;
        curves.reserve(models.size());
        for (std::size_t i = 0; i < models.size(); ++i)
            curves.push_back({.label = models[i].label,
                              .x = (histories[i].*what).x(),
                              .y = (histories[i].*what).y(),
                              .colour = models[i].colour,
                              .width = 0.7 * models[i].width,
                              .points = false});
        return curves;
    };

    fp::figure loss{.title = "Loss",
                    .x = step,
                    .y = {.label = "cross-entropy (nats per token)"},
                    .curves = against_step(&history::loss)};
    if (!models.empty())
        loss.level = fp::mark{std::log(static_cast<double>(models.front().results.front()->task.classes)), "guessing"};
    fp::figure length{.title = "Curriculum",
                      .x = step,
                      .y = {.label = "sequence length (tokens)", .log = 2},
                      .curves = against_step(&history::length)};
    fp::figure iterations{.title = iterations_title(o),
                          .x = step,
                          .y = {.label = "median iterations"},
                          .curves = against_step(&history::iterations)};
    fp::figure residual{.title = "Median relative residual after training",
                        .x = {.label = "length of the test sequence (tokens)", .log = 2},
                        .y = {.label = "residual", .log = 10},
                        .curves = {},
                        .level = fp::mark{o.schedule.tolerance, "tolerance"},
                        .dashed = "largest"};
    for (const drawn& m : models) {
        const auto of = [](double fp::convergence_summary::*number) {
            return [number](const test_result& t) {
                return t.evaluation.convergence ? (*t.evaluation.convergence).*number : NAN;
            };
        };
        residual.curves.push_back(against_length(m, m.label, of(&fp::convergence_summary::median_residual)));
        residual.curves.push_back(thin(against_length(m, m.label, of(&fp::convergence_summary::largest_residual))));
    }

    std::vector<fp::figure> figures{loss, length};
    if (has_points(iterations, 2)) figures.push_back(iterations);
    if (has_points(residual, 2)) figures.push_back(residual);
    return {"Training on " + o.data.group + " at T = " + std::to_string(o.training.length), figures};
}

void draw(const fp::picture& p, const options& o, const std::string& name) {
    if (const auto chart = fp::draw(p, o.out, name, fp::columns_of(stdout)))
        std::printf("\n%s\n%s is this chart, because gnuplot did not draw one\n", chart->c_str(),
                    (o.out / (name + ".txt")).c_str());
    else
        std::printf("\n%s\n%s\n", (o.out / (name + ".png")).c_str(), (o.out / (name + ".svg")).c_str());
}

}  // namespace experiment
