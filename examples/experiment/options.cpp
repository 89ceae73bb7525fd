#include "exhibits.hpp"

#include <fprnn/core/terminal.hpp>
#include <fprnn/version.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>

namespace experiment {

namespace {

#define FPRNN_TEXT_OF(x) #x
#define FPRNN_TEXT(x) FPRNN_TEXT_OF(x)
constexpr const char* version =
    FPRNN_TEXT(FPRNN_VERSION_MAJOR) "." FPRNN_TEXT(FPRNN_VERSION_MINOR) "." FPRNN_TEXT(FPRNN_VERSION_PATCH);

/// The group that ./run compares on.
constexpr const char* default_group = "A5";
/// An LSTM's. At 0.003 it has not learnt A5 at 16 tokens after 2,500 steps, at 0.02 it has.
constexpr double lstm_learning_rate = 0.02;
constexpr fp::index most_tokens = 1 << 20;

[[noreturn]] void refuse(const std::string& option, const std::string& expected, const std::string& got) {
    throw fp::argument_error(option + ": expected " + expected + ", got '" + got + "'");
}

/// The whole text as a number, or nothing.
template <class N>
std::optional<N> number(std::string_view text) {
    N value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

struct whole {
    fp::index least = 1, most = fp::index{1} << 40;

    fp::index operator()(const std::string& option, const std::string& text) const {
        const auto value = number<fp::index>(text);
        if (!value || *value < least || *value > most)
            refuse(option, "a whole number from " + std::to_string(least) + " to " + std::to_string(most), text);
        return *value;
    }
};

double positive(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !std::isfinite(*value) || !(*value > 0)) refuse(option, "a positive number", text);
    return *value;
}

double not_negative(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !std::isfinite(*value) || !(*value >= 0)) refuse(option, "a number of at least 0", text);
    return *value;
}

/// "16,32,50-60": lengths and ranges of them, sorted.
std::vector<fp::index> lengths(const std::string& option, const std::string& text) {
    constexpr std::size_t most = 10000;
    const std::string expected = "at most " + std::to_string(most) + " lengths from 1 to " +
                                 std::to_string(most_tokens) + " such as 16,32,64 or ranges such as 2-50";
    std::set<fp::index> all;
    std::string_view rest = text;
    for (bool more = true; more;) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) rest.remove_prefix(comma + 1);
        const std::size_t dash = part.find('-');
        const auto first = number<fp::index>(part.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : number<fp::index>(part.substr(dash + 1));
        if (!first || !last || *first < 1 || *last < *first || *last > most_tokens) refuse(option, expected, text);
        for (fp::index n = *first; n <= *last; ++n)
            if (all.insert(n); all.size() > most) refuse(option, expected, text);
    }
    return {all.begin(), all.end()};
}

fp::index chunk_length(const std::string& option, const std::string& text) {
    if (text == "parallel") return fp::whole_sequence;
    if (text == "sequential") return 1;
    const auto value = number<fp::index>(text);
    if (!value || *value < 1) refuse(option, "parallel, sequential or a chunk length of at least 1 token", text);
    return *value;
}

void read_device(const std::string& option, const std::string& text, machine& on) {
    const std::string cuda = "cuda";
    on.cuda = text != "cpu";
    if (!on.cuda) return;
    const auto gpu = text == cuda                   ? std::optional(0)
                     : text.starts_with(cuda + ":") ? number<int>(std::string_view(text).substr(cuda.size() + 1))
                                                    : std::nullopt;
    if (!gpu || *gpu < 0) refuse(option, "cpu, cuda or cuda:N", text);
    if (!has_cuda) refuse(option, "cpu, because this program was built without CUDA", text);
    on.gpu = *gpu;
}

template <class V, std::size_t N>
V one_of(const std::string& option, const std::string& text, const std::pair<const char*, V> (&choices)[N]) {
    std::string expected;
    for (const auto& [name, value] : choices) {
        if (text == name) return value;
        expected += (expected.empty() ? "" : ", ") + std::string(name);
    }
    refuse(option, "one of " + expected, text);
}

const exhibit* exhibit_named(const std::string& option, const std::string& text) {
    std::string expected;
    for (const exhibit& e : exhibits()) {
        if (e.job != "--figure " + std::string(e.name)) continue;
        if (text == e.name) return &e;
        expected += (expected.empty() ? "" : ", ") + std::string(e.name);
    }
    refuse(option, "one of " + expected, text);
}

