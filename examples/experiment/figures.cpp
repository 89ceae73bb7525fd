#include "colours.hpp"
#include "curves.hpp"
#include "solutions.hpp"

#include <fprnn/core/number_text.hpp>
#include <fprnn/core/terminal.hpp>
#include <fprnn/io/csv_file.hpp>
#include <fprnn/io/figure.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace experiment {

namespace {

const char* colour_of(architecture::block kind) {
    using model = architecture::block;
    switch (kind) {
        case model::fp_mamba:
        case model::fp_mamba2:
        case model::fp_rnn: return fp_blue;
        case model::mamba:
        case model::published_mamba:
        case model::mamba2: return diagonal_orange;
        case model::delta_product:
        case model::deltanet:
        case model::gated_deltanet:
        case model::gated_delta_product: return delta_red;
        case model::lstm:
        case model::mlstm:
        case model::slstm: return lstm_green;
        case model::transformer: return transformer_grey;
    }
    return "";
}

/// What a step trains.
const char* sequences_of(const options& o) { return o.windows > 1 ? "windows" : "sequences"; }

}  // namespace

std::vector<drawn> alone(const outcome& result) {
    return {{.results = {&result}, .label = name_of(result.kind), .colour = colour_of(result.kind)}};
}

std::vector<drawn> by_member(const trained& t, const std::function<bool(const member&)>& of) {
    std::vector<drawn> all;
    for (std::size_t i = 0; i < t.results.size(); ++i) {
        const member& m = t.members[i];
        const fp::training_end end = t.results[i].training.end;
        if ((of && !of(m)) || end == fp::training_end::nonfinite) continue;  // of no numbers there is no curve
        const auto same = std::find_if(all.begin(), all.end(), [&](const drawn& d) { return d.label == m.label; });
        if (same == all.end())
            all.push_back({.results = {&t.results[i]}, .label = m.label, .colour = m.colour});
        else
            same->results.push_back(&t.results[i]);
    }
    for (drawn& d : all)
        for (const outcome* r : d.results)
            if (r->training.end == fp::training_end::stopped) {
                d.label += (d.results.size() > 1 ? " (one ended at step " : " (ended at step ") +
                           std::to_string(r->training.steps) + ")";
                break;
            }
    return all;
}

fp::picture accuracy_picture(const options& o, const std::vector<drawn>& models) {
    fp::figure f = score_figure(
        o, models,
        title_of(o.data) + ", trained on " + sequences_of(o) + " of " + std::to_string(o.training.length) + " tokens");
    f.x.log = 2;
    if (!models.empty() && !models.front().results.front()->task.of_sequences) return f;
    f.dashed = "tokens";
    fp::figure both = f;
    both.curves.clear();
    for (std::size_t i = 0; i < models.size(); ++i) {
        both.curves.push_back(f.curves[i]);
        both.curves.push_back(thin(
            against_length(models[i], "", of_test([](const test_result& t) { return t.evaluation.accuracy.token; }))));
    }
    return both;
}

fp::figure score_figure(const options& o, const std::vector<drawn>& models, const std::string& title) {
    fp::figure f{.title = title, .x = {}, .y = {}, .curves = {}};
    if (models.empty()) return f;
    f.x = length_axis(models);
    set_score(f, models.front().results.front()->task, o.test_lengths.back());
    f.upright = longest_in_training(o);
    for (const drawn& m : models) f.curves.push_back(against_length(m, m.label, of_test(score_of)));
    return with_all_points(std::move(f));
}

fp::figure iterations_figure(const options& o, const std::vector<drawn>& models) {
    fp::figure f{.title = iterations_title(o), .x = {}, .y = {.label = "median iterations in tests"}, .curves = {}};
    if (models.empty()) return f;
    f.x = length_axis(models);
    f.upright = longest_in_training(o);
    for (const drawn& m : models)
        if (m.results.front()->model->has_fixed_point())
            f.curves.push_back(against_length(m, m.label, of_test([](const test_result& t) {
                                                  const auto& c = t.evaluation.convergence;
                                                  return c ? c->median_iterations : NAN;
                                              })));
    return f;
}

