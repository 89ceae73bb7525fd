#include "experiment.hpp"

#include "configuration.hpp"
#include "solutions.hpp"

#include <fprnn/io/checkpoint.hpp>
#include <fprnn/io/csv_file.hpp>
#include <fprnn/io/files.hpp>
#include <fprnn/train/interrupt.hpp>
#include <fprnn/train/progress.hpp>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>

namespace experiment {

namespace {

using json = nlohmann::ordered_json;
using real = network::real;
using parameters = fp::parameter_tree<real>;

}  // namespace

const char* text_of(fp::training_end end) {
    switch (end) {
        case fp::training_end::steps: return "steps";
        case fp::training_end::time_limit: return "time_limit";
        case fp::training_end::stopped: return "signal";
        case fp::training_end::nonfinite: return "nonfinite";
    }
    return "";
}

namespace {

/// Takes the state of the newest checkpoint, when there is one.
void resume(const options& o, fp::training_state<real>& state) {
    const auto search = fp::load_latest_checkpoint(o.out, state, training_configuration(o));
    for (const std::string& reason : search.refused)
        std::fprintf(stderr, "experiment: %s; the checkpoint before it is tried\n", reason.c_str());
    if (search.taken)
        std::printf("goes on from %s\n", search.taken->c_str());
    else
        std::printf("starts anew: there is no checkpoint in %s\n", o.out.c_str());
}

/// Columns of metrics.csv. A run that an earlier version began has those of the steps alone, and goes on with
/// them.
const std::string step_columns =
    "step,length,loss,token_accuracy,sequence_accuracy,median_iterations,share_converged,learning_rate,gradient_norm,"
    "seconds";
const std::string all_columns = step_columns + ",adjoint_median_iterations,adjoint_share_converged";

std::filesystem::path metrics_of(const options& o) { return o.out / "metrics.csv"; }

bool has_adjoint_columns(const options& o, fp::index steps) {
    std::ifstream file(metrics_of(o));
    std::string first;
    return steps == 0 || !std::getline(file, first) || first != step_columns;
}

/// Of so many sequences as are asked for, or as there are. Where there are more, such as windows of a text or
/// stories of tasks, it is every so manieth of them.
fp::task::test_set test_set(const options& o, const fp::task& task, fp::index length) {
    auto set = task.test(length);
    const fp::index there = set.sequences, asked = o.test_sequences;
    set.sequences = there == 0 ? asked : std::min(there, asked);
    if (there > asked)
        set.data = [all = std::move(set.data), there, asked](fp::view<std::int32_t> tokens,
                                                             fp::view<std::int32_t> targets, std::uint64_t first) {
            const fp::index B = tokens.shape()[0], T = tokens.shape()[1];
            for (fp::index b = 0; b < B; ++b) {
                const double place = static_cast<double>(first) + static_cast<double>(b);
                const auto row =
                    static_cast<std::uint64_t>(place * static_cast<double>(there) / static_cast<double>(asked));
                all({tokens.data() + b * T, {1, T}}, {targets.data() + b * T, {1, T}}, row);
            }
        };
    return set;
}

/// The score of data that were not trained on, and the iterations of each block, while the model is trained.
class validation {
public:
    validation(const options& o, const fp::task& task, const network& model, fp::index steps)
        : o_(o), task_(task), model_(model.with(o.test_schedule())), set_(test_set(o, task, o.test_lengths.front())) {
        const auto path = o.out / "validation.csv";
        if (o.validate_every == 0) {
            std::error_code none;
            if (steps == 0) std::filesystem::remove(path, none);  // of an earlier run
            return;
        }
        std::string header = "step,seconds,score,loss";
        if (model.has_fixed_point())
            for (int i = 0; i < o.model.size.layers; ++i) header += ",iterations_" + std::to_string(i);
        file_ = steps == 0 ? fp::csv_file(path, header) : fp::csv_file::continued(path, header, steps);
    }