template <class V, std::size_t N>
std::string name_in(const std::pair<const char*, V> (&choices)[N], V value) {
    for (const auto& [name, other] : choices)
        if (other == value) return name;
    return {};
}
template <class V, std::size_t N>
std::string names_in(const std::pair<const char*, V> (&choices)[N]) {
    std::string all;
    for (std::size_t i = 0; i < N; ++i)
        all += (i == 0 ? "" : i + 1 < N ? ", " : " or ") + std::string(choices[i].first);
    return all;
}

bool has_mixer(const architecture& a) {
    return a.kind == architecture::block::fp_mamba || a.kind == architecture::block::fp_mamba2 ||
           a.kind == architecture::block::fp_rnn;
}
bool has_heads(const architecture& a) {
    return a.kind == architecture::block::fp_mamba2 || a.kind == architecture::block::mamba2 ||
           a.kind == architecture::block::delta_product || a.kind == architecture::block::gated_deltanet ||
           a.kind == architecture::block::transformer;
}

/// --help fits a terminal of 80 columns: the options' names in the first of them, their texts in the rest.
constexpr std::size_t help_columns = 80, name_columns = 26, text_columns = help_columns - name_columns;

std::string help_text(const std::string& text) { return fp::wrapped(text, text_columns); }

constexpr std::pair<const char*, data_options::kind> tasks[] = {{"word-problem", data_options::kind::word_problem},
                                                                {"arithmetic", data_options::kind::arithmetic},
                                                                {"text", data_options::kind::text}};
constexpr std::pair<const char*, bool> operators[] = {{"+-", false}, {"+-*", true}};
using block = architecture::block;
constexpr std::pair<const char*, block> models[] = {{"fp-mamba", block::fp_mamba},
                                                    {"fp-mamba2", block::fp_mamba2},
                                                    {"fp-rnn", block::fp_rnn},
                                                    {"mamba", block::mamba},
                                                    {"published-mamba", block::published_mamba},
                                                    {"mamba2", block::mamba2},
                                                    {"delta-product", block::delta_product},
                                                    {"gated-deltanet", block::gated_deltanet},
                                                    {"lstm", block::lstm},
                                                    {"transformer", block::transformer}};
constexpr std::pair<const char*, architecture::mixing> mixers[] = {
    {"householder", architecture::mixing::householder},
    {"dplr", architecture::mixing::dplr},
    {"kronecker", architecture::mixing::kronecker},
    {"block-diagonal", architecture::mixing::block_diagonal}};
constexpr std::pair<const char*, int> reflections[] = {{"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}};
constexpr std::pair<const char*, int> scales[] = {{"1", 1}, {"2", 2}};
constexpr std::pair<const char*, bool> adjoints[] = {{"one-step", true}, {"implicit", false}};

constexpr const char* description =
    "Trains a fixed-point recurrent network on the word problem of a finite group: read a sequence of elements and "
    "name the product so far after each. Writes config.json, metrics.csv, parameters.safetensors, accuracy.csv, "
    "summary.json and figures. Ctrl-C ends the training; the model is then evaluated and everything is written. A "
    "second Ctrl-C ends the program. With --checkpoint-every and --resume, whatever ends it costs no more than the "
    "steps since the last checkpoint, and the run goes on to the same numbers.";

void print_exhibits(std::ostream& printed) {
    for (const exhibit& e : exhibits()) {
        printed << e.job << (*e.source ? std::string("  (") + e.source + ")" : "") << "\n";
        std::string text = fp::wrapped(std::string(e.shows) + "; " + e.cost + " on two cores", help_columns - 4);
        for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) text.insert(at += 1, "    ");
        printed << "    " << text << "\n";
    }
}

/// Refuses an option that stands at the end or before another one and has no value. CLI11 takes whatever comes next for the
/// value, and then what follows that for an argument too many. What begins with "--" and is meant is written --out=--folder.
void require_values(const CLI::App& app, int argc, const char* const* argv) {
    const auto option_of = [&](const std::string& text) {
        return text.starts_with('-') ? app.get_option_no_throw(text) : nullptr;
    };
    for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i) {
        const std::string name = argv[i];
        const CLI::Option* option = option_of(name);
        if (!option || option->get_expected_min() == 0) continue;
        const std::string expected = name + ": expected a value, " + option->get_type_name() + ", got ";
        if (++i == argc) throw fp::argument_error(expected + "nothing");
        const std::string value = argv[i];
        if (value.starts_with("--") || option_of(value))
            throw fp::argument_error(expected + "the option '" + value.substr(0, value.find('=')) + "'");
    }
}

