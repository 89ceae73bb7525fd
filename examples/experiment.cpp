// Trains fixed-point recurrent networks on group state tracking; --help says what can be asked for.
//
//   experiment --group A4 --steps 3000 --out DIR    one model
//   experiment --compare                            FP-Mamba beside Mamba and LSTM: the paper's central picture
//   experiment --figure interpolation               the paper's Figure 1
//   … --checkpoint-every 1000 --resume                  the same command, started again, goes on where it was ended
//   … --device cuda                                     on a GPU, when it was built with CUDA
//
// Exit status: 0, also when a signal ended the training; 1 when numbers were not finite, memory did not suffice, or a file or
// the standard output could not be written; 2 for bad input.

#include "experiment/figures.hpp"
#include "experiment/folders.hpp"

#include <fprnn/io/csv_file.hpp>
#include <fprnn/io/files.hpp>
#include <fprnn/io/standard_streams.hpp>
#include <fprnn/train/interrupt.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <new>

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

void draw_all(const options& o, const std::vector<drawn>& models) {
    draw(accuracy_picture(o, models), o, "accuracy");
    draw(training_picture(o, models), o, "training");
}

bool train_one(const options& o) {
    const std::vector<outcome> results{run(o)};
    print_table(results.front());
    draw_all(o, by_model(results));
    return finite(results);
}

bool compare(const options& o) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<outcome> results;
    json summary;
    summary["group"] = o.data.group;
    summary["train_length"] = o.training.length;
    summary["seconds_total"] = 0.0;
    for (const options& one : models_of(o)) {
        if (fp::interrupt::requested()) break;
        results.push_back(run(one));
        print_table(results.back());
        summary[one.out.filename().string()] = results.back().summary;
    }
    summary["seconds_total"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    summary["interrupted"] = fp::interrupt::requested();
    fp::write_file(o.out / "summary.json", summary.dump(4) + "\n");
    draw_all(o, by_model(results));
    return finite(results);
}

/// The paper's Figure 1, without its other architectures: ℓ_max bounds the iterations of the training only.
bool interpolate(const options& o) {
    constexpr const char* colours[] = {"#7fbf7b", "#35978f", "#4a90c2", "#1b3f8b"};
    fp::figure f{.title = "FP-Mamba on " + o.data.group + ", trained with at most ℓ_{max} iterations",
                 .x = {.label = "length of the test sequence (tokens)"},
                 .y = {.label = "accuracy on whole sequences", .limits = {{0, 1}}},
                 .curves = {},
                 .upright = fp::mark{static_cast<double>(o.training.length), "training length"}};
    fp::csv_file csv(o.out / "interpolation.csv", "ell_max,length,sequence_accuracy,token_accuracy");
    std::vector<outcome> results;
    std::vector<std::string> labels;
    json summary;
    summary["group"] = o.data.group;
    summary["train_length"] = o.training.length;
    for (const options& one : models_of(o)) {
        if (fp::interrupt::requested()) break;
        const int ell_max = one.schedule.ell_max;
        const char* colour = colours[results.size() % std::size(colours)];
        std::printf("l_max = %d, ", ell_max);
        results.push_back(run(one));
        print_table(results.back());
        const fp::evaluation& e = results.back().table.front().evaluation;
        fp::curve c{
            .label = "ℓ_{max} = " + std::to_string(ell_max), .x = {}, .y = {}, .colour = colour, .points = false};
        for (const fp::index length : o.test_lengths) {
            const auto a = fp::measure_accuracy(e.answers, e.sequences, length);
            c.x.push_back(static_cast<double>(length));
            c.y.push_back(a.sequence);
            csv.row({ell_max, length, a.sequence, a.token});
        }
        f.curves.push_back(c);
        labels.push_back(c.label);
        summary["ell_max"][std::to_string(ell_max)] = results.back().summary;
    }
    fp::write_file(o.out / "summary.json", summary.dump(4) + "\n");
    draw(f, o, "interpolation");
    std::vector<drawn> models;
    models.reserve(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) models.push_back({&results[i], labels[i], colours[i]});
    draw(training_picture(o, models), o, "training");
    return finite(results);
}

/// Whether all numbers were finite.
bool do_job(const options& o) {
    require_there(o.machine);
    prepare_folders(o);
    const fp::interrupt guard;
    switch (o.job) {
        case job::one: return train_one(o);
        case job::compare: return compare(o);
        case job::interpolation: return interpolate(o);
    }
    return false;
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
