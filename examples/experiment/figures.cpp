#include "figures.hpp"

#include "solutions.hpp"

#include <fprnn/core/number_text.hpp>
#include <fprnn/core/terminal.hpp>
#include <fprnn/io/figure.hpp>
#include <fprnn/io/means.hpp>
#include <fprnn/io/read_csv.hpp>

#include <algorithm>
#include <array>
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
        case model::fp_rnn: return "#1f5fa8";
        case model::mamba:
        case model::published_mamba:
        case model::mamba2:
        case model::delta_product:
        case model::gated_deltanet: return "#d9822b";
        case model::lstm: return "#8fcaa3";
        case model::transformer: return "#7a7a7a";
    }
    return "";
}

/// The longest data in training, as the task counts them.
std::optional<fp::mark> longest_in_training(const options& o) {
    const bool made = o.data.task == data_options::kind::copy || o.data.task == data_options::kind::arithmetic;
    return fp::mark{static_cast<double>(made ? o.data.longest : o.training.length), "training length"};
}

/// The mean of what seeds have at one x, and what lies between the least and the largest.
class interval {
public:
    void add(double y) {
        sum_ += y;
        low_ = std::min(low_, y);
        high_ = std::max(high_, y);
        ++count_;
    }
    void append_to(fp::curve& c, double x) const {
        c.x.push_back(x);
        c.y.push_back(sum_ / static_cast<double>(count_));
        c.low.push_back(low_);
        c.high.push_back(high_);
    }

private:
    double sum_ = 0, low_ = HUGE_VAL, high_ = -HUGE_VAL;
    fp::index count_ = 0;
};

/// Without a band where every interval is one number.
fp::curve without_empty_band(fp::curve c) {
    if (c.low == c.high) {
        c.low.clear();
        c.high.clear();
    }
    return c;
}

/// A curve of number(result, i) at the i-th test length.
template <class Number>
fp::curve against_length(const drawn& m, const std::string& label, Number&& number) {
    fp::curve c{.label = label, .x = {}, .y = {}, .colour = m.colour, .width = m.width};
    const auto& lengths = m.results.front()->table;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        interval all;
        for (const outcome* r : m.results) all.add(number(*r, i));
        all.append_to(c, static_cast<double>(lengths[i].length));
    }
    c.points = lengths.size() <= 20;
    return without_empty_band(std::move(c));
}
template <class Number>
auto of_test(Number&& number) {
    return [number](const outcome& r, std::size_t i) { return static_cast<double>(number(r.table[i])); };
}
double score_of(const test_result& t) { return t.score; }

/// A curve of y(result) at x(result), and the results of an x together.
template <class X, class Y>
fp::curve against(const drawn& m, X&& x, Y&& y) {
    std::map<double, interval> at;
    for (const outcome* r : m.results) at[x(*r)].add(y(*r));
    fp::curve c{.label = m.label, .x = {}, .y = {}, .colour = m.colour, .width = m.width};
    for (const auto& [where, all] : at) all.append_to(c, where);
    return without_empty_band(std::move(c));
}