fp::figure both_iterations_figure(const options& o, const std::vector<drawn>& models) {
    fp::figure f = iterations_figure(o, models);
    if (o.machine.cuda) return f;
    f.y.label = "iterations";
    f.dashed = "authors";  // more has no room
    if (o.schedule.length == 1) f.title = "Iterations of the slowest token; dashed: of all tokens at once";
    const auto ours = std::exchange(f.curves, {});
    auto curve = ours.begin();
    for (const drawn& m : models) {
        if (!m.results.front()->model->has_fixed_point()) continue;
        f.curves.push_back(*curve++);
        f.curves.push_back(thin(against_length(m, "", [&](const outcome& r, std::size_t i) {
            const auto set = r.task.test(r.table[i].length);
            fp::authors loop{.of = 1};
            if (r.kind == architecture::block::fp_rnn) loop.start = loop.decay = 1;  // not damped
            const auto e = r.model->solved_by(loop)->evaluate(r.theta, set.tokens, o.test_sequences, set.data);
            return e.convergence->median_iterations + 1;  // the authors count the gradient's evaluation, too
        })));
    }
    return f;
}

fp::figure parameters_figure(const trained& t, const std::string& title) {
    fp::figure f{.title = title, .x = {.label = "parameters", .log = 10}, .y = {}, .curves = {}};
    for (const drawn& m : by_member(t)) {
        set_score(f, m.results.front()->task, t.o.test_lengths.back());
        f.curves.push_back(against(
            m, [](const outcome& r) { return static_cast<double>(r.parameters); },
            [](const outcome& r) { return r.table.back().score; }));
    }
    return with_all_points(std::move(f));
}

fp::figure train_time_figure(const trained& t, const std::string& title) {
    constexpr double enough = 0.9;
    fp::figure f{.title = title, .x = {.label = "training time (s)", .log = 10}, .y = {}, .curves = {}};
    f.level = fp::mark{static_cast<double>(t.o.training.length), "training length"};
    for (const drawn& m : by_member(t)) {
        f.y.label = "longest length with 90 % right (" + m.results.front()->task.length_unit + ")";
        f.curves.push_back(against_measured(
            m, [](const outcome& r) { return r.training.seconds; },
            [](const outcome& r) {
                double longest = 0;
                for (const test_result& test : r.table) {
                    if (test.score < enough) break;
                    longest = static_cast<double>(test.length);
                }
                return longest;
            }));
    }
    return f;
}

std::vector<fp::figure> two_solutions_figures(const options& o, const std::vector<drawn>& models) {
    fp::figure difference{.title = "Mean relative difference of the logits",
                          .x = {},
                          .y = {.label = "difference", .log = 10},
                          .curves = {}};
    fp::figure several{.title = "Tokens that part", .x = {}, .y = {.label = "share of tokens"}, .curves = {}};
    if (models.empty()) return {};
    for (fp::figure* f : {&difference, &several}) {
        f->x = length_axis(models);
        f->x.log = 2;
        f->upright = longest_in_training(o);
    }
    difference.level = fp::mark{two_solutions::tolerance, "tolerance"};
    for (const drawn& m : models) {
        std::map<const outcome*, std::vector<two_solutions>> all;
        for (const outcome* r : m.results)
            for (const test_result& t : r->table) {
                const auto data = r->task.test(t.length);
                const fp::index sequences = std::min<fp::index>(o.test_sequences, 128);
                all[r].push_back(solve_both_ways(*r->model, r->theta, data, sequences, o.schedule.ell_max));
            }
        const auto number = [&](double two_solutions::*which) {
            return [&all, which](const outcome& r, std::size_t i) { return all[&r][i].*which; };
        };
        difference.curves.push_back(against_length(m, m.label, number(&two_solutions::mean_difference)));
        several.curves.push_back(against_length(m, m.label, number(&two_solutions::parting)));
    }
    return {difference, several};
}

