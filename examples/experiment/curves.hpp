#pragma once

#include "figures.hpp"

#include <fprnn/io/picture.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

/// Curves of results, with the seeds of a model as an interval.
namespace experiment {

/// The longest data in training, as the task counts them.
inline fp::mark longest_in_training(const options& o) {
    const bool made = o.data.task == data_options::kind::copy || o.data.task == data_options::kind::arithmetic;
    return {static_cast<double>(made ? o.data.longest : o.windows * o.training.length), "training length"};
}

/// The mean of what seeds have at one x, and what lies between the least and the largest; NaN where one has
/// nothing, or none has.
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
        c.low.push_back(low_ <= high_ ? low_ : NAN);
        c.high.push_back(low_ <= high_ ? high_ : NAN);
    }

private:
    double sum_ = 0, low_ = HUGE_VAL, high_ = -HUGE_VAL;
    fp::index count_ = 0;
};

/// Without a band where every interval is one number, or none.
inline fp::curve without_empty_band(fp::curve c) {
    if (std::equal(c.low.begin(), c.low.end(), c.high.begin(), [](double low, double high) { return !(low < high); })) {
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
inline double score_of(const test_result& t) { return t.score; }

/// A curve of y(result) at x(result), of which the seeds of a member make one point.
template <class X, class Y>
fp::curve against_measured(const drawn& m, X&& x, Y&& y) {
    struct point {
        double sum = 0;
        fp::index seeds = 0;
        interval all{};
    };
    std::map<std::filesystem::path, point> of_member;
    for (const outcome* r : m.results) {
        point& p = of_member[without_seed(r->folder)];
        p.sum += x(*r);
        ++p.seeds;
        p.all.add(y(*r));
    }
    std::multimap<double, interval> at;
    for (const auto& [folder, p] : of_member) at.emplace(p.sum / static_cast<double>(p.seeds), p.all);
    fp::curve c{.label = m.label, .x = {}, .y = {}, .colour = m.colour, .width = m.width};
    for (const auto& [where, all] : at) all.append_to(c, where);
    return without_empty_band(std::move(c));
}

/// A curve of y(result) at x(result), and the results of an x together.
template <class X, class Y>
fp::curve against(const drawn& m, X&& x, Y&& y) {
    std::map<double, interval> at;
    for (const outcome* r : m.results) at[x(*r)].add(y(*r));
    fp::curve c{.label = m.label, .x = {}, .y = {}, .colour = m.colour, .width = m.width};
    for (const auto& [where, all] : at) all.append_to(c, where);
    return without_empty_band(std::move(c));
}

/// The axis of a task's score, and what guessing is worth at the longest length.
inline void set_score(fp::figure& f, const fp::task& task, fp::index longest) {
    f.y.label = task.score_name;
    if (!task.less_is_better) f.y.limits = {{0, 1}};  // see with_all_points
    if (task.guess) f.level = fp::mark{task.guess(longest), task.guess_name};
}
/// A score may lie below that of a guess, which is 0 where scores are scaled.
inline fp::figure with_all_points(fp::figure f) {
    if (!f.y.limits) return f;
    for (const fp::curve& c : f.curves)
        for (const auto* ys : {&c.y, &c.low})
            for (const double y : *ys) f.y.limits->first = std::min(f.y.limits->first, std::floor(10 * y) / 10);
    return f;
}
inline fp::axis length_axis(const std::vector<drawn>& models) {
    return {.label = "length of the test sequence (" + models.front().results.front()->task.length_unit + ")"};
}

inline fp::curve thin(fp::curve c) {
    c.label.clear();
    c.width = 2;
    c.dash = 2;
    c.points = false;
    return c;
}

/// What the number of iterations of a sequence is.
inline std::string iterations_title(const options& o) {
    if (o.schedule.length == fp::whole_sequence) return "Iterations of a sequence";
    return std::string("Iterations of a sequence's slowest ") + (o.schedule.length == 1 ? "token" : "chunk");
}

}  // namespace experiment