/// The axis of a task's score, and what guessing is worth.
void set_score(fp::figure& f, const fp::task& task) {
    f.y.label = task.score_name;
    if (!task.less_is_better) f.y.limits = {{0, 1}};
    if (std::isfinite(task.guess)) f.level = fp::mark{task.guess, task.guess_name};
}
fp::axis length_axis(const std::vector<drawn>& models) {
    return {.label = "length of the test sequence (" + models.front().results.front()->task.length_unit + ")"};
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

std::vector<drawn> by_member(const trained& t, const std::function<bool(const member&)>& of) {
    std::vector<drawn> all;
    for (std::size_t i = 0; i < t.results.size(); ++i) {
        const member& m = t.members[i];
        if (of && !of(m)) continue;
        const auto same = std::find_if(all.begin(), all.end(), [&](const drawn& d) { return d.label == m.label; });
        if (same == all.end())
            all.push_back({.results = {&t.results[i]}, .label = m.label, .colour = m.colour});
        else
            same->results.push_back(&t.results[i]);
    }
    return all;
}

fp::picture accuracy_picture(const options& o, const std::vector<drawn>& models) {
    fp::figure f = score_figure(
        o, models, title_of(o.data) + ", trained on sequences of " + std::to_string(o.training.length) + " tokens");
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
    set_score(f, models.front().results.front()->task);
    f.upright = longest_in_training(o);
    for (const drawn& m : models) f.curves.push_back(against_length(m, m.label, of_test(score_of)));
    return f;
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

fp::figure parameters_figure(const trained& t, const std::string& title) {
    fp::figure f{.title = title, .x = {.label = "parameters", .log = 10}, .y = {}, .curves = {}};
    for (const drawn& m : by_member(t)) {
        set_score(f, m.results.front()->task);
        f.curves.push_back(against(
            m, [](const outcome& r) { return static_cast<double>(r.parameters); },
            [](const outcome& r) { return r.table.back().score; }));
    }
    return f;
}

fp::figure train_time_figure(const trained& t, const std::string& title) {
    constexpr double enough = 0.9;
    fp::figure f{.title = title, .x = {.label = "training time (s)", .log = 10}, .y = {}, .curves = {}};
    f.level = fp::mark{static_cast<double>(t.o.training.length), "training length"};
    for (const drawn& m : by_member(t)) {
        f.y.label = "longest length with 90 % right (" + m.results.front()->task.length_unit + ")";
        f.curves.push_back(against(
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
        set_score(f, m.results.front()->task);
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
    return f;
}

namespace {
/// Columns of a member's validation.csv against one of them.
fp::curve validated(const outcome& r, const drawn& m, const std::string& x, const std::string& y) {
    fp::curve c{.label = m.label, .x = {}, .y = {}, .colour = m.colour, .width = 0.7 * m.width};
    fp::read_csv(r.folder / "validation.csv", {x, y}, [&](const auto& row) {
        c.x.push_back(row[0]);
        c.y.push_back(row[1]);
    });
    c.points = c.x.size() <= 20;
    return c;
}
}  // namespace

std::vector<fp::figure> validation_figures(const trained& t) {
    fp::figure steps{.title = "At equal steps", .x = {.label = "training step"}, .y = {}, .curves = {}};
    fp::figure seconds{.title = "At equal time", .x = {.label = "training time (s)"}, .y = {}, .curves = {}};
    for (const drawn& m : by_member(t)) {
        const outcome& first = *m.results.front();
        steps.y.label = seconds.y.label = first.task.score_name;
        steps.curves.push_back(validated(first, m, "step", "score"));
        seconds.curves.push_back(validated(first, m, "seconds", "score"));
    }
    // From the whole number below all points to the one above: bits do not begin at 0.
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const fp::curve& c : steps.curves)
        for (const double y : c.y) {
            low = std::min(low, std::floor(y));
            high = std::max(high, std::ceil(y));
        }
    if (low < high) steps.y.limits = seconds.y.limits = {{low, high}};
    return {steps, seconds};
}

fp::figure layers_figure(const trained& t) {
    fp::figure f{.title = "", .x = {.label = "training step"}, .y = {.label = "median iterations"}, .curves = {}};
    if (t.results.empty()) return f;
    constexpr std::array colours{"#9ecae1", "#6baed6", "#3182bd", "#08306b"};
    const outcome& r = t.results.front();
    f.title = title_of(t.o.data) + ": iterations of each block of " + t.members.front().label;
    for (int i = 0; i < t.members.front().settings.model.size.layers; ++i) {
        const drawn m{.results = {&r},
                      .label = "block " + std::to_string(i + 1),
                      .colour = colours[static_cast<std::size_t>(i) % colours.size()]};
        f.curves.push_back(validated(r, m, "step", "iterations_" + std::to_string(i)));
    }
    return f;
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
        if (std::isfinite(first.task.guess))
            guesses.insert("| " + first.task.guess_name + ", " + first.task.name + " | | | " +
                           number(first.task.guess) + " |\n");
    }
    for (const std::string& guess : guesses) rows += guess;
    return head + "\n" + rule + "\n" + rows;
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

void draw(const fp::picture& p, const options& o, const std::string& name) {
    if (const auto chart = fp::draw(p, o.out, name, fp::columns_of(stdout)))
        std::printf("\n%s\n%s is this chart, because gnuplot did not draw one\n", chart->c_str(),
                    (o.out / (name + ".txt")).c_str());
    else
        std::printf("\n%s\n%s\n", (o.out / (name + ".png")).c_str(), (o.out / (name + ".svg")).c_str());
}

}  // namespace experiment