/// Defaults of the jobs, where the user was silent, and then what is left.
void fill_in(options& o) {
    const auto silent = [&](const char* option) { return !o.given.contains(option); };
    use_model(o, o.model_name);
    use_task(o, o.task_name);
    if (o.shown) o.shown->fill_in(o);
    if (o.test_lengths.empty()) o.test_lengths = lengths_of("16,32,64,128");
    if (o.data.task == data_options::kind::arithmetic && silent("--length"))
        o.training.length = std::max<fp::index>(o.data.longest, 5) - 2;
    if (silent("--curriculum")) o.training.first_length = std::min(o.training.first_length, o.training.length);
    o.training.warmup_steps = std::min<fp::index>(200, o.training.steps / 4);
}

/// What no option can say alone. Nothing is trained before all of it is known.
void check_together(const options& o) {
    const fp::index D = o.model.size.d_inner;
    const auto is = [&](std::initializer_list<block> kinds) {
        return std::find(kinds.begin(), kinds.end(), o.model.kind) != kinds.end();
    };
    const auto mixes_by = [&](architecture::mixing mixer) { return has_mixer(o.model) && o.model.mixer == mixer; };
    if (mixes_by(architecture::mixing::householder) && o.model.reflections > D)
        refuse("--reflections", "at most --d-inner = " + std::to_string(D), std::to_string(o.model.reflections));
    if (mixes_by(architecture::mixing::dplr) && architecture::dplr_directions > D)
        refuse("--mixer", "dplr with --d-inner of at least " + std::to_string(architecture::dplr_directions),
               std::to_string(D));
    if (mixes_by(architecture::mixing::block_diagonal) && D % architecture::width_of_blocks != 0)
        refuse("--mixer",
               "block-diagonal with --d-inner a multiple of " + std::to_string(architecture::width_of_blocks),
               std::to_string(D));
    if (!has_mixer(o.model) && o.given.contains("--mixer"))
        refuse("--mixer", "to stand with --model fp-mamba, fp-mamba2 or fp-rnn", "--model " + o.model_name);
    if (o.model.convolution && !is({block::fp_mamba}))
        refuse("--convolution", "to stand with --model fp-mamba, because other models have or have not got one",
               "--model " + o.model_name);
    const bool has_few_mixers = is({block::fp_mamba2}) || o.model.convolution;
    const std::string who = o.model.convolution ? "--convolution" : "fp-mamba2";
    if (has_few_mixers && o.model.mixer != architecture::mixing::householder &&
        o.model.mixer != architecture::mixing::kronecker)
        refuse("--mixer", "householder or kronecker with " + who, o.mixer_name);
    const bool has_reflections = mixes_by(architecture::mixing::householder);
    if (has_few_mixers && has_reflections &&
        (o.model.reflections == 8 || (is({block::fp_mamba2}) && o.model.reflections == 2)))
        refuse("--reflections", (o.model.convolution ? "1, 2 or 4 with " : "1 or 4 with ") + who,
               std::to_string(o.model.reflections));
    if (has_few_mixers && has_reflections && o.model.reflection_scale == 2)
        refuse("--reflection-scale", "1 with " + who, "2");
    if (has_heads(o.model) && D % o.model.size.heads != 0)
        refuse("--heads", "a divisor of --d-inner = " + std::to_string(D), std::to_string(o.model.size.heads));
    if (!has_heads(o.model) && o.given.contains("--heads"))
        refuse("--heads", "to stand with a model that has heads", "--model " + o.model_name);
    if (o.machine.cuda && (o.model.convolution || !is({block::fp_mamba, block::fp_rnn, block::mamba, block::lstm})))
        refuse("--device", "cpu, because this model is the CPU's", "cuda");
    if (has_mixer(o.model) && o.model.mixer != architecture::mixing::householder) {
        for (const char* option : {"--reflections", "--reflection-scale"})
            if (o.given.contains(option))
                refuse(option, "to stand with --mixer householder", "--mixer " + o.mixer_name);
        if (o.machine.cuda) refuse("--mixer", "householder with --device cuda", o.mixer_name);
    }
    for (const auto& [option, task] : {std::pair("--group", data_options::kind::word_problem),
                                       {"--operators", data_options::kind::arithmetic},
                                       {"--shortest", data_options::kind::arithmetic},
                                       {"--longest", data_options::kind::arithmetic},
                                       {"--files", data_options::kind::text}})
        if (o.data.task != task && o.given.contains(option))
            refuse(option, "to stand with --task " + name_in(tasks, task), "--task " + o.task_name);
    if (o.data.task == data_options::kind::arithmetic) {
        if (o.data.shortest > o.data.longest)
            refuse("--shortest", "at most --longest = " + std::to_string(o.data.longest),
                   std::to_string(o.data.shortest));
        const fp::index needed = std::max<fp::index>(o.data.longest, 5) - 2;
        if (o.training.length < needed)
            refuse("--length", "at least " + std::to_string(needed) + ", which rows of --longest have",
                   std::to_string(o.training.length));
    }
    if (o.data.task != data_options::kind::word_problem && o.training.first_length != o.training.length)
        refuse("--curriculum", "to stand with --task word-problem", "--task " + o.task_name);
    if (o.model.kind == block::transformer) {
        const fp::index most = std::max(o.training.length, o.test_lengths.back() + 1);
        if (most > o.model.size.context)
            refuse("--context", "at least " + std::to_string(most) + ", the longest sequence",
                   std::to_string(o.model.size.context));
    }
    if (o.machine.tf32 && !o.machine.cuda) refuse("--tf32", "to stand with --device cuda", "--device cpu");
    if (o.training.first_length > o.training.length)
        refuse("--curriculum", "at most --length = " + std::to_string(o.training.length),
               std::to_string(o.training.first_length));
    (void)make_task(o.data, o.seed_of_data());
    if (o.training.batch > most_tokens / o.training.length)
        refuse("--batch", "at most " + std::to_string(most_tokens) + " tokens a step, that is --batch times --length",
               std::to_string(o.training.batch) + " times " + std::to_string(o.training.length));
}

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
        case block::gated_deltanet: return "Gated DeltaNet";
        case block::lstm: return "LSTM";
        case block::transformer: return "Transformer";
    }
    return "";
}