fp::figure capped_figure(const trained& t, const std::vector<fp::index>& caps) {
    fp::figure f{.title = title_of(t.o.data) + ", all tokens at once",
                 .x = {.label = "most iterations in the test", .log = 2},
                 .y = {},
                 .curves = {}};
    for (const drawn& m : by_member(t)) {
        set_score(f, m.results.front()->task, t.o.test_lengths.back());
        const fp::index length = t.o.test_lengths.back();
        f.upright = fp::mark{static_cast<double>(length), "longest row"};
        fp::curve c{.label = m.label, .x = {}, .y = {}, .colour = m.colour, .width = m.width};
        for (const fp::index cap : caps) {
            interval all;
            for (const outcome* r : m.results) {
                const auto set = r->task.test(length);
                const auto capped = r->model->with(fp::parallel({t.o.schedule.tolerance, static_cast<int>(cap)}));
                all.add(r->task.score(capped->evaluate(r->theta, set.tokens, t.o.test_sequences, set.data)));
            }
            all.append_to(c, static_cast<double>(cap));
        }
        f.curves.push_back(without_empty_band(std::move(c)));
    }
    return with_all_points(std::move(f));
}

std::string score_table(const trained& t) {
    std::string head = "| model | parameters | steps |", rule = "|---|---:|---:|", rows;
    for (const fp::index length : t.o.test_lengths) {
        head += " " + std::to_string(length) + " |";
        rule += "---:|";
    }
    const auto number = [](double x) { return fp::detail::number_text(x, std::chars_format::fixed, 3); };
    std::set<std::string> guesses;
    for (const drawn& m : by_member(t)) {
        const outcome& first = *m.results.front();
        rows += "| " + m.label + " | " + std::to_string(first.parameters) + " | " +
                std::to_string(first.training.steps) + " |";
        const fp::curve c = against_length(m, m.label, of_test(score_of));
        for (std::size_t i = 0; i < c.y.size(); ++i) {
            rows += " " + number(c.y[i]);
            if (!c.low.empty()) rows += " (" + number(c.low[i]) + " to " + number(c.high[i]) + ")";
            rows += " |";
        }
        rows += "\n";
        if (!first.task.guess) continue;
        std::string guess = "| " + first.task.guess_name + ", " + first.task.name + " | | |";
        for (const fp::index length : t.o.test_lengths) guess += " " + number(first.task.guess(length)) + " |";
        guesses.insert(guess + "\n");
    }
    for (std::size_t i = 0; i < t.results.size(); ++i)  // by_member leaves them out
        if (t.results[i].training.end == fp::training_end::nonfinite)
            rows += "| " + t.members[i].label + ", seed " + std::to_string(t.members[i].settings.seed) + " | " +
                    std::to_string(t.results[i].parameters) + " | " + std::to_string(t.results[i].training.steps) +
                    " | numbers that are not finite |\n";
    for (const std::string& guess : guesses) rows += guess;
    return head + "\n" + rule + "\n" + rows;
}

namespace {

/// Every point that a picture shows.
void write_points(const fp::picture& p, const std::filesystem::path& path) {
    fp::csv_file csv(path, "figure,curve,x,y,low,high");
    for (const fp::figure& f : p.figures) {
        std::string label;
        for (const fp::curve& c : f.curves) {
            label = c.label.empty() ? label + ", " + f.dashed : c.label;
            for (std::size_t i = 0; i < c.x.size(); ++i) {
                const auto bound = [&](const std::vector<double>& all) {
                    return all.empty() ? std::nullopt : known(all[i]);
                };
                csv.row({f.title, label, known(c.x[i]), known(c.y[i]), bound(c.low), bound(c.high)});
            }
        }
    }
}

}  // namespace

void draw(const fp::picture& p, const options& o, const std::string& name) {
    if (p.figures.empty()) return;  // of models that all ended with numbers that are not finite
    if (o.shown) write_points(p, o.out / (name + ".points.csv"));
    if (const auto chart = fp::draw(p, o.out, name, fp::columns_of(stdout)))
        std::printf("\n%s\n%s is this chart, because gnuplot did not draw one\n", chart->c_str(),
                    (o.out / (name + ".txt")).c_str());
    else
        std::printf("\n%s\n%s\n", (o.out / (name + ".png")).c_str(), (o.out / (name + ".svg")).c_str());
}

}  // namespace experiment
