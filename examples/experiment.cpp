// Trains recurrent networks on the paper's tasks and draws its figures; --help says what can be asked for.
//
//   experiment --group A4 --steps 3000 --out DIR    one model on the word problem of a group
//   experiment --task copy --model gated-deltanet   another model on another task
//   experiment --compare                            FP-Mamba beside Mamba and LSTM: the paper's central
//                                                   picture
//   experiment --figure interpolation               the paper's Figure 1; --list names all
//   experiment --config out/config.json --seed 1    a run as a file
//   … --checkpoint-every 1000 --resume              the same command, started again, goes on where it was
//                                                   ended
//   … --device cuda                                 on a GPU, when it was built with CUDA
//
// Exit status: 0, also when a signal ended the training; 1 when numbers were not finite, memory did not
// suffice, or a file or the standard output could not be written; 2 for bad input.

#include "experiment/configuration.hpp"
#include "experiment/figures.hpp"
#include "experiment/folders.hpp"

#include <fprnn/io/csv_file.hpp>
#include <fprnn/io/files.hpp>
#include <fprnn/io/standard_streams.hpp>
#include <fprnn/train/interrupt.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>
#include <vector>

namespace experiment {

using json = nlohmann::ordered_json;

bool finite(const std::vector<outcome>& results) {
    bool all = true;
    for (const outcome& r : results) {
        if (r.training.end != fp::training_end::nonfinite) continue;
        std::fprintf(stderr, "experiment: %s: %s\n", r.folder.c_str(), r.training.message.c_str());
        all = false;
    }
    return all;
}

bool train_one(const options& o) {
    const std::vector<outcome> results{run(o)};
    print_table(results.front());
    const auto model = alone(results.front());
    draw(accuracy_picture(o, model), o, "accuracy");
    draw(training_picture(o, model), o, "training");
    return finite(results);
}

/// Every number of every test of an exhibit; none of them depends on the machine's speed.
void write_results(const trained& all) {
    fp::csv_file csv(all.o.out / (std::string(all.o.shown->name) + ".csv"),
                     "model,task,seed,parameters,steps,ended_by,length,score,sequence_accuracy,token_accuracy,loss,"
                     "median_iterations,share_converged");
    for (std::size_t i = 0; i < all.results.size(); ++i)
        for (const test_result& t : all.results[i].table) {
            const auto& c = t.evaluation.convergence;
            const auto cell = [&](auto number) { return c ? std::optional<double>((*c).*number) : std::nullopt; };
            csv.row({all.members[i].label, all.results[i].task.name, all.members[i].settings.seed,
                     all.results[i].parameters, all.results[i].training.steps,
                     std::string(text_of(all.results[i].training.end)), t.length, t.score,
                     t.evaluation.accuracy.sequence, t.evaluation.accuracy.token, known(t.evaluation.loss),
                     cell(&fp::convergence_summary::median_iterations),
                     cell(&fp::convergence_summary::share_converged)});
        }
}

/// Whether the results of all of an exhibit's members stand in its folder.
bool is_complete(const options& o) {
    std::error_code none;
    const auto path = o.out / "summary.json";
    if (!std::filesystem::exists(path, none)) return false;
    const auto j = json::parse(fp::read_file(path, 1 << 24), nullptr, false);
    // An earlier version said no more than that nothing had interrupted it.
    return j.is_object() && j.value("complete", !j.value("interrupted", true));
}

/// A member that fails leaves the others to be trained. What ends before all are done leaves the summary, the
/// table and the picture of an earlier run as they are, if that was of all.
bool show(const options& o) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<member> members = members_of(o);
    trained all{o, {}, {}};
    bool good = true;
    json summary;
    summary["job"] = job_of(o);
    summary["train_length"] = o.training.length;
    summary["seconds_total"] = 0.0;
    for (const member& one : members) {
        if (fp::interrupt::requested()) break;
        std::printf("%s: ", one.label.c_str());
        try {
            all.results.push_back(run(one.settings));
        } catch (const std::runtime_error& e) {
            std::printf("\n");
            std::fprintf(stderr, "experiment: %s: %s\n", one.label.c_str(), e.what());
            good = false;
            continue;
        }
        all.members.push_back(one);
        const outcome& result = all.results.back();
        print_table(result);
        summary[one.settings.out.lexically_relative(o.out).string()] = result.summary;
    }
    summary["seconds_total"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    summary["interrupted"] = fp::interrupt::requested();
    const bool complete = all.results.size() == members.size() &&
                          std::none_of(all.results.begin(), all.results.end(),
                                       [](const outcome& r) { return r.training.end == fp::training_end::stopped; });
    summary["complete"] = complete;
    if (!complete && is_complete(o)) {
        std::fputs("experiment: not all members are done; summary, table and picture stay those of before\n", stderr);
        return finite(all.results) && good;
    }
    write_json(o.out / "summary.json", summary);
    write_results(all);
    if (!all.results.empty()) o.shown->show(all);
    return finite(all.results) && good;
}

/// Whether all numbers were finite.
bool do_job(const options& o) {
    require_there(o.machine);
    prepare_folders(o);
    const fp::interrupt guard;
    return o.shown ? show(o) : train_one(o);
}

int main(int argc, char** argv) {
    try {
        fp::open_standard_streams();
        const auto o = read_options(argc, argv, std::cout);
        const bool good = !o || do_job(*o);
        fp::require_printed(stdout, "the standard output");
        return good ? 0 : 1;
    } catch (const fp::argument_error& e) {
        std::fprintf(stderr, "experiment: %s\n", e.what());
        return 2;
    } catch (const std::bad_alloc&) {
        std::fputs("experiment: not enough memory\n", stderr);
        return 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "experiment: %s\n", e.what());
        return 1;
    }
}

}  // namespace experiment

int main(int argc, char** argv) { return experiment::main(argc, argv); }