std::optional<options> read_options(int argc, const char* const* argv, std::ostream& printed) {
    options o;
    CLI::App app(fp::wrapped(description, help_columns), "experiment");
    app.get_formatter()->column_width(name_columns);

    const auto add = [&](const std::string& name, const std::string& type, const std::string& text,
                         const std::string& default_text, auto&& read) {
        app.add_option_function<std::string>(
               name,
               [&o, name, read](const std::string& value) {
                   read(name, value);
                   o.given.insert(name);
               },
               help_text(text + (default_text.empty() ? "" : " [" + default_text + "]")))
            ->type_name(type)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    };
    // Each option reads its text into its place by a function that names it when it refuses.
    const auto into = [](auto& place, auto read) {
        return [&place, read](const std::string& name, const std::string& text) {
            place = static_cast<std::remove_reference_t<decltype(place)>>(read(name, text));
        };
    };
    const auto as_folder = [](const std::string& name, const std::string& text) {
        if (text.empty()) refuse(name, "a folder", text);
        return text;
    };
    const auto as_text = [](const std::string&, const std::string& text) { return text; };
    const auto choice = [](const auto& choices) {
        return [&choices](const std::string& name, const std::string& text) { return one_of(name, text, choices); };
    };

    auto& size = o.model.size;
    add("--task", "TASK", names_in(tasks), "word-problem", [&](const std::string& name, const std::string& text) {
        o.data.task = one_of(name, text, tasks);
        o.task_name = text;
    });
    add("--group", "GROUP", "of the word problem: S1 to S7, A1 to A7, Z1 to Z1000, or a product such as A4xZ5",
        default_group, into(o.data.group, as_text));
    add("--operators", "LIST", "of arithmetic: +-* or +-", "+-*", into(o.data.multiplies, choice(operators)));
    add("--shortest", "N", "of arithmetic: tokens of the shortest training rows, an expression and three more", "3",
        into(o.data.shortest, whole{1, 1 << 20}));
    add("--longest", "N", "of arithmetic: tokens of the longest training rows", "40",
        into(o.data.longest, whole{1, 1 << 20}));
    add("--files", "PATH", "of text: a file, or a folder of which a tenth of the files is held back for tests", "",
        into(o.data.files, as_folder));
    add("--model", "MODEL", names_in(models) + "; delta-product has 4 keys a token", "fp-mamba",
        [&](const std::string& name, const std::string& text) {
            o.model.kind = one_of(name, text, models);
            o.model_name = text;
        });
    add("--layers", "N", "residual blocks", "1", into(size.layers, whole{1, 1000}));
    add("--d-model", "N", "channels between blocks", "64", into(size.d_model, whole{1, 1 << 16}));
    add("--d-inner", "N", "channels inside of a block", "64", into(size.d_inner, whole{1, 1 << 16}));
    add("--d-state", "N", "rows of the matrix state (all but fp-rnn and lstm)", "16",
        into(size.d_state, whole{1, 1 << 12}));
    o.model.size.heads = 4;
    add("--heads", "H", "heads, which divide --d-inner (fp-mamba2, mamba2, delta-product, gated-deltanet, transformer)",
        "4", into(size.heads, whole{1, 1 << 12}));
    o.model.size.context = 1024;
    add("--context", "N", "tokens that a transformer has room for", "1024", into(size.context, whole{1, most_tokens}));
    app.add_flag(
        "--convolution", o.model.convolution,
        help_text("of fp-mamba: a short convolution, as the authors have it in all tasks but the word problem"));
    add("--mixer", "MIXER",
        "householder, dplr (4 directions; in fp-rnn rescaled to |I - Q| <= 0.9), kronecker or block-diagonal (blocks "
        "of 8 channels); of fp-mamba2 and with --convolution householder or kronecker",
        "householder", [&](const std::string& name, const std::string& text) {
            o.model.mixer = one_of(name, text, mixers);
            o.mixer_name = text;
        });
    add("--reflections", "R", "1, 2, 4 or 8 Householder reflections in Q, at most --d-inner", "4",
        into(o.model.reflections, choice(reflections)));
    add("--reflection-scale", "S", "1 (paper) or 2 (the authors' code) times sigmoid as the reflections' alpha", "1",
        into(o.model.reflection_scale, choice(scales)));

    add("--length", "T", "training length in tokens", "16", into(o.training.length, whole{1, most_tokens}));
    o.training.first_length = 2;
    add("--curriculum", "T",
        "tokens of the first sequences; they grow to --length as they are learnt, by three quarters of the training in "
        "any case. --length itself: no curriculum",
        "2", into(o.training.first_length, whole{1, most_tokens}));
    add("--batch", "B", "sequences a step of --length tokens; shorter ones are as many more", "128",
        into(o.training.batch, whole{1, most_tokens}));
    o.training.steps = 12000;
    add("--steps", "N", "training steps",
        "12000; compare: 8000 for FP-Mamba, 18000 in the same time for Mamba and LSTM",
        into(o.training.steps, whole{1}));
    add("--time-limit", "SECONDS",
        "training ends by then; the learning rate falls with the time when that is faster than with the steps",
        "none; compare: 120 for each model; interpolation: 240 for each curve", into(o.training.time_limit, positive));
    add("--learning-rate", "RATE",
        "peak of AdamW's rate, after 200 steps of warm-up (at most a quarter of --steps) and before a cosine decay",
        "0.003; lstm: 0.02", into(o.training.optimiser.learning_rate, positive));
    o.training.optimiser.weight_decay = 0.1;
    add("--weight-decay", "RATE", "of AdamW, for matrices; large ones keep the state right for longer", "0.1",
        into(o.training.optimiser.weight_decay, not_negative));

    add("--schedule", "HOW", "parallel (the whole sequence), sequential (token by token) or a chunk length in tokens",
        "sequential; interpolation: parallel", into(o.schedule.length, chunk_length));
    add("--tolerance", "TOL", "a fixed point is reached when its relative residual is below", "1e-4",
        into(o.schedule.tolerance, positive));
    add("--ell-max", "N", "most iterations for a chunk; interpolation: for tests only", "100",
        into(o.schedule.ell_max, whole{1, 1000000}));
    add("--adjoint", "HOW", "gradient: implicit (exact, solved to --tolerance) or one-step (the paper's practice)",
        "implicit; interpolation: one-step", into(o.one_step, choice(adjoints)));

    add("--test-lengths", "LIST", "lengths in tokens to evaluate at, such as 16,32,64 or 2-50",
        "16,32,64,128; compare: 4 to 512; interpolation: 2-50", into(o.test_lengths, lengths));
    add("--test-ell-max", "N", "most iterations for a chunk in tests", "--ell-max",
        [&](const std::string& name, const std::string& text) {
            o.test_ell_max = static_cast<int>(whole{1, 1000000}(name, text));
        });
    add("--test-sequences", "N", "sequences for each test length", "1024; interpolation: 512",
        into(o.test_sequences, whole{1, 1 << 24}));

    add("--seed", "N", "of parameters and data; equal seeds give equal bits for any --threads, unless time runs short",
        "0", into(o.seed, whole{0, std::numeric_limits<fp::index>::max() - 1}));
    auto& on = o.machine;
    on.threads = fp::eigen::default_threads();
    add("--threads", "N", "threads", "one a core: " + std::to_string(on.threads), into(on.threads, whole{1, 1024}));
    add("--device", "DEVICE", "cpu, cuda (the first GPU) or cuda:N", "cpu",
        [&](const std::string& name, const std::string& text) { read_device(name, text, on); });
    app.add_flag("--tf32", on.tf32,
                 help_text("a GPU's products may shorten their factors to 10 bits behind the point"));
    add("--out", "DIR", "folder for what is written; made when it is not there", "out", into(o.out, as_folder));

    add("--checkpoint-every", "N",
        "steps between checkpoints in --out, of which the last two are kept; one is also written when training ends or "
        "a signal ends it. 0: none",
        "0", into(o.checkpoint_every, whole{0}));
    app.add_flag(
        "--resume", o.resume,
        help_text("go on from the newest checkpoint in --out, with the same options; --threads, the number of a GPU, "
                  "--test-lengths, --test-sequences and --checkpoint-every may be others. Without a checkpoint, start "
                  "anew"));

    add("--seeds", "N", "trainings of each model of a figure, with seeds from --seed on; intervals are drawn", "1",
        into(o.seeds, whole{1, 1000}));
    bool compare = false;
    app.add_flag("--compare", compare, help_text("train FP-Mamba, Mamba and LSTM in turn and draw all three"));
    add("--figure", "NAME", "a figure of the paper; --list names all", "", into(o.shown, exhibit_named));
    bool list = false;
    app.add_flag("--list", list, help_text("name the figures, and what each costs"));
    app.set_version_flag("--version", std::string("fprnn ") + version);

    require_values(app, argc, argv);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {
        app.exit(e, printed, printed);
        return std::nullopt;
    } catch (const CLI::ExtrasError&) {
        auto rest = app.remaining();
        std::erase(rest, "--");
        refuse(rest.empty() ? "options" : rest.front(), "an option of --help", rest.empty() ? "--" : rest.front());
    } catch (const CLI::ParseError& e) {
        throw fp::argument_error(e.what());
    }
    if (list) {
        print_exhibits(printed);
        return std::nullopt;
    }
    if (compare) {
        if (o.shown) refuse("--figure", "to stand without --compare", "both");
        o.shown = &exhibits().front();
    }
    if (o.shown && o.model.kind != architecture::block::fp_mamba)
        refuse("--model", "fp-mamba, because --compare and --figure choose the models themselves", o.model_name);
    if (!o.shown && o.given.contains("--seeds")) refuse("--seeds", "to stand with --figure or --compare", "neither");
    fill_in(o);
    for (const options& one : models_of(o)) check_together(one);
    return o;
}

