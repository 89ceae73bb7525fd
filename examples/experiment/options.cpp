#include "choices.hpp"
#include "exhibits.hpp"
#include "readers.hpp"

#include <algorithm>
#include <limits>

namespace experiment {

namespace {

using block = architecture::block;

/// The group that ./run compares on.
constexpr const char* default_group = "A5";
/// An LSTM's. At 0.003 it has not learnt A5 at 16 tokens after 2,500 steps, at 0.02 it has.
constexpr double lstm_learning_rate = 0.02;

}  // namespace

const char* name_of(architecture::block kind) {
    switch (kind) {
        case block::fp_mamba: return "FP-Mamba";
        case block::fp_mamba2: return "FP-Mamba2";
        case block::fp_rnn: return "FP-RNN";
        case block::mamba: return "Mamba";
        case block::published_mamba: return "Mamba as published";
        case block::mamba2: return "Mamba-2";
        case block::delta_product: return "DeltaProduct";
        case block::deltanet: return "DeltaNet";
        case block::gated_deltanet: return "Gated DeltaNet";
        case block::gated_delta_product: return "Gated DeltaProduct";
        case block::lstm: return "LSTM";
        case block::mlstm: return "mLSTM";
        case block::slstm: return "sLSTM";
        case block::transformer: return "Transformer";
    }
    return "";
}

void fill_in(options& o) {
    const auto silent = [&](const char* option) { return !o.given.contains(option); };
    use_model(o, o.model_name);
    use_task(o, o.task_name);
    if (o.shown) o.shown->fill_in(o);
    if (o.paper_size) o.shown->paper_size(o);
    if (silent("--curriculum")) o.training.first_length = std::min(o.training.first_length, o.training.length);
    if (o.windows > 1)
        o.training.state_passing = {.windows = o.windows,
                                    .from = o.windows_from,
                                    .ends_when_wrong = o.data.task == data_options::kind::word_problem};
    give_room(o);
    // What takes up to an hour goes on where it was ended.
    if (o.shown && o.shown->of != exhibit::kind::comparison && silent("--checkpoint-every"))
        o.checkpoint_every = std::max<fp::index>(1, o.training.steps / 10);
    o.training.warmup_steps = std::min<fp::index>(200, o.training.steps / 4);
}

fp::index longest_sequence(const options& o) {
    return std::max(o.windows * o.training.length, tokens_of_test(o.data, o.test_lengths.back()));
}
void give_room(options& o) {
    if (o.model.kind == architecture::block::transformer)
        defaults{o}("--context", o.model.size.context, longest_sequence(o));
}

void use_task(options& o, const std::string& task) {
    o.task_name = task;
    o.data.task = one_of("--task", task, choices::tasks);
    const defaults use{o};
    if (o.data.task != data_options::kind::word_problem)
        use("--curriculum", o.training.first_length, fp::training_options{}.first_length);  // none
    switch (o.data.task) {
        case data_options::kind::word_problem:
            use("--group", o.data.group, default_group);
            use("--test-lengths", o.test_lengths, lengths_of("16,32,64,128"));
            break;
        case data_options::kind::copy:
            use("--shortest", o.data.shortest, 5);
            use("--longest", o.data.longest, 16);
            use("--length", o.training.length, 2 * tokens_of_longest(o.data));
            use("--batch", o.training.batch, 32);
            use("--adjoint", o.one_step, has_mixer(o.model));  // docs/decisions/0023
            use("--test-lengths", o.test_lengths, lengths_of("4,8,12,16,20,24,28,32"));
            break;
        case data_options::kind::arithmetic:
            use("--shortest", o.data.shortest, 3);
            use("--longest", o.data.longest, 40);
            use("--length", o.training.length, tokens_of_longest(o.data));
            use("--lengthen-at", o.training.lengthen_at, 0.9);
            use("--test-lengths", o.test_lengths, lengths_of("40,256"));
            break;
        case data_options::kind::catbabi:
            use("--length", o.training.length, 200);
            use("--batch", o.training.batch, 16);
            use("--test-lengths", o.test_lengths, lengths_of("200"));
            break;
        case data_options::kind::text:
            if (!o.given.contains("--files")) refuse("--files", "a file or a folder of text", "nothing");
            use("--length", o.training.length, 128);
            use("--batch", o.training.batch, 16);
            use("--test-lengths", o.test_lengths, lengths_of("128,256"));
            break;
    }
}

void use_model(options& o, const std::string& model) {
    o.model_name = model;
    o.model.kind = one_of("--model", model, choices::models);
    if (o.model.kind == block::lstm && !o.paper_size)  // the paper has one rate for all
        defaults{o}("--learning-rate", o.training.optimiser.learning_rate, lstm_learning_rate);
}

void use_mixer(options& o, const std::string& mixer, int reflections_of) {
    o.mixer_name = mixer;
    o.model.mixer = one_of("--mixer", mixer, choices::mixers);
    o.model.reflections = reflections_of;
}

std::vector<fp::index> lengths_of(const std::string& text) { return lengths("--test-lengths", text); }

std::vector<options> models_of(const options& o) {
    if (!o.shown) return {o};
    std::vector<options> all;
    for (member& m : members_of(o)) all.push_back(std::move(m.settings));
    return all;
}

std::filesystem::path attempt_folder(const std::filesystem::path& out, int k) {
    return out / ("attempt_" + std::to_string(k));
}

std::vector<options> attempts_of(const options& o) {
    if (o.restarts == 0) return {o};
    std::vector<options> all;
    for (int k = 0; k <= o.restarts; ++k) {
        options& one = all.emplace_back(o);
        one.restarts = 0;
        one.seed += static_cast<std::uint64_t>(k) << 32;  // far from those of --seeds
        one.out = attempt_folder(o.out, k + 1);
    }
    return all;
}

std::string job_of(const options& o) { return o.shown ? job_of(*o.shown) : "a single model"; }

}  // namespace experiment
