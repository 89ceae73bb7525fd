#include "colours.hpp"
#include "curves.hpp"

#include <fprnn/core/number_text.hpp>
#include <fprnn/io/means.hpp>
#include <fprnn/io/read_csv.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

/// What was written while models were trained: their metrics.csv and validation.csv.
namespace experiment {

namespace {

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

bool has_points(const fp::figure& f, std::size_t least) {
    for (const fp::curve& c : f.curves)
        if (static_cast<std::size_t>(std::count_if(c.y.begin(), c.y.end(), [&](double y) {
                return std::isfinite(y) && (f.y.log == 0 || y > 0);
            })) >= least)
            return true;
    return false;
}

/// Behind the title of what is drawn of one seed alone.
std::string of_first_seed(const options& o) { return o.seeds > 1 ? ", first seed" : ""; }

/// A column of a member's validation.csv against another one, step by step: means over the seeds.
fp::curve validated(const drawn& m, const std::string& x, const std::string& y) {
    struct point {
        double sum = 0, seeds = 0;
        interval all{};
    };
    std::map<double, point> at;
    for (const outcome* r : m.results)
        fp::read_csv(r->folder / "validation.csv", {"step", x, y}, [&](const auto& row) {
            point& p = at[row[0]];
            p.sum += row[1];
            ++p.seeds;
            p.all.add(row[2]);
        });
    fp::curve c{.label = m.label, .x = {}, .y = {}, .colour = m.colour, .width = 0.7 * m.width};
    for (const auto& [step, p] : at) p.all.append_to(c, p.sum / p.seeds);
    c.points = c.x.size() <= 20;
    return without_empty_band(std::move(c));
}

}  // namespace

std::vector<fp::figure> validation_figures(const trained& t) {
    fp::figure steps{.title = "At equal steps", .x = {.label = "training step"}, .y = {}, .curves = {}};
    fp::figure seconds{.title = "At equal time", .x = {.label = "training time (s)"}, .y = {}, .curves = {}};
    for (const drawn& m : by_member(t)) {
        steps.y.label = seconds.y.label = m.results.front()->task.score_name;
        steps.curves.push_back(validated(m, "step", "score"));
        seconds.curves.push_back(validated(m, "seconds", "score"));
    }
    // Models differ by hundredths of what the first fifth of the training gains: what lies above its end is
    // cut off.
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const fp::curve& c : steps.curves) {
        for (const double y : c.y) low = std::min(low, std::floor(10 * y) / 10);
        if (!c.y.empty()) high = std::max(high, std::ceil(10 * c.y[c.y.size() / 5]) / 10);
    }
    if (low < high) steps.y.limits = seconds.y.limits = {{low, high}};
    return {steps, seconds};
}

fp::figure layers_figure(const trained& t) {
    fp::figure f{.title = "", .x = {.label = "training step"}, .y = {.label = "median iterations"}, .curves = {}};
    const auto models = by_member(t);
    if (models.empty()) return f;
    drawn m = models.front();
    f.title = title_of(t.o.data) + ": iterations of each block of " + m.label;
    f.y.label = "median iterations to " + fp::detail::number_text(t.o.schedule.tolerance);
    for (int i = 0; i < t.members.front().settings.model.size.layers; ++i) {
        m.label = "block " + std::to_string(i + 1);
        m.colour = four_blues[static_cast<std::size_t>(i) % four_blues.size()];
        f.curves.push_back(validated(m, "step", "iterations_" + std::to_string(i)));
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

    fp::figure loss{.title = "Loss" + of_first_seed(o),
                    .x = step,
                    .y = {.label = "cross-entropy (nats per token)"},
                    .curves = against_step(&history::loss)};
    if (!models.empty())
        loss.level = fp::mark{std::log(static_cast<double>(models.front().results.front()->task.classes)), "guessing"};
    fp::figure length{.title = "Curriculum" + of_first_seed(o),
                      .x = step,
                      .y = {.label = "sequence length (tokens)", .log = 2},
                      .curves = against_step(&history::length)};
    fp::figure iterations{.title = iterations_title(o) + of_first_seed(o),
                          .x = step,
                          .y = {.label = "median iterations"},
                          .curves = against_step(&history::iterations)};
    const std::string length_unit = models.empty() ? "" : length_axis(models).label;
    fp::figure residual{.title = "Median relative residual after training",
                        .x = {.label = length_unit, .log = 2},
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
        residual.curves.push_back(against_length(m, m.label, of_test(of(&fp::convergence_summary::median_residual))));
        residual.curves.push_back(
            thin(against_length(m, m.label, of_test(of(&fp::convergence_summary::largest_residual)))));
    }

    std::vector<fp::figure> figures{loss, length};
    if (has_points(iterations, 2)) figures.push_back(iterations);
    if (has_points(residual, 2)) figures.push_back(residual);
    return {title_of(o.data) + ": training at T = " + std::to_string(o.training.length), figures};
}

}  // namespace experiment