void use_task(options& o, const std::string& task) {
    const auto silent = [&](const char* option) { return !o.given.contains(option); };
    o.task_name = task;
    o.data.task = one_of("--task", task, tasks);
    switch (o.data.task) {
        case data_options::kind::word_problem:
            if (silent("--group")) o.data.group = default_group;
            return;
        case data_options::kind::arithmetic:
            if (silent("--test-lengths")) o.test_lengths = lengths_of("40,256");
            break;
        case data_options::kind::text:
            if (silent("--files")) refuse("--files", "a file or a folder of text", "nothing");
            if (silent("--length")) o.training.length = 128;
            if (silent("--batch")) o.training.batch = 16;
            if (silent("--test-lengths")) o.test_lengths = lengths_of("128,256");
            break;
    }
    if (silent("--curriculum")) o.training.first_length = std::numeric_limits<fp::index>::max();
}

void use_model(options& o, const std::string& model) {
    o.model_name = model;
    o.model.kind = one_of("--model", model, models);
    if (o.model.kind == architecture::block::lstm && !o.given.contains("--learning-rate"))
        o.training.optimiser.learning_rate = lstm_learning_rate;
}

void use_mixer(options& o, const std::string& mixer, int reflections_of) {
    o.mixer_name = mixer;
    o.model.mixer = one_of("--mixer", mixer, mixers);
    o.model.reflections = reflections_of;
}

