#include "choices.hpp"
#include "options.hpp"
#include "readers.hpp"

#include <algorithm>
#include <initializer_list>

namespace experiment {

namespace {

using block = architecture::block;
using mixing = architecture::mixing;

bool is_one_of(block kind, std::initializer_list<block> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// Of these models with this mixer only some are compiled.
void check_compiled(const options& o) {
    const architecture& a = o.model;
    const bool fp_mamba2 = a.kind == block::fp_mamba2, is_gated = a.gate != architecture::gating::outside;
    if (!fp_mamba2 && !a.convolution && !is_gated) return;
    const std::string who = a.convolution ? "--convolution" : fp_mamba2 ? "fp-mamba2" : "a --gate inside";
    if (a.mixer != mixing::householder && a.mixer != mixing::kronecker)
        refuse("--mixer", "householder or kronecker with " + who, o.mixer_name);
    if (a.mixer != mixing::householder) return;
    if (a.reflections == 8 || (fp_mamba2 && a.reflections == 2))
        refuse("--reflections", (fp_mamba2 ? "1 or 4 with " : "1, 2 or 4 with ") + who, std::to_string(a.reflections));
    if (a.reflection_scale == 2) refuse("--reflection-scale", "1 with " + who, "2");
}

void check_mixer(const options& o) {
    const fp::index D = o.model.size.d_inner;
    switch (o.model.mixer) {
        case mixing::householder:
            if (o.model.reflections > D)
                refuse("--reflections", "at most --d-inner = " + std::to_string(D),
                       std::to_string(o.model.reflections));
            return;
        case mixing::dplr:
            if (D < architecture::dplr_directions)
                refuse("--mixer", "dplr with --d-inner of at least " + std::to_string(architecture::dplr_directions),
                       std::to_string(D));
            break;
        case mixing::block_diagonal:
            if (D % architecture::width_of_blocks != 0)
                refuse("--mixer",
                       "block-diagonal with --d-inner a multiple of " + std::to_string(architecture::width_of_blocks),
                       std::to_string(D));
            break;
        case mixing::kronecker: break;
    }
    for (const char* option : {"--reflections", "--reflection-scale"})
        if (o.given.contains(option)) refuse(option, "to stand with --mixer householder", "--mixer " + o.mixer_name);
    if (o.machine.cuda) refuse("--mixer", "householder with --device cuda", o.mixer_name);
}

/// Who sees y_{t−1} can be chosen of few models.
void check_dependence(const options& o) {
    const architecture& a = o.model;
    const architecture::dependence none{.lambda = false, .mixer = false, .b_c = false};
    if (a.sees_y == architecture::dependence{}) return;
    const std::string got = name_in(choices::dependences, a.sees_y);
    if (a.kind == block::fp_rnn) {
        if (!(a.sees_y == none)) refuse("--sees-y", "none or mixer+bc with fp-rnn", got);
        if (a.mixer != mixing::kronecker &&
            (a.mixer != mixing::householder || a.reflections != 4 || a.reflection_scale != 1))
            refuse("--sees-y", "none with --mixer kronecker, or householder with 4 reflections of scale 1",
                   o.mixer_name + " with " + std::to_string(a.reflections) + " of scale " +
                       std::to_string(a.reflection_scale));
    } else if (!a.convolution || a.mixer != mixing::householder || a.reflections != 4) {
        refuse("--sees-y", "mixer+bc, or --convolution with --mixer householder --reflections 4", got);
    }
    if (o.machine.cuda) refuse("--sees-y", "mixer+bc with --device cuda", got);
}

/// Where the gate stands can be chosen of few models.
void check_gate(const options& o) {
    const architecture& a = o.model;
    if (a.kind != block::fp_mamba && o.given.contains("--gate"))
        refuse("--gate", "to stand with --model fp-mamba", "--model " + o.model_name);
    if (a.gate == architecture::gating::outside) return;
    const std::string got = name_in(choices::gates, a.gate);
    if (a.convolution || !(a.sees_y == architecture::dependence{}))
        refuse("--gate", "outside with --convolution or --sees-y", got);
    if (o.machine.cuda) refuse("--gate", "outside with --device cuda", got);
}

constexpr const char* of_mixers = "to stand with --model fp-mamba, fp-mamba2 or fp-rnn";

/// What the model has not got would be ignored.
void check_heard(const options& o) {
    for (const char* option : {"--mixer-bias", "--reflections", "--reflection-scale"})
        if (!has_mixer(o.model) && o.given.contains(option)) refuse(option, of_mixers, "--model " + o.model_name);
    if (o.given.contains("--mixer-bias") && !mixer_has_gates(o.model))
        refuse("--mixer-bias", "to stand with --mixer kronecker or block-diagonal", "--mixer " + o.mixer_name);
    if (o.model.kind != block::transformer && o.given.contains("--context"))
        refuse("--context", "to stand with --model transformer", "--model " + o.model_name);
}

void check_model(const options& o) {
    const architecture& a = o.model;
    if (a.convolution && a.kind != block::fp_mamba)
        refuse("--convolution", "to stand with --model fp-mamba, because other models have or have not got one",
               "--model " + o.model_name);
    if (has_mixer(a)) {
        check_compiled(o);
        check_mixer(o);
    } else if (o.given.contains("--mixer")) {
        refuse("--mixer", of_mixers, "--model " + o.model_name);
    }
    check_dependence(o);
    check_gate(o);
    const bool slstm = a.kind == block::slstm;
    const fp::index channels = slstm ? a.size.d_model : a.size.d_inner;
    if (has_heads(a) && channels % a.size.heads != 0)
        refuse("--heads",
               (slstm ? "a divisor of --d-model = " : "a divisor of --d-inner = ") + std::to_string(channels),
               std::to_string(a.size.heads));
    if (a.kind == block::mlstm && channels % architecture::mlstm_rows != 0)
        refuse("--d-inner", "a multiple of " + std::to_string(architecture::mlstm_rows) + " with --model mlstm",
               std::to_string(channels));
    if (a.kind == block::transformer && a.size.d_inner / a.size.heads % 2 != 0)
        refuse(
            "--heads",
            "a number that gives each an even number of the channels of --d-inner = " + std::to_string(a.size.d_inner),
            std::to_string(a.size.heads));
    if (!has_heads(a) && o.given.contains("--heads"))
        refuse("--heads", "to stand with a model that has heads", "--model " + o.model_name);
    if (o.machine.cuda &&
        (a.convolution || !is_one_of(a.kind, {block::fp_mamba, block::fp_rnn, block::mamba, block::lstm})))
        refuse("--device", "cpu, because this model is the CPU's", "cuda");
    if (o.machine.tf32 && !o.machine.cuda) refuse("--tf32", "to stand with --device cuda", "--device cpu");
}

/// Rows that are made have room for the longest example.
void check_rows(const options& o, fp::index needed) {
    if (o.data.shortest > o.data.longest)
        refuse("--shortest", "at most --longest = " + std::to_string(o.data.longest), std::to_string(o.data.shortest));
    if (o.training.length < needed)
        refuse("--length", "at least " + std::to_string(needed) + ", which --longest needs",
               std::to_string(o.training.length));
}

void check_windows(const options& o) {
    using kind = data_options::kind;
    if (o.windows > 1) {
        if (o.data.task != kind::word_problem && o.data.task != kind::text)
            refuse("--windows", "to stand with --task word-problem or text", "--task " + o.task_name);
        if (o.machine.cuda) refuse("--windows", "1 with --device cuda", std::to_string(o.windows));
        constexpr fp::index most = fp::index{1} << 26;  // each has a target
        if (o.windows > most / o.training.length / o.training.batch)
            refuse("--windows",
                   "at most " + std::to_string(most) +
                       " tokens that are held, that is --windows times --length times --batch",
                   std::to_string(o.windows) + " times " + std::to_string(o.training.length) + " times " +
                       std::to_string(o.training.batch));
    } else if (o.given.contains("--windows-from")) {
        refuse("--windows-from", "to stand with --windows of at least 2", std::to_string(o.windows));
    }
}

void check_micro_batches(const options& o) {
    const auto& t = o.training;
    if (t.micro_batches > t.batch)
        refuse("--micro-batches", "at most --batch = " + std::to_string(t.batch), std::to_string(t.micro_batches));
    if (t.micro_batches > 1 && o.machine.cuda)
        refuse("--micro-batches", "1 with --device cuda", std::to_string(t.micro_batches));
}

void check_curriculum(const options& o) {
    using kind = data_options::kind;
    const fp::index first = o.training.first_length, length = o.training.length;
    if (first > length) refuse("--curriculum", "at most --length = " + std::to_string(length), std::to_string(first));
    if (first == length) {
        if (o.given.contains("--lengthen-at"))
            refuse("--lengthen-at", "to stand with a --curriculum that is shorter than --length", "none");
        return;
    }
    if (o.data.task != kind::word_problem && o.data.task != kind::arithmetic)
        refuse("--curriculum", "to stand with --task word-problem or arithmetic", "--task " + o.task_name);
    if (o.data.task == kind::arithmetic && first < 3)
        refuse("--curriculum", "at least 3 tokens, such as -1=", std::to_string(first));
}

void check_task(const options& o) {
    using kind = data_options::kind;
    check_windows(o);
    check_curriculum(o);
    check_micro_batches(o);
    if (o.data.begins && o.data.task != kind::word_problem)
        refuse("--begin-token", "to stand with --task word-problem", "--task " + o.task_name);
    if (o.restarts > 0 && o.data.task != kind::word_problem)
        refuse("--restarts", "to stand with --task word-problem", "--task " + o.task_name);
    if (o.tests_prefixes) {
        if (o.data.task != kind::word_problem)
            refuse("--test-prefixes", "to stand with --task word-problem", "--task " + o.task_name);
        if (!o.beginnings_are_sequences())
            refuse("--test-prefixes", "--schedule sequential, or --tolerance of at most 1e-4",
                   "--tolerance " + fp::detail::number_text(o.schedule.tolerance));
    }
    struct use {
        const char* option;
        std::initializer_list<kind> tasks;
        const char* expected;
    };
    for (const use& u :
         {use{"--group", {kind::word_problem}, "word-problem"}, use{"--operators", {kind::arithmetic}, "arithmetic"},
          use{"--test-shortest", {kind::arithmetic}, "arithmetic"},
          use{"--shortest", {kind::arithmetic, kind::copy}, "arithmetic or copy"},
          use{"--longest", {kind::arithmetic, kind::copy}, "arithmetic or copy"},
          use{"--files", {kind::text, kind::catbabi}, "text or catbabi"}})
        if (o.given.contains(u.option) && std::find(u.tasks.begin(), u.tasks.end(), o.data.task) == u.tasks.end())
            refuse(u.option, std::string("to stand with --task ") + u.expected, "--task " + o.task_name);
    if (o.data.task == kind::arithmetic || o.data.task == kind::copy) check_rows(o, tokens_of_longest(o.data));
    require_task(o);
    if (o.model.kind == block::transformer) {
        const fp::index most = longest_sequence(o);
        if (most > o.model.size.context)
            refuse("--context", "at least " + std::to_string(most) + ", the longest sequence",
                   std::to_string(o.model.size.context));
    }
}

}  // namespace

void check_together(const options& o) {
    check_model(o);
    check_task(o);
    check_heard(o);
    if (o.training.batch > most_tokens / o.training.length)
        refuse("--batch", "at most " + std::to_string(most_tokens) + " tokens a step, that is --batch times --length",
               std::to_string(o.training.batch) + " times " + std::to_string(o.training.length));
}

}  // namespace experiment