    void sync() {
        if (file_) file_->sync();
    }
    bool is_due(fp::index step) const { return file_ && (step % o_.validate_every == 0 || step == o_.training.steps); }
    void add(const fp::training_step& s, const parameters& theta) {
        const auto e = model_->evaluate(theta, set_.tokens, set_.sequences, set_.data);
        std::vector<fp::csv_file::cell> row{s.step, s.seconds, task_.score(e), e.loss};
        for (const auto& how : solutions(theta)) row.emplace_back(how.median_iterations);
        file_->row(row);
    }

private:
    /// Of each block with a fixed point, on some of the sequences.
    std::vector<fp::convergence_summary> solutions(const parameters& theta) const {
        if (!model_->has_fixed_point()) return {};
        const fp::index sequences = std::min<fp::index>(set_.sequences, 32);
        fp::tensor<std::int32_t> tokens({sequences, set_.tokens}), targets({sequences, set_.tokens});
        set_.data(tokens.view(), targets.view(), 0);
        std::vector<fp::convergence_summary> all;
        for (const fp::convergence& how : model_->solve(theta, tokens.view()).how)
            if (const auto summary = fp::summarise(std::vector{how}, set_.tokens)) all.push_back(*summary);
        return all;
    }

    const options& o_;
    const fp::task& task_;
    std::unique_ptr<network> model_;
    fp::task::test_set set_;
    std::optional<fp::csv_file> file_{};
};

/// The table of the steps so far.
fp::csv_file open_metrics(const options& o, fp::index steps) {
    const auto path = metrics_of(o);
    const std::string& header = has_adjoint_columns(o, steps) ? all_columns : step_columns;
    if (steps == 0) return {path, header};
    fp::csv_file metrics = fp::csv_file::continued(path, header, steps);
    if (metrics.rows() != steps)
        std::fprintf(stderr, "experiment: %s has only %lld of the %lld steps before the checkpoint\n", path.c_str(),
                     static_cast<long long>(metrics.rows()), static_cast<long long>(steps));
    return metrics;
}

fp::training_result train(const options& o, const fp::task& task, const network& model,
                          fp::training_state<real>& state) {
    const bool with_adjoint = has_adjoint_columns(o, state.steps);
    fp::csv_file metrics = open_metrics(o, state.steps);
    fp::progress progress(
        stdout, o.training.steps, 10,
        {.step = state.steps, .sequences = state.sequences, .done = o.training.share_over(state.steps, state.seconds)});
    validation validated(o, task, model, state.steps);
    fp::index saved = state.steps;
    const auto save = [&] {
        if (saved == state.steps) return;
        // A checkpoint that survives a power failure needs the rows before it.
        metrics.sync();
        validated.sync();
        fp::save_checkpoint(o.out, state, training_configuration(o));
        saved = state.steps;
    };
    const auto seconds_to_limit = [&](double seconds) {
        const double limit = o.training.time_limit;
        return std::isfinite(limit) ? std::optional(limit - seconds) : std::nullopt;
    };
    const auto observe = [&](const fp::training_step& s) {
        if (with_adjoint)
            metrics.row({s.step, s.length, s.loss, s.token_accuracy, s.sequence_accuracy, s.iterations,
                         s.share_converged, s.learning_rate, s.gradient_norm, s.seconds, s.adjoint_iterations,
                         s.adjoint_share_converged});
        else
            metrics.row({s.step, s.length, s.loss, s.token_accuracy, s.sequence_accuracy, s.iterations,
                         s.share_converged, s.learning_rate, s.gradient_norm, s.seconds});
        const bool checkpoint = o.checkpoint_every > 0 && s.step % o.checkpoint_every == 0,
                   due = validated.is_due(s.step);
        if (checkpoint || due) s.fetch();
        if (due) validated.add(s, state.theta);
        if (checkpoint) save();
        progress.update({.step = s.step,
                         .sequences = s.sequences,
                         .loss = s.loss,
                         .token_accuracy = s.token_accuracy,
                         .sequence_accuracy = s.sequence_accuracy,
                         .iterations = s.iterations,
                         .done = s.done,
                         .most_seconds = seconds_to_limit(s.seconds)});
        return !fp::interrupt::requested();
    };
    const auto result = model.train(state, o.training, task.train, observe, o.drawn_schedule());
    if (result.end == fp::training_end::nonfinite)
        progress.print(result.message + "; going on with the last good parameters");
    else if (o.checkpoint_every > 0)
        save();
    if (result.end == fp::training_end::stopped && o.checkpoint_every > 0)
        progress.print("ended after step " + std::to_string(state.steps) + ", from which --resume goes on");
    return result;
}

/// Is the trained model at its fixed point? Accuracy at other tolerances, and how far the schedules C = 1 and
/// C = T are apart, at a length of 64 or, where that is less, of the longest test.
json check_fixed_point(const options& o, const fp::task& task, const network& model, const parameters& theta) {
    const fp::index length_of_check = std::min<fp::index>(64, o.test_lengths.back());
    const auto data = test_set(o, task, length_of_check);
    const fp::index length = data.tokens;
    json check;
    check["length"] = length_of_check;
    for (const double tolerance : {1e-2, 1e-4, 1e-6}) {
        const auto at = model.with({o.schedule.length, tolerance, o.schedule.ell_max});
        const auto e = at->evaluate(theta, length, data.sequences, data.data);
        char digits[16];
        const std::string name(
            digits, std::to_chars(digits, digits + sizeof digits, tolerance, std::chars_format::scientific, 0).ptr);
        check["tolerance"][name] = {{"sequence_accuracy", e.accuracy.sequence},
                                    {"token_accuracy", e.accuracy.token},
                                    {"share_converged", e.convergence ? e.convergence->share_converged : 1.0},
                                    {"median_iterations", e.convergence ? e.convergence->median_iterations : 0.0}};
    }

    const auto both = solve_both_ways(model, theta, data, std::min<fp::index>(data.sequences, 128), o.schedule.ell_max);
    check["sequential_and_parallel"] = {{"sequences", both.sequences},
                                        {"tolerance", both.tolerance},
                                        {"share_converged_sequential", both.converged_sequential},
                                        {"share_converged_parallel", both.converged_parallel},
                                        {"sequence_accuracy_sequential", both.accuracy_sequential},
                                        {"sequence_accuracy_parallel", both.accuracy_parallel},
                                        {"largest_relative_difference_of_logits", both.largest_difference},
                                        {"mean_relative_difference_of_logits", both.mean_difference},
                                        {"share_of_tokens_with_other_argmax", both.other_answers},
                                        {"share_of_tokens_that_part", both.parting}};
    return check;
}

/// Of the beginnings of sequences, whose solutions are those of shorter ones, because the model is causal.
/// How they were solved, and the loss, are known of the longest alone.
std::vector<test_result> prefixes(const fp::task& task, const fp::evaluation& longest,
                                  const std::vector<fp::index>& lengths) {
    std::vector<test_result> table;
    for (const fp::index length : lengths) {
        fp::evaluation e = longest;
        e.accuracy = fp::measure_accuracy(longest.answers, longest.sequences, task.test(length).tokens);
        if (length != lengths.back()) {
            e.convergence.reset();
            e.loss = NAN;
        }
        e.answers.clear();
        e.length = task.test(length).tokens;
        table.push_back({length, task.score(e), e});
    }
    return table;
}

/// What did not fit, and what it depends on.
std::string no_memory(const options& o, const std::string& doing) {
    std::string sizes =
        o.data.task == data_options::kind::word_problem ? "--group " + o.data.group : "--task " + o.task_name;
    const auto size = [&](const char* name, auto value) {
        sizes += ", " + std::string(name) + " " + std::to_string(value);
    };
    size("--batch", o.training.batch);
    size("--length", o.training.length);
    if (o.windows > 1) size("--windows", o.windows);
    size("--layers", o.model.size.layers);
    size("--d-model", o.model.size.d_model);
    size("--d-inner", o.model.size.d_inner);
    size("--d-state", o.model.size.d_state);
    if (o.model.kind == architecture::block::transformer) size("--context", o.model.size.context);
    if (!o.machine.cuda) size("--threads", o.machine.threads);
    return "not enough memory to " + doing + " " + name_of(o.model.kind) + " with " + sizes +
           "; smaller numbers need less";
}

struct trained_parameters {
    parameters theta;
    fp::training_result training;
};

/// What training begins with.
parameters first_parameters(const options& o, const network& model) {
    parameters theta = model.init(fp::seed{o.seed});
    if (mixer_has_gates(o.model))
        for (const auto& entry : theta.entries())
            if (entry.name.ends_with(".Q.gate.bias"))
                std::ranges::fill(theta[entry.name], static_cast<real>(o.start_of_gates()));
    return theta;
}

/// Trains a model with its own seed and writes into o.out all that is known without a test. `doing` is what
/// it is at.
trained_parameters train_in_folder(const options& o, const network& model, std::string& doing) {
    doing = "make";
    const fp::task task = make_task(o.data, o.seed_of_data());
    fp::training_state<real> state(first_parameters(o, model), o.training);
    std::printf("%s on %s at T = %lld: %lld parameters, %s\n", name_of(o.model.kind), task.name.c_str(),
                static_cast<long long>(o.training.length), static_cast<long long>(state.theta.size()),
                model.where().c_str());
    if (o.resume) resume(o, state);
    write_json(o.out / "config.json", to_json(o));
    doing = "train";
    fp::training_result training = train(o, task, model, state);
    fp::save_parameters(
        o.out / "parameters.safetensors", state.theta,
        {{"step", std::to_string(training.steps)}, {"configuration", training_configuration(o).dump()}});
    return {std::move(state.theta), std::move(training)};
}

/// The first attempt that is good enough on sequences that neither training nor tests see, or the best of
/// those that the time limit has room for. Its files become the model's. `summary` receives the score of
/// each.
trained_parameters best_of_attempts(const options& o, const network& model, json& summary, std::string& doing) {
    constexpr double enough = 0.995;
    const fp::index length = o.test_lengths.back();
    const auto tested = model.with(o.test_schedule());
    const auto unseen = test_set(o, make_task(o.data, fp::seed{~o.seed}), length);  // a seed that nothing else has
    std::optional<trained_parameters> best;
    std::filesystem::path of_best;
    double best_score = 0, best_loss = 0, seconds = 0, longest = 0;
    const auto attempts = attempts_of(o);
    for (const options& one : attempts) {
        fp::require_writable_folder(one.out, "--out");
        auto trained = train_in_folder(one, model, doing);
        doing = "evaluate";
        const auto e = tested->evaluate(trained.theta, unseen.tokens, unseen.sequences, unseen.data);
        const double score = e.accuracy.sequence;
        summary["attempts"].push_back(
            {{"seed", one.seed}, {"score", score}, {"loss", e.loss}, {"seconds", trained.training.seconds}});
        std::printf("attempt %zu of at most %zu: %.4f of %lld other sequences of %lld are right\n",
                    summary["attempts"].size(), attempts.size(), score, static_cast<long long>(unseen.sequences),
                    static_cast<long long>(length));
        seconds += trained.training.seconds;
        longest = std::max(longest, trained.training.seconds);
        const bool ends = score >= enough || trained.training.end == fp::training_end::stopped ||
                          seconds + longest > o.training.time_limit;
        const double loss = known(e.loss).value_or(HUGE_VAL);
        if (!best || score > best_score || (score == best_score && loss < best_loss)) {
            best = std::move(trained), of_best = one.out;
            best_score = score, best_loss = loss;
        }
        if (ends) break;
    }
    for (const char* name : {"metrics.csv", "validation.csv", "parameters.safetensors"})
        if (std::filesystem::exists(of_best / name))
            fp::write_file(o.out / name, fp::read_file(of_best / name, std::numeric_limits<std::uintmax_t>::max()));
        else
            std::filesystem::remove(o.out / name);  // of an earlier run
    write_json(o.out / "config.json", to_json(o));
    return std::move(*best);
}

/// As run below; `doing` is what it is at.
outcome run(const options& o, std::string& doing) {
    outcome r;
    r.task = make_task(o.data, o.seed_of_data());
    // What has no test data of a length says so before anything is trained.
    for (const fp::index length : o.test_lengths) (void)r.task.test(length);
    architecture a = o.model;
    a.size.vocabulary = r.task.vocabulary;
    a.size.classes = r.task.classes;
    const std::shared_ptr<const network> model = make_network(a, o.schedule, o.adjoint(), o.machine);
    json& s = r.summary;
    s["task"] = r.task.name;
    s["model"] = o.model_name;
    auto trained = o.restarts > 0 ? best_of_attempts(o, *model, s, doing) : train_in_folder(o, *model, doing);
    const parameters& theta = trained.theta;
    r.training = trained.training;
    r.kind = o.model.kind;
    r.folder = o.out;
    r.parameters = theta.size();

    // The table of an earlier test stays until this one is whole.
    const auto table = o.out / "accuracy.csv", in_part = o.out / "accuracy.csv.part";
    fp::csv_file csv(in_part,
                     "length,token_accuracy,sequence_accuracy,median_iterations,residual,largest_residual,"
                     "share_converged,loss,score");
    const auto add = [&](const test_result& one) {
        const auto& [length, score, e] = one;
        const auto& c = e.convergence;
        const auto cell = [&c = c](auto member) { return c ? std::optional<double>((*c).*member) : std::nullopt; };
        csv.row({length, e.accuracy.token, e.accuracy.sequence, cell(&fp::convergence_summary::median_iterations),
                 cell(&fp::convergence_summary::median_residual), cell(&fp::convergence_summary::largest_residual),
                 cell(&fp::convergence_summary::share_converged), known(e.loss), score});
        r.table.push_back(one);
    };
    const auto tested = model->with(o.test_schedule());
    const auto evaluate_at = [&](fp::index length) {
        const auto set = test_set(o, r.task, length);
        doing =
            "evaluate " + std::to_string(set.sequences) + " sequences of " + std::to_string(set.tokens) + " tokens by";
        return tested->evaluate(theta, set.tokens, set.sequences, set.data);
    };
    if (o.tests_prefixes) {
        for (const test_result& one : prefixes(r.task, evaluate_at(o.test_lengths.back()), o.test_lengths)) add(one);
    } else {
        for (const fp::index length : o.test_lengths) {
            const auto e = evaluate_at(length);
            add({length, r.task.score(e), e});
            if (o.data.task == data_options::kind::copy)
                r.written[length] =
                    tested->write_copies(theta, copies_of(o.data, o.seed_of_data(), length), e.sequences);
        }
    }
    std::filesystem::rename(in_part, table);

    doing = "evaluate";
    s["train_length"] = o.training.length;
    s["parameters"] = r.parameters;
    s["steps"] = r.training.steps;
    s["ended_by"] = text_of(r.training.end);
    if (!r.training.message.empty()) s["message"] = r.training.message;
    s["training_seconds"] = r.training.seconds;
    s["training_tokens_per_second"] =
        static_cast<double>(r.training.steps * o.training.batch * o.training.length) / r.training.seconds;
    s["test_sequences"] = r.table.back().evaluation.sequences;
    double least_converged = 1;
    for (const auto& [tested_length, score, e] : r.table) {
        const std::string length = std::to_string(tested_length);
        s["score"][length] = score;
        if (known(e.loss)) s["loss"][length] = e.loss;
        s["sequence_accuracy"][length] = e.accuracy.sequence;
        s["token_accuracy"][length] = e.accuracy.token;
        if (const auto own = r.written.find(tested_length); own != r.written.end()) {
            s["written_letter_accuracy"][length] = own->second.token;
            s["written_string_accuracy"][length] = own->second.sequence;
        }
        if (!e.convergence) continue;
        s["median_iterations"][length] = e.convergence->median_iterations;
        least_converged = std::min(least_converged, e.convergence->share_converged);
    }
    if (model->has_fixed_point()) {
        s["share_converged"] = least_converged;
        if (!o.test_ell_max) s["fixed_point_check"] = check_fixed_point(o, r.task, *model, theta);
    }
    write_json(o.out / "summary.json", s);
    r.model = model;
    r.theta = std::move(trained.theta);
    return r;
}

}  // namespace

outcome run(const options& o) {
    std::string doing = "make";
    try {
        return run(o, doing);
    } catch (const std::bad_alloc&) {
        throw std::runtime_error(no_memory(o, doing));
    } catch (const std::length_error&) {
        throw std::runtime_error(no_memory(o, doing));
    }
}

void print_table(const outcome& r) {
    std::printf("\n%s, %lld steps in %s\n", name_of(r.kind), static_cast<long long>(r.training.steps),
                fp::duration_text(r.training.seconds).c_str());
    const bool scored = !r.task.of_sequences;
    std::printf("%8s", r.task.length_unit.c_str());
    if (scored) std::printf(" %20s", r.task.score_name.c_str());
    std::printf(" %10s %10s", "sequences", "tokens");
    if (!r.written.empty()) std::printf(" %15s %15s", "written strings", "written letters");
    std::printf(" %12s %11s\n", "iterations", "converged");
    for (const auto& [length, score, e] : r.table) {
        std::printf("%8lld", static_cast<long long>(length));
        if (scored) std::printf(" %20.4f", score);
        std::printf(" %10.4f %10.4f", e.accuracy.sequence, e.accuracy.token);
        if (const auto own = r.written.find(length); own != r.written.end())
            std::printf(" %15.4f %15.4f", own->second.sequence, own->second.token);
        if (e.convergence)
            std::printf(" %12g %11.4f", e.convergence->median_iterations, e.convergence->share_converged);
        std::printf("\n");
    }
    if (r.task.guess)
        std::printf("%s at %lld: %.4f\n", r.task.guess_name.c_str(), static_cast<long long>(r.table.back().length),
                    r.task.guess(r.table.back().length));
    std::fflush(stdout);
}

}  // namespace experiment
