#include "catalogue.hpp"
#include "choices.hpp"
#include "figures.hpp"
#include "members.hpp"
#include "readers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

/// The paper's exhibits on the word problem.
namespace experiment {

namespace {

void use_steps(options& o, fp::index steps) { defaults{o}("--steps", o.training.steps, steps); }

/// The authors' sizes, rate and data of A5 and S5 at T = 16; steps as many sequences as five epochs. How a
/// rate rises and falls and the limit of a gradient's norm stay this program's.
void paper_state_tracking(options& o) {
    const defaults use{o};
    use("--d-model", o.model.size.d_model, 512);
    use("--d-inner", o.model.size.d_inner, 1024);
    use("--batch", o.training.batch, 512);
    use("--steps", o.training.steps, 127000);
    use("--curriculum", o.training.first_length, o.training.length);
    use("--learning-rate", o.training.optimiser.learning_rate, 1e-4);
    use("--weight-decay", o.training.optimiser.weight_decay, 0.01);
    use_authors_iteration(o);
    use("--seeds", o.seeds, 3);
}

// --compare: what keeps the state right (docs/research/generalisation.md), windows of the training length
// that go on, a high rate, and another seed where one does not suffice; in FP-Mamba also one reflection and a
// gate in the loop that sees y. Where the time limit comes first, it is the same for all.
constexpr double compare_seconds = 180;
constexpr int compare_restarts = 1;
constexpr fp::index compare_steps = 16000;

void fill_in_comparison(options& o) {
    const defaults use{o};
    use("--steps", o.training.steps, compare_steps);
    use("--learning-rate", o.training.optimiser.learning_rate, 0.01);
    if (!o.machine.cuda) {
        use("--windows", o.windows, 64);
        if (o.windows > 1) use("--windows-from", o.windows_from, 0.2);
    }
    use("--time-limit", o.training.time_limit, compare_seconds);
    use("--restarts", o.restarts, compare_restarts);
    use("--test-lengths", o.test_lengths, lengths_of("4,8,16,32,64,128,256,512,1000"));
}
/// In the loop, where it sees y, of models that can be compiled so.
void use_gate(options& m) {
    const architecture& a = m.model;
    const bool can_have_one =
        !m.machine.cuda && !a.convolution && a.sees_y == architecture::dependence{} && a.reflection_scale == 1 &&
        a.reflections <= 4 &&
        (a.mixer == architecture::mixing::householder || a.mixer == architecture::mixing::kronecker);
    if (!can_have_one) return;
    const defaults use{m};
    use("--gate", m.model.gate, architecture::gating::inside_seeing_y);
    use("--reflections", m.model.reflections, 1);
}
std::vector<member> compared(const options& o) {
    members m(o);
    use_gate(m.add("fp_mamba", "FP-Mamba", fp_blue));
    for (const auto& [name, label, colour] :
         {std::array{"mamba", "Mamba", diagonal_orange}, std::array{"lstm", "LSTM", lstm_green}})
        m.add_baseline(name, label, colour, o.model.size.layers).training.optimiser = o.training.optimiser;
    return std::move(m).all();
}
void show_comparison(const trained& t) {
    auto models = by_member(t);
    std::reverse(models.begin(), models.end());  // what is drawn later lies above
    // Where a model is as good as the LSTM, which is what can be reached, both are seen.
    for (drawn& m : models) m.width = m.label.starts_with("LSTM") ? 8 : m.width;
    draw(accuracy_picture(t.o, models), t.o, "accuracy");
    draw(training_picture(t.o, models), t.o, "training");
}

/// Lengths of which all but the longest are beginnings of its sequences.
void test_beginnings(options& o, const char* range) {
    const defaults use{o};
    use("--test-lengths", o.test_lengths, lengths_of(range));
    use("--test-sequences", o.test_sequences, 512);
}

void use_beginnings(std::vector<member>& all) {
    for (member& one : all) {
        if (one.settings.tests_prefixes && !one.settings.beginnings_are_sequences())
            refuse("--test-prefixes", "--schedule sequential, or --tolerance of at most 1e-4",
                   "--tolerance " + fp::detail::number_text(one.settings.schedule.tolerance));
        one.settings.tests_prefixes = one.settings.beginnings_are_sequences();
    }
}
/// Refused where the iterations of each length are drawn, which beginnings do not have.
void refuse_beginnings(const options& o) {
    if (o.tests_prefixes) refuse("--test-prefixes", "to stand without " + job_of(o), "true");
}

/// Iterations are bounded in training alone.
void bound_training(options& o, int ell_max) {
    o.test_ell_max = o.test_ell_max.value_or(o.schedule.ell_max);
    o.schedule.ell_max = ell_max;
    o.draws_ell_max = false;
}

void fill_in_bounded(options& o) {
    test_beginnings(o, "2-50");
    const defaults use{o};
    use("--steps", o.training.steps, 24000);  // with one step of the adjoint it learns slowly
    use("--reflections", o.model.reflections, 1);
    use("--schedule", o.schedule.length, fp::whole_sequence);
    use("--adjoint", o.one_step, true);
}
/// Baselines have learnt what they learn after fewer steps.
void shorten_baselines(std::vector<member>& all) {
    for (member& one : all)
        if (!has_mixer(one.settings.model) && !one.settings.paper_size) use_steps(one.settings, 6000);
}
void add_bounded(members& m) {
    for (std::size_t i = 0; i < four_blues.size(); ++i) {
        const int ell_max = 2 << i;
        const std::string number = std::to_string(ell_max);
        bound_training(m.add("ell_max_" + number, "ℓ_{max} = " + number, four_blues[i]), ell_max);
    }
}
std::vector<member> interpolated(const options& o) {
    members m(o);
    add_bounded(m);
    m.add_baseline("lstm", "LSTM", lstm_green, 1);
    m.add_baseline("transformer", "Transformer", transformer_grey, 2);
    auto all = std::move(m).all();
    shorten_baselines(all);
    use_beginnings(all);
    return all;
}
void show_interpolation(const trained& t) {
    const auto models = by_member(t);
    draw(score_figure(t.o, models, "FP-Mamba on " + t.o.data.group + ", trained with at most ℓ_{max} iterations"), t.o,
         "interpolation");
    draw(training_picture(t.o, models), t.o, "training");
}

void fill_in_lmax_lstar(options& o) {
    refuse_beginnings(o);
    fill_in_bounded(o);
    defaults{o}("--test-lengths", o.test_lengths, lengths_of("2,4,8,12,16,20,24,28,32,36,40,44,48"));
}
std::vector<member> bounded(const options& o) {
    members m(o);
    add_bounded(m);
    return std::move(m).all();
}
/// Of which the paper has four runs.
void paper_lmax_lstar(options& o) {
    paper_state_tracking(o);
    defaults{o}("--seeds", o.seeds, 4);
}
void show_lmax_lstar(const trained& t) {
    const auto models = by_member(t);
    draw(fp::picture("FP-Mamba on " + t.o.data.group + ", trained with at most ℓ_{max} iterations",
                     {score_figure(t.o, models, "Accuracy"), both_iterations_figure(t.o, models)}),
         t.o, "interpolation-lmax-lstar");
}

void fill_in_train_time(options& o) {
    fill_in_bounded(o);
    defaults{o}("--test-lengths", o.test_lengths, lengths_of("2-96"));
}
/// Baselines of growing depth, and FP-Mamba with growing ℓ_max.
std::vector<member> of_train_times(const options& o) {
    members m(o);
    m.add_depths("published-mamba", "Mamba", diagonal_orange);
    m.add_depths("mamba2", "Mamba-2", light_orange);
    m.add_depths("gated-deltanet", "Gated DeltaNet", delta_red);
    for (const int ell_max : {2, 4, 8, 16})
        bound_training(m.add("ell_max_" + std::to_string(ell_max), "FP-Mamba, ℓ_{max} = 2, 4, 8, 16", fp_blue),
                       ell_max);
    options& drawn = m.add("gamma", "FP-Mamba, ℓ_{max} of Γ(4, 1)", blues[0]);
    bound_training(drawn, o.schedule.ell_max);
    drawn.draws_ell_max = true;
    auto all = std::move(m).all();
    shorten_baselines(all);
    use_beginnings(all);
    return all;
}
void show_train_time(const trained& t) {
    draw(train_time_figure(t, title_of(t.o.data) + ", trained on " + std::to_string(t.o.training.length) + " tokens"),
         t.o, "generalization-vs-train-time");
}

void fill_in_params(options& o) {
    const defaults use{o};
    use("--test-lengths", o.test_lengths, {o.training.length});
    use("--steps", o.training.steps, 6000);
}
/// FP-Mamba with 1, 2 and 4 reflections, and baselines of growing depth.
std::vector<member> of_many_sizes(const options& o) {
    members m(o);
    for (int i = 0; i < 3; ++i) {
        const int r = 1 << i;
        m.add_fp_mamba("fp_mamba_h" + std::to_string(r), "FP-Mamba-H", fp_blue, "householder", r);
    }
    m.add_depths("published-mamba", "Mamba", diagonal_orange);
    m.add_depths("mamba2", "Mamba-2", light_orange);
    m.add_depths("gated-deltanet", "Gated DeltaNet", delta_red);
    return std::move(m).all();
}
void show_params(const trained& t) {
    draw(parameters_figure(t, title_of(t.o.data) + " at T = " + std::to_string(t.o.test_lengths.back())), t.o,
         "params");
}

void fill_in_a5_s5(options& o) {
    test_beginnings(o, "2-50");
    defaults{o}("--steps", o.training.steps, 12000);
}
/// The members of each group, in a folder for each.
void add_in_groups(members& all, const options& o, const std::vector<std::string>& groups,
                   const std::function<void(members&)>& add) {
    for (const std::string& group : groups) {
        members of_group(o);
        add(of_group);
        auto its = std::move(of_group).all();
        use_beginnings(its);
        for (member& one : its) {
            one.settings.data.group = group;
            one.settings.out = o.out / group / one.settings.out.filename();
            all.add(std::move(one));
        }
    }
}
std::vector<member> of_both_groups(const options& o) {
    members m(o);
    add_in_groups(m, o, {"A5", "S5"}, [](members& of_group) {
        of_group.add_fp_mamba("k", "FP-Mamba-K", kronecker_violet, "kronecker");
        for (const int i : {0, 1, 2}) {
            const std::string r = std::to_string(1 << i);
            of_group.add_fp_mamba("h" + r, "FP-Mamba-H, r = " + r, blues[static_cast<std::size_t>(i)], "householder",
                                  1 << i);
        }
        of_group.add_fp_mamba("dplr", "FP-Mamba-DPLR, r = 4", dplr_teal, "dplr");
        of_group.add_baseline("published-mamba", "Mamba", diagonal_orange, 2);
        of_group.add_baseline("mamba2", "Mamba-2", light_orange, 2);
        of_group.add_baseline("gated-deltanet", "Gated DeltaNet", delta_red, 2);
        of_group.add_baseline("delta-product", "DeltaProduct, n_h = 4", light_red, 2);
        of_group.add_baseline("lstm", "LSTM", lstm_green, 1);
    });
    return std::move(m).all();
}
/// Scores of each group.
std::vector<fp::figure> figures_of_groups(const trained& t) {
    std::vector<fp::figure> figures;
    for (const std::string group : {"A5", "S5"}) {
        const auto models = by_member(t, [&](const member& m) { return m.settings.data.group == group; });
        if (!models.empty()) figures.push_back(score_figure(t.o, models, group));
    }
    return figures;
}
void show_a5_s5(const trained& t) {
    const auto figures = figures_of_groups(t);
    if (!figures.empty())
        draw(fp::picture("Trained on sequences of " + std::to_string(t.o.training.length) + " elements", figures), t.o,
             "fp-mamba-a5-s5");
}

void fill_in_fp_rnn(options& o) {
    if (const auto sees = o.given.find("--sees-y"); sees != o.given.end())
        refuse("--sees-y", "to stand without " + job_of(o) + ", which chooses it itself", sees->second);
    const defaults use{o};
    use("--test-lengths", o.test_lengths, lengths_of("2,4,8,12,16,20,24,28,32,36,40,44,48"));
    use("--test-sequences", o.test_sequences, 512);
    use("--steps", o.training.steps, 9000);
}
/// FP-RNN's mixers, which see h_{t−1} or not.
std::vector<member> of_fp_rnns(const options& o) {
    members m(o);
    for (const auto& [name, label, mixer, r, seen, unseen] :
         {std::tuple("h4", "H, r = 4", "householder", 4, blues[2], blues[0]),
          {"k", "K", "kronecker", 1, kronecker_violet, "#b79fd0"}})
        for (const bool sees : {true, false}) {
            options& one = m.add_fp_mamba(std::string(name) + (sees ? "" : "_of_x"),
                                          std::string("FP-RNN-") + label + (sees ? "" : ", Q of x alone"),
                                          sees ? seen : unseen, mixer, r);
            use_model(one, "fp-rnn");
            if (!sees) one.model.sees_y = {.lambda = false, .mixer = false, .b_c = false};
        }
    return std::move(m).all();
}
void show_fp_rnn_variants(const trained& t) {
    draw(score_figure(t.o, by_member(t), "FP-RNN on " + t.o.data.group), t.o, "fp-rnn-mixer-variants");
}
/// The paper's iterations are those of whole sequences.
void fill_in_fp_rnn_iterations(options& o) {
    refuse_beginnings(o);
    defaults{o}("--schedule", o.schedule.length, fp::whole_sequence);
    defaults{o}("--tolerance", o.schedule.tolerance, 0.1);
    defaults{o}("--adjoint", o.one_step, true);
    fill_in_fp_rnn(o);
}
void show_fp_rnn_iterations(const trained& t) {
    draw(both_iterations_figure(t.o, by_member(t)), t.o, "fp-rnn-number-iters");
}

void fill_in_two_solutions(options& o) {
    refuse_beginnings(o);
    const defaults use{o};
    use("--test-lengths", o.test_lengths, lengths_of("4,8,16,32,64,128"));
    use("--test-sequences", o.test_sequences, 128);
    use("--tolerance", o.schedule.tolerance, 1e-5);
}
std::vector<member> of_four_mixers(const options& o) {
    members m(o);
    m.add_fp_mamba("k", "FP-Mamba-K", kronecker_violet, "kronecker");
    for (const int i : {0, 1, 2}) {
        const std::string r = std::to_string(1 << i);
        m.add_fp_mamba("h" + r, "FP-Mamba-H, r = " + r, blues[static_cast<std::size_t>(i)], "householder", 1 << i);
    }
    return std::move(m).all();
}
void show_two_solutions(const trained& t) {
    const auto models = by_member(t);
    draw(fp::picture(title_of(t.o.data) + ": fixed points found token by token and all at once",
                     two_solutions_figures(t.o, models)),
         t.o, "seq-vs-parallel");
}

void fill_in_length_128(options& o) {
    const defaults use{o};
    use("--length", o.training.length, 128);
    use("--batch", o.training.batch, 32);
    use("--steps", o.training.steps, 6000);
    use("--test-lengths", o.test_lengths, lengths_of("2,4,8,16,32,64,96,128,192,256,384,512"));
    use("--test-sequences", o.test_sequences, 256);
    use("--mixer-bias", o.mixer_bias, 0.0);
}
void add_three_models(members& m) {
    m.add_fp_mamba("h1", "FP-Mamba-H, r = 1", blues[0], "householder", 1);
    m.add_fp_mamba("h4", "FP-Mamba-H, r = 4", blues[2], "householder", 4);
    m.add_fp_mamba("k", "FP-Mamba-K", kronecker_violet, "kronecker");
    for (const auto& [folder, mixer, label, colour, reflections] :
         {std::tuple("mamba2_h1", "householder", "FP-Mamba2-H, r = 1", greens[0], 1),
          {"mamba2_h4", "householder", "FP-Mamba2-H, r = 4", greens[1], 4},
          {"mamba2_k", "kronecker", "FP-Mamba2-K", greens[2], 1}}) {
        options& one = m.add_fp_mamba(folder, label, colour, mixer, reflections);
        use_model(one, "fp-mamba2");
        if (one.paper_size)
            use_paper_widths(one);
        else if (!one.given.contains("--ell-max"))
            // Some tokens take 100: with these half of the steps take nine times as long as all do with 20.
            bound_training(one, 20);
    }
    m.add_baseline("delta-product", "DeltaProduct, n_h = 4", delta_red, 1);
}
/// Of one group, and of both in the paper's size.
bool has_both_groups(const options& o) { return o.paper_size && !o.given.contains("--group"); }
std::vector<member> of_three_models(const options& o) {
    members m(o);
    if (has_both_groups(o))
        add_in_groups(m, o, {"A5", "S5"}, add_three_models);
    else
        add_three_models(m);
    return std::move(m).all();
}
void show_length_128(const trained& t) {
    const std::string trained_on = ", trained on sequences of " + std::to_string(t.o.training.length);
    if (has_both_groups(t.o))
        draw(fp::picture("State tracking" + trained_on, figures_of_groups(t)), t.o, "seqlen128");
    else
        draw(score_figure(t.o, by_member(t), title_of(t.o.data) + trained_on), t.o, "seqlen128");
}

}  // namespace

const exhibit catalogue::comparison{exhibit::kind::comparison,
                                    "compare",
                                    "",
                                    "FP-Mamba beside Mamba and LSTM, trained in windows that go on",
                                    7,
                                    fill_in_comparison,
                                    nullptr,
                                    compared,
                                    show_comparison};
const exhibit catalogue::interpolation{
    exhibit::kind::figure,
    "interpolation",
    "fig. interpolation",
    "accuracy against length, of FP-Mamba trained with at most 2, 4, 8 and 16 iterations, of LSTM and Transformer",
    17,
    fill_in_bounded,
    paper_state_tracking,
    interpolated,
    show_interpolation};
const exhibit catalogue::iterations_in_training{
    exhibit::kind::figure,
    "interpolation-lmax-lstar",
    "fig. interpolation-lmax-lstar",
    "accuracy and iterations against length, of FP-Mamba-H (r = 1) trained with at most 2, 4, 8 and 16",
    13,
    fill_in_lmax_lstar,
    paper_lmax_lstar,
    bounded,
    show_lmax_lstar};
const exhibit catalogue::parameters_of_a5{
    exhibit::kind::figure, "params",      "fig. params (a)", "accuracy on A5 against parameters", 20, fill_in_params,
    paper_state_tracking,  of_many_sizes, show_params};
const exhibit catalogue::train_time{
    exhibit::kind::figure,
    "generalization-vs-train-time",
    "fig. generalization-vs-train-time",
    "longest sequences with 90 % right against training time, of FP-Mamba's bounds and of baselines' depths",
    29,
    fill_in_train_time,
    paper_state_tracking,
    of_train_times,
    show_train_time};
const exhibit catalogue::a5_and_s5{exhibit::kind::figure,
                                   "fp-mamba-a5-s5",
                                   "fig. fp-mamba-a5-s5",
                                   "accuracy on A5 and on S5 against length, of FP-Mamba's mixers and the baselines",
                                   55,
                                   fill_in_a5_s5,
                                   paper_state_tracking,
                                   of_both_groups,
                                   show_a5_s5};
const exhibit catalogue::fp_rnn_variants{
    exhibit::kind::figure,
    "fp-rnn-mixer-variants",
    "fig. fp-rnn-mixer-variants",
    "accuracy on A5 against length, of FP-RNN's mixers that see h of the token before or not",
    7,
    fill_in_fp_rnn,
    paper_state_tracking,
    of_fp_rnns,
    show_fp_rnn_variants};
const exhibit catalogue::fp_rnn_iterations{
    exhibit::kind::figure,
    "fp-rnn-number-iters",
    "fig. fp-rnn-number-iters",
    "iterations of whole sequences (residual below 0.1) against length, of FP-RNN's mixers",
    6,
    fill_in_fp_rnn_iterations,
    paper_state_tracking,
    of_fp_rnns,
    show_fp_rnn_iterations};
const exhibit catalogue::two_solutions{
    exhibit::kind::figure,
    "seq-vs-parallel",
    "fig. seq-vs-parallel",
    "how far the fixed points found token by token and all at once are apart, and in how many tokens they are others",
    10,
    fill_in_two_solutions,
    paper_state_tracking,
    of_four_mixers,
    show_two_solutions};
const exhibit catalogue::length_128{
    exhibit::kind::figure,
    "seqlen128",
    "fig. seqlen128",
    "accuracy against length, of FP-Mamba, FP-Mamba2 and DeltaProduct trained at 128 tokens",
    46,
    fill_in_length_128,
    paper_state_tracking,
    of_three_models,
    show_length_128};

}  // namespace experiment
