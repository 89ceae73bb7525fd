#include "catalogue.hpp"
#include "choices.hpp"
#include "figures.hpp"
#include "members.hpp"

#include <fprnn/io/files.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <tuple>

/// The paper's exhibits on copying, arithmetic and text.
namespace experiment {

namespace {

void fill_in_copying(options& o) {
    use_task(o, "copy");
    const defaults use{o};
    use("--d-state", o.model.size.d_state, 32);
    use("--steps", o.training.steps, 16000);
    use("--test-sequences", o.test_sequences, 512);
}
/// The authors' sizes, steps and rate; the context is the paper's. How a rate rises and falls, its decay and
/// the limit of a gradient's norm stay this program's.
void paper_copying(options& o) {
    const defaults use{o};
    use("--shortest", o.data.shortest, 5);
    use("--longest", o.data.longest, 50);
    use("--length", o.training.length, 255);
    use("--batch", o.training.batch, 128);
    use("--test-lengths", o.test_lengths, lengths_of("5,10,20,30,40,50,60,70,80,90,99,100"));
    use("--d-model", o.model.size.d_model, 1024);
    use("--d-inner", o.model.size.d_inner, 2048);
    use("--d-state", o.model.size.d_state, 32);
    use("--steps", o.training.steps, 10000);
    use("--learning-rate", o.training.optimiser.learning_rate, 1e-5);
    use_authors_iteration(o);
    use("--seeds", o.seeds, 3);
}
std::vector<member> of_copying(const options& o) {
    members m(o);
    options& fp_mamba = m.add_fp_mamba("fp_mamba_h4", "FP-Mamba-H, r = 4", fp_blue, "householder", 4);
    fp_mamba.model.convolution = true;
    defaults{fp_mamba}("--sees-y", fp_mamba.model.sees_y, {true, true, true});  // the best row of table h_t-1
    // At D = 64, N = 32 FP-Mamba has 72,516 parameters, these 71,776, 71,880 and 71,832.
    m.add_wide_baseline("published-mamba", "Mamba", diagonal_orange, 2, 1.75);
    m.add_wide_baseline("mamba2", "Mamba-2", light_orange, 2, 2.3125);
    m.add_wide_baseline("gated-deltanet", "Gated DeltaNet", delta_red, 2, 1.25);
    return std::move(m).all();
}
void show_copying(const trained& t) {
    const auto models = by_member(t);
    std::vector<fp::figure> figures{score_figure(t.o, models, "Accuracy")};
    if (fp::figure iterations = both_iterations_figure(t.o, models); !iterations.curves.empty())
        figures.push_back(std::move(iterations));
    draw(fp::picture("Copying, trained on " + std::to_string(t.o.data.shortest) + " to " +
                         std::to_string(t.o.data.longest) + " letters",
                     figures),
         t.o, "copying");
}

/// As copying, but of one length, and of one model with what sees y_{t−1} chosen.
void fill_in_dependence(options& o) {
    fill_in_copying(o);
    defaults{o}("--test-lengths", o.test_lengths, {o.data.longest, 2 * o.data.longest});
}
void paper_dependence(options& o) {
    paper_copying(o);
    defaults{o}("--test-lengths", o.test_lengths, {o.data.longest, 2 * o.data.longest});
}
std::vector<member> of_dependence(const options& o) {
    members m(o);
    for (const auto& [name, sees] : choices::dependences) {
        options& one = m.add_fp_mamba(name, std::string("y in ") + name, fp_blue, "householder", 4);
        one.model.convolution = true;
        one.model.sees_y = sees;
    }
    return std::move(m).all();
}

void fill_in_copying_params(options& o) {
    fill_in_copying(o);
    defaults{o}("--steps", o.training.steps, 8000);  // of models of up to four layers
    defaults{o}("--test-lengths", o.test_lengths, {2 * o.data.longest});
}
void paper_copying_params(options& o) {
    paper_copying(o);
    defaults{o}("--test-lengths", o.test_lengths, {2 * o.data.longest});
}
std::vector<member> of_copying_sizes(const options& o) {
    members m(o);
    for (const int r : {1, 2, 4})
        m.add_fp_mamba("fp_mamba_h" + std::to_string(r), "FP-Mamba-H", fp_blue, "householder", r).model.convolution =
            true;
    m.add_depths("published-mamba", "Mamba", diagonal_orange);
    m.add_depths("mamba2", "Mamba-2", light_orange);
    m.add_depths("gated-deltanet", "Gated DeltaNet", delta_red);
    return std::move(m).all();
}
void show_copying_params(const trained& t) {
    draw(parameters_figure(t, "Copying " + std::to_string(t.o.test_lengths.back()) + " letters"), t.o,
         "params-copying");
}

void fill_in_arithmetic(options& o) {
    use_task(o, "arithmetic");
    const defaults use{o};
    use("--test-lengths", o.test_lengths, lengths_of("40,256"));
    use("--layers", o.model.size.layers, 2);
    use("--test-sequences", o.test_sequences, 2048);
}
void fill_in_table_of_arithmetic(options& o) {
    fill_in_arithmetic(o);
    const defaults use{o};
    use("--operators", o.data.multiplies, false);  // docs/decisions/0023
    use("--curriculum", o.training.first_length, 5);
    use("--steps", o.training.steps, 5000);  // what an hour of two cores has room for
}
void paper_arithmetic(options& o) {
    const defaults use{o};
    use("--batch", o.training.batch, 256);
    use("--d-model", o.model.size.d_model, 128);
    use("--d-inner", o.model.size.d_inner, 256);
    use("--steps", o.training.steps, 100000);
    use("--curriculum", o.training.first_length, o.training.length);
    use("--learning-rate", o.training.optimiser.learning_rate, 1e-3);
    use_authors_iteration(o);
}
std::vector<member> of_arithmetic(const options& o) {
    members m(o);
    // At D = 64 FP-Mamba has 120,200 parameters, these 120,192, 120,368, 119,168, 119,600, 119,660 and
    // 119,164.
    for (const auto& [model, label, colour, width] : {std::tuple("transformer", "Transformer", transformer_grey, 1.375),
                                                      {"mlstm", "mLSTM", lstm_green, 3.9375},
                                                      {"slstm", "sLSTM", lstm_green, 4.0625},
                                                      {"published-mamba", "Mamba", diagonal_orange, 3.625},
                                                      {"deltanet", "DeltaNet", delta_red, 5.875},
                                                      {"gated-delta-product", "Gated DeltaProduct", delta_red, 1.375}})
        m.add_wide_baseline(model, label, colour, o.model.size.layers, width);
    m.add_fp_mamba("fp_mamba_h4", "FP-Mamba-H, r = 4", fp_blue, "householder", 4).model.convolution = true;
    return std::move(m).all();
}
void show_scores(const trained& t) {
    const std::string table = score_table(t);
    const auto path = t.o.out / (std::string(t.o.shown->name) + ".md");
    fp::write_file(path, table);
    std::printf("\n%s\n%s\n", table.c_str(), path.c_str());
}

void fill_in_caps(options& o) {
    fill_in_arithmetic(o);
    const defaults use{o};
    use("--steps", o.training.steps, 16000);
    use("--test-lengths", o.test_lengths, lengths_of("256"));
    use("--test-sequences", o.test_sequences, 512);
}
std::vector<member> of_caps(const options& o) {
    members m(o);
    m.add_fp_mamba("fp_mamba_h4", "FP-Mamba-H, r = 4", fp_blue, "householder", 4).model.convolution = true;
    return std::move(m).all();
}
void show_caps(const trained& t) {
    draw(capped_figure(t, lengths_of("2,4,8,16,32,64,128,256,512")), t.o, "mod-arith-max-iters");
}

/// The sources of Python's manual, of Debian's package python3.11-doc.
constexpr const char* default_files = "/usr/share/doc/python3.11/html/_sources";

void fill_in_text(options& o, fp::index steps) {
    if (!o.given.contains("--files")) {
        if (!std::filesystem::exists(default_files))
            throw fp::argument_error(
                std::string("--files: expected a file or a folder of text, or Debian's package "
                            "python3.11-doc, got nothing"));
        o.data.files = default_files;
        o.given["--files"] = default_files;
    }
    use_task(o, "text");
    const defaults use{o};
    use("--steps", o.training.steps, steps);
    use("--validate-every", o.validate_every, std::max<fp::index>(1, o.training.steps / 20));
    if (o.validate_every == 0)
        throw fp::argument_error("--validate-every: expected at least 1, which is what is drawn, got '0'");
    use("--test-sequences", o.test_sequences, 256);
    use("--test-lengths", o.test_lengths, {o.training.length});
}
void fill_in_language(options& o) {
    fill_in_text(o, 3000);
    defaults{o}("--layers", o.model.size.layers, 2);
}
/// The authors' sizes, tokens a step, steps and rate, for the text of --files, in bytes.
void paper_language(options& o) {
    const defaults use{o};
    use("--length", o.training.length, 2048);
    use("--batch", o.training.batch, 256);
    use("--d-model", o.model.size.d_model, 768);
    use("--d-inner", o.model.size.d_inner, 1536);
    use("--layers", o.model.size.layers, 12);
    use("--steps", o.training.steps, 4800);
    use("--learning-rate", o.training.optimiser.learning_rate, 4e-3);
    use("--weight-decay", o.training.optimiser.weight_decay, 0.1);
    use("--validate-every", o.validate_every, std::max<fp::index>(1, o.training.steps / 20));
    use("--test-lengths", o.test_lengths, {o.training.length});
    use_authors_iteration(o);
}
std::vector<member> of_language(const options& o) {
    members m(o);
    // At D = 64 Mamba has 102,320 parameters, FP-Mamba 107,872, 101,954 and 118,596.
    m.add_wide_baseline("published-mamba", "Mamba", diagonal_orange, o.model.size.layers, 2.125);
    m.add_fp_mamba("k", "FP-Mamba-K", kronecker_violet, "kronecker").model.convolution = true;
    m.add_fp_mamba("h1", "FP-Mamba-H, r = 1", blues[0], "householder", 1).model.convolution = true;
    m.add_fp_mamba("h2", "FP-Mamba-H, r = 2", blues[2], "householder", 2).model.convolution = true;
    return std::move(m).all();
}
void show_language(const trained& t) {
    draw(fp::picture("Bits per byte of text that was held back", validation_figures(t)), t.o, "lm-learning-curve");
}

void fill_in_language_iterations(options& o) {
    fill_in_text(o, 2000);
    const defaults use{o};
    use("--layers", o.model.size.layers, 4);
    use("--schedule", o.schedule.length, fp::whole_sequence);
    use("--tolerance", o.schedule.tolerance, 1e-2);
    use("--adjoint", o.one_step, true);
}
std::vector<member> of_language_iterations(const options& o) {
    members m(o);
    m.add_fp_mamba("h1", "FP-Mamba-H, r = 1", fp_blue, "householder", 1).model.convolution = true;
    return std::move(m).all();
}
void show_language_iterations(const trained& t) { draw(layers_figure(t), t.o, "fp-iters-lm"); }

void fill_in_catbabi(options& o) {
    use_task(o, "catbabi");
    const defaults use{o};
    use("--steps", o.training.steps, 12000);
    use("--test-sequences", o.test_sequences, 1 << 24);
}
void paper_catbabi(options& o) {
    const defaults use{o};
    use("--batch", o.training.batch, 256);
    use("--d-model", o.model.size.d_model, 512);
    use("--d-inner", o.model.size.d_inner, 1024);
    use("--steps", o.training.steps, 15000);
    use("--learning-rate", o.training.optimiser.learning_rate, 5e-4);
    use("--weight-decay", o.training.optimiser.weight_decay, 0);
    use_authors_iteration(o);
}
std::vector<member> of_catbabi(const options& o) {
    members m(o);
    for (const int layers : {1, 2}) {
        const std::string of_layers = "_" + std::to_string(layers), in_words = layers == 1 ? ", 1 layer" : ", 2 layers";
        m.add_baseline("published-mamba", "Mamba" + in_words, diagonal_orange, layers).out += of_layers;
        for (const auto& [folder, label, mixer, r] : {std::tuple("k", "FP-Mamba-K", "kronecker", 1),
                                                      {"h1", "FP-Mamba-H, r = 1", "householder", 1},
                                                      {"h2", "FP-Mamba-H, r = 2", "householder", 2}}) {
            options& one = m.add_fp_mamba(folder + of_layers, label + in_words, fp_blue, mixer, r);
            one.model.convolution = true;
            one.model.size.layers = layers;
        }
    }
    if (o.paper_size) m.add_baseline("published-mamba", "Mamba, 4 layers", diagonal_orange, 4).out += "_4";
    return std::move(m).all();
}

}  // namespace

const exhibit catalogue::catbabi{
    exhibit::kind::table,
    "catbabi",
    "tab. catbabi",
    "accuracy on questions about stories of bAbI, or of a generated world where --files is not given",
    43,
    fill_in_catbabi,
    paper_catbabi,
    of_catbabi,
    show_scores};
const exhibit catalogue::dependence{
    exhibit::kind::table,
    "h_t-1",
    "tab. h_t-1",
    "accuracy on the letters of copied strings of once and twice the length, by what sees y of the token before",
    32,
    fill_in_dependence,
    paper_dependence,
    of_dependence,
    show_scores};
const exhibit catalogue::copying{exhibit::kind::figure,
                                 "copying",
                                 "fig. copying",
                                 "accuracy on the letters of copied strings against their length, FP-Mamba-H beside "
                                 "Mamba, Mamba-2 and Gated DeltaNet",
                                 23,
                                 fill_in_copying,
                                 paper_copying,
                                 of_copying,
                                 show_copying};
const exhibit catalogue::parameters_of_copying{
    exhibit::kind::figure,
    "params-copying",
    "fig. params (b)",
    "accuracy on the letters of copied strings of twice the length against parameters",
    26,
    fill_in_copying_params,
    paper_copying_params,
    of_copying_sizes,
    show_copying_params};
const exhibit catalogue::arithmetic{
    exhibit::kind::table,
    "mod-arithm",
    "tab. mod-arithm",
    "scaled accuracy of modular arithmetic without products (--operators +-* has them), beside one answer for all",
    56,
    fill_in_table_of_arithmetic,
    paper_arithmetic,
    of_arithmetic,
    show_scores};
const exhibit catalogue::capped_iterations{exhibit::kind::figure,
                                           "mod-arith-max-iters",
                                           "fig. mod-arith-max-iters",
                                           "scaled accuracy of modular arithmetic against the most iterations in tests",
                                           14,
                                           fill_in_caps,
                                           paper_arithmetic,
                                           of_caps,
                                           show_caps};
const exhibit catalogue::language{exhibit::kind::figure,
                                  "lm-learning-curve",
                                  "fig. lm-learning-curve",
                                  "bits per byte against steps and against time, FP-Mamba beside Mamba",
                                  5,
                                  fill_in_language,
                                  paper_language,
                                  of_language,
                                  show_language};
const exhibit catalogue::language_iterations{exhibit::kind::figure,
                                             "fp-iters-lm",
                                             "fig. fp-iters-lm",
                                             "iterations of each layer while a language model is trained",
                                             4,
                                             fill_in_language_iterations,
                                             paper_language,
                                             of_language_iterations,
                                             show_language_iterations};

}  // namespace experiment