std::vector<fp::index> lengths_of(const std::string& text) { return lengths("--test-lengths", text); }

std::vector<options> models_of(const options& o) {
    if (!o.shown) return {o};
    std::vector<options> all;
    for (member& m : members_of(o)) all.push_back(std::move(m.settings));
    return all;
}

std::string job_of(const options& o) { return o.shown ? o.shown->job : "a single model"; }

nlohmann::ordered_json to_json(const options& o) {
    const auto& t = o.training;
    nlohmann::ordered_json j;
    j["version"] = version;
    j["task"] = o.task_name;
    switch (o.data.task) {
        case data_options::kind::word_problem: j["group"] = o.data.group; break;
        case data_options::kind::arithmetic:
            j["operators"] = name_in(operators, o.data.multiplies);
            j["shortest"] = o.data.shortest;
            j["longest"] = o.data.longest;
            break;
        case data_options::kind::text: j["files"] = o.data.files; break;
    }
    j["model"] = o.model_name;
    j["layers"] = o.model.size.layers;
    j["d_model"] = o.model.size.d_model;
    j["d_inner"] = o.model.size.d_inner;
    j["d_state"] = o.model.size.d_state;
    if (has_heads(o.model)) j["heads"] = o.model.size.heads;
    if (o.model.kind == block::transformer) j["context"] = o.model.size.context;
    if (o.model.kind == block::fp_mamba) j["convolution"] = o.model.convolution;
    if (has_mixer(o.model)) {
        j["mixer"] = o.mixer_name;
        if (o.model.mixer == architecture::mixing::householder) {
            j["reflections"] = o.model.reflections;
            j["reflection_scale"] = o.model.reflection_scale;
        }
    }
    j["length"] = t.length;
    j["curriculum"] = t.first_length;
    j["batch"] = t.batch;
    j["steps"] = t.steps;
    j["time_limit"] = std::isfinite(t.time_limit) ? nlohmann::ordered_json(t.time_limit) : nullptr;
    j["learning_rate"] = t.optimiser.learning_rate;
    j["beta1"] = t.optimiser.beta1;
    j["beta2"] = t.optimiser.beta2;
    j["weight_decay"] = t.optimiser.weight_decay;
    j["warmup_steps"] = t.warmup();
    j["decay"] = "cosine";
    j["max_norm"] = t.max_norm;
    if (o.schedule.length == fp::whole_sequence)
        j["schedule"] = "parallel";
    else if (o.schedule.length == 1)
        j["schedule"] = "sequential";
    else
        j["schedule"] = o.schedule.length;
    j["tolerance"] = o.schedule.tolerance;
    j["ell_max"] = o.schedule.ell_max;
    j["adjoint"] = o.one_step ? "one-step" : "implicit";
    j["test_lengths"] = o.test_lengths;
    if (o.test_ell_max) j["test_ell_max"] = *o.test_ell_max;
    j["test_sequences"] = o.test_sequences;
    j["seed"] = o.seed;
    j["threads"] = o.machine.threads;
    if (o.machine.cuda) {
        j["device"] = "cuda";
        j["gpu"] = o.machine.gpu;
        j["tf32"] = o.machine.tf32;
    }
    j["out"] = o.out.string();
    j["checkpoint_every"] = o.checkpoint_every;
    return j;
}

nlohmann::ordered_json training_configuration(const options& o) {
    nlohmann::ordered_json j = to_json(o);
    for (const char* other :
         {"version", "test_lengths", "test_ell_max", "test_sequences", "threads", "gpu", "out", "checkpoint_every"})
        j.erase(other);
    return j;
}

}  // namespace experiment
