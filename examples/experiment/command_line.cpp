#include "choices.hpp"
#include "configuration.hpp"
#include "exhibits.hpp"
#include "readers.hpp"

#include <fprnn/core/terminal.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <ostream>
#include <string_view>

namespace experiment {

namespace {

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

const exhibit* exhibit_named(const std::string& option, const std::string& text, exhibit::kind kind) {
    std::string expected;
    for (const exhibit* e : exhibits()) {
        if (e->of != kind) continue;
        if (text == e->name) return e;
        expected += (expected.empty() ? "" : ", ") + std::string(e->name);
    }
    refuse(option, "one of " + expected, text);
}

/// --help fits a terminal of 80 columns: the options' names in the first of them, their texts in the rest.
constexpr std::size_t help_columns = 80, name_columns = 26, text_columns = help_columns - name_columns;

std::string help_text(const std::string& text) { return fp::wrapped(text, text_columns); }

constexpr const char* description =
    "Trains a recurrent network on a task of the paper, tests it on longer data, and draws how it did; or, with "
    "--figure "
    "and --table, all networks that one of the paper's figures and tables compares. Writes config.json, metrics.csv, "
    "parameters.safetensors, accuracy.csv, summary.json and pictures. Ctrl-C ends the training; the model is then "
    "evaluated and everything is written. A second Ctrl-C ends the program. With --checkpoint-every and --resume, "
    "whatever ends it costs no more than the steps since the last checkpoint, and the run goes on to the same numbers.";

void print_exhibits(std::ostream& printed) {
    printed << fp::wrapped("Times are those of two cores (an AMD EPYC), one seed and the default size.", help_columns)
            << "\n";
    for (const exhibit* e : exhibits()) {
        printed << job_of(*e) << (*e->source ? std::string("  (") + e->source + ")" : "") << "\n";
        const std::string minutes = e->minutes == 1 ? "a minute" : std::to_string(e->minutes) + " minutes";
        std::string text = fp::wrapped(e->shows + ("; about " + minutes), help_columns - 4);
        for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) text.insert(at += 1, "    ");
        printed << "    " << text << "\n";
    }
}

/// Refuses an option that stands at the end or before another one and has no value, and an empty one, --out=.
/// CLI11 takes whatever comes next for the value, and then what follows that for an argument too many. What
/// begins with "--" and is meant is written --out=--folder.
void require_values(const CLI::App& app, const std::vector<std::string>& arguments) {
    const auto option_of = [&](const std::string& text) {
        return text.starts_with('-') ? app.get_option_no_throw(text) : nullptr;
    };
    for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
        const std::string& name = arguments[i];
        if (name.size() > 3 && name.starts_with("--") && name.ends_with('='))  // --out=
            if (const CLI::Option* empty = option_of(name.substr(0, name.size() - 1)))
                if (empty->get_expected_min() > 0)
                    throw fp::argument_error(name.substr(0, name.size() - 1) + ": expected a value, " +
                                             empty->get_type_name() + ", got ''");
        if (const auto equals = name.find('='); name.starts_with("--") && equals != name.npos)
            if (const CLI::Option* flag = option_of(name.substr(0, equals)); flag && flag->get_expected_min() == 0)
                if (const std::string value = name.substr(equals + 1); value != "true" && value != "false")
                    refuse(name.substr(0, equals), "true or false, or nothing, behind it", value);
        const CLI::Option* option = option_of(name);
        if (!option || option->get_expected_min() == 0) continue;
        const std::string expected = name + ": expected a value, " + option->get_type_name() + ", got ";
        if (++i == arguments.size()) throw fp::argument_error(expected + "nothing");
        const std::string& value = arguments[i];
        if (value.starts_with("--") || option_of(value))
            throw fp::argument_error(expected + "the option '" + value.substr(0, value.find('=')) + "'");
    }
}

/// The last FILE of --config; none when there is none.
std::optional<std::string> configuration_file(const std::vector<std::string>& arguments) {
    std::optional<std::string> file;
    const std::string name = "--config", with_value = name + "=";
    for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
        if (arguments[i] == name && i + 1 < arguments.size()) file = arguments[i + 1];
        if (arguments[i].starts_with(with_value)) file = arguments[i].substr(with_value.size());
    }
    return file;
}

bool is_for_an_exhibit(const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    return name == "--figure" || name == "--table" || name == "--compare";
}
bool asks_for_an_exhibit(const std::vector<std::string>& arguments) {
    return std::any_of(arguments.begin(), arguments.end(), is_for_an_exhibit);
}

/// The options of the command line, each read into its place in `options`.
class command_line {
public:
    explicit command_line(options& o) : o_(o) {
        app_.get_formatter()->column_width(name_columns);
        add_task();
        add_model();
        add_training();
        add_solving();
        add_tests();
        add_running();
        add_job();
    }

    /// False when only help, the version or the list was asked for, which are then printed.
    bool read(std::vector<std::string> arguments, std::ostream& printed);

private:
    /// An option whose text is read by read(name, text), which names it when it refuses.
    template <class Read>
    void add(const std::string& name, const std::string& type, const std::string& text, const std::string& default_text,
             Read read) {
        app_.add_option_function<std::string>(
                name,
                [this, name, read](const std::string& value) {
                    read(name, value);
                    o_.given[name] = value;
                },
                help_text(text + (default_text.empty() ? "" : " [" + default_text + "]")))
            ->type_name(type)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    template <class Place, class Read>
    static auto into(Place& place, Read read) {
        return [&place, read](const std::string& name, const std::string& text) {
            place = static_cast<Place>(read(name, text));
        };
    }
    template <class Choices>
    static auto choice(const Choices& choices) {
        return [&choices](const std::string& name, const std::string& text) { return one_of(name, text, choices); };
    }
    static std::string as_text(const std::string&, const std::string& text) { return text; }
    static std::string as_folder(const std::string& name, const std::string& text) {
        if (text.empty()) refuse(name, "a folder", text);
        return text;
    }

    /// A name that checkpoints and JSON can hold.
    static std::string as_utf8(const std::string& name, const std::string& text) {
        const auto replaced = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore);
        if (nlohmann::json::parse(replaced) != text) refuse(name, "a name in UTF-8", text);
        return as_folder(name, text);
    }

    void add_task() {
        add("--task", "TASK", names_in(choices::tasks), "word-problem",
            [this](const std::string& name, const std::string& text) {
                o_.data.task = one_of(name, text, choices::tasks);
                o_.task_name = text;
            });
        add("--group", "GROUP", "of the word problem: S1 to S7, A1 to A7, Z1 to Z1000, or a product such as A4xZ5",
            "A5", into(o_.data.group, as_text));
        app_.add_flag("--begin-token", o_.data.begins,
                      help_text("of the word problem: a token before the elements, which is asked for, too, as the "
                                "authors have it; --length counts it, --test-lengths do not"));
        add("--operators", "LIST", "of arithmetic: +-* or +-", "+-*",
            into(o_.data.multiplies, choice(choices::operators)));
        add("--shortest", "N",
            "examples in training: of arithmetic in tokens, an expression and three more; of copy in letters",
            "3; copy: 5", into(o_.data.shortest, whole{1, 1 << 20}));
        add("--longest", "N", "examples in training, as for --shortest", "40; copy: 16",
            into(o_.data.longest, whole{1, 1 << 20}));
        add("--files", "PATH",
            "of text: a file, or a folder of which a tenth of the files is held back for tests; of catbabi: the folder "
            "en-valid-10k of the official data, without which stories are generated",
            "", into(o_.data.files, as_utf8));
    }

    void add_model() {
        auto& size = o_.model.size;
        add("--model", "MODEL",
            names_in(choices::models) + "; delta-product and gated-delta-product have 4 keys a token", "fp-mamba",
            [this](const std::string& name, const std::string& text) {
                o_.model.kind = one_of(name, text, choices::models);
                o_.model_name = text;
            });
        add("--layers", "N", "residual blocks", "1; figures and tables have their own",
            into(size.layers, whole{1, 1000}));
        add("--d-model", "N", "channels between blocks", "64", into(size.d_model, whole{1, 1 << 16}));
        add("--d-inner", "N", "channels inside of a block", "64", into(size.d_inner, whole{1, 1 << 16}));
        add("--d-state", "N", "rows of the matrix state, keys of the delta rule", "16; figures of copying: 32",
            into(size.d_state, whole{1, 1 << 12}));
        add("--heads", "H",
            "heads, which divide --d-inner, of slstm --d-model (fp-mamba2, mamba2, the delta rule, mlstm, slstm, "
            "transformer)",
            "4", into(size.heads, whole{1, 1 << 12}));
        add("--context", "N", "tokens that a transformer has room for", "those of the longest sequence",
            into(size.context, whole{1, most_tokens}));
        app_.add_flag(
            "--convolution", o_.model.convolution,
            help_text("of fp-mamba: a short convolution, as the authors have it in all tasks but the word problem"));
        add("--gate", "WHERE",
            names_in(choices::gates) +
                ": of fp-mamba, behind the fixed point, where it sees y of the token before (the authors' code), in it "
                "(the paper), or in it and seeing that y",
            "outside; compare: inside-sees-y", into(o_.model.gate, choice(choices::gates)));
        add("--mixer", "MIXER",
            "householder, dplr (4 directions; in fp-rnn rescaled to |I - Q| <= 0.9), kronecker or block-diagonal "
            "(blocks of 8 channels); of fp-mamba2, with --convolution and a --gate inside householder or kronecker",
            "householder", [this](const std::string& name, const std::string& text) {
                o_.model.mixer = one_of(name, text, choices::mixers);
                o_.mixer_name = text;
            });
        add("--mixer-bias", "B",
            "of kronecker and block-diagonal: the bias that the gates of their factors start with; 0 is half closed, 4 "
            "open",
            "0; kronecker on word problems: 4; figure seqlen128: 0",
            [this](const std::string& name, const std::string& text) { o_.mixer_bias = bias(name, text); });
        add("--sees-y", "WHICH",
            names_in(choices::dependences) +
                ": what depends on y of the token before. With --convolution and 4 reflections all of these, of fp-rnn "
                "none for a mixer that sees x alone",
            "mixer+bc", into(o_.model.sees_y, choice(choices::dependences)));
        add("--reflections", "R", "1, 2, 4 or 8 Householder reflections in Q, at most --d-inner", "4; compare: 1",
            into(o_.model.reflections, choice(choices::reflections)));
        add("--reflection-scale", "S", "1 (paper) or 2 (the authors' code) times sigmoid as the reflections' alpha",
            "1", into(o_.model.reflection_scale, choice(choices::scales)));
    }

    void add_training() {
        add("--length", "T", "training length in tokens",
            "16; text, figure seqlen128, table complexity: 128; catbabi: 200; arithmetic: as --longest needs; copy: "
            "twice that",
            into(o_.training.length, whole{1, most_tokens}));
        add("--curriculum", "T",
            "of word-problem and arithmetic: tokens of the first sequences, at least 3 of arithmetic; they grow to "
            "--length as they are learnt, by three quarters of the training in any case. --length itself: no "
            "curriculum",
            "2; table mod-arithm: 5; of other tasks --length", into(o_.training.first_length, whole{1, most_tokens}));
        add("--lengthen-at", "SHARE", "of sequences that have to be right before those of a curriculum grow by half",
            "0.5; arithmetic: 0.9", into(o_.training.lengthen_at, share_below_one));
        add("--windows", "N",
            "of word-problem and text, not with --device cuda: a sequence is N windows of --length tokens, each "
            "trained in a step of its own, from the state that the one before ended with; of a word problem it also "
            "ends with a window that has a mistake. 1: sequences are trained whole",
            "1; compare: 64", into(o_.windows, whole{1, most_tokens}));
        add("--windows-from", "SHARE",
            "of the training, before which sequences are one window; so are those of a curriculum that has not come to "
            "--length",
            "0.5; compare: 0.2", into(o_.windows_from, share));
        add("--batch", "B", "sequences a step of --length tokens; shorter ones are as many more",
            "128; copy, figure seqlen128, table complexity: 32; catbabi, text: 16",
            into(o_.training.batch, whole{1, most_tokens}));
        add("--micro-batches", "N",
            "parts of a batch that are computed one after the other, so that a step needs memory for one; not with "
            "--device cuda",
            "1", into(o_.training.micro_batches, whole{1, most_tokens}));
        add("--steps", "N", "training steps", "12000; figures have their own", into(o_.training.steps, whole{1}));
        add("--time-limit", "SECONDS",
            "training ends by then; the learning rate falls with the time when that is faster than with the steps",
            "none; compare: 180 for each model", into(o_.training.time_limit, positive));
        add("--learning-rate", "RATE",
            "peak of AdamW's rate, after 200 steps of warm-up (at most a quarter of --steps) and before a cosine decay",
            "0.003; lstm: 0.02; compare: 0.01", into(o_.training.optimiser.learning_rate, positive));
        add("--weight-decay", "RATE", "of AdamW, for matrices; large ones keep the state right for longer", "0.1",
            into(o_.training.optimiser.weight_decay, not_negative));
        add("--max-norm", "NORM", "longest gradient; a longer one is scaled to it, over all parameters. none: as it is",
            "1", into(o_.training.max_norm, norm_or_none));
        add("--label-smoothing", "SHARE", "of a label that all classes have equally in training", "0",
            into(o_.training.label_smoothing, share_below_one));
    }

    void add_solving() {
        add("--schedule", "HOW",
            "parallel (the whole sequence), sequential (token by token) or a chunk length in tokens",
            "sequential; some figures: parallel", into(o_.schedule.length, chunk_length));
        add("--tolerance", "TOL", "a fixed point is reached when its relative residual is below",
            "1e-4; figures of iterations have their own", into(o_.schedule.tolerance, positive));
        add("--ell-max", "N",
            "most iterations for a chunk; in figures that bound them for training, for tests only; gamma: in training "
            "that of a batch is drawn "
            "from Gamma(4, 1)",
            "100", [this](const std::string& name, const std::string& text) {
                o_.draws_ell_max = text == "gamma";
                if (!o_.draws_ell_max)
                    o_.schedule.ell_max = static_cast<int>(whole{1, 1000000, " or gamma"}(name, text));
            });
        add("--adjoint", "HOW", "gradient: implicit (exact, solved to --tolerance) or one-step (the paper's practice)",
            "implicit; copy, some figures: one-step", into(o_.one_step, choice(choices::adjoints)));
    }

    void add_tests() {
        add("--test-lengths", "LIST",
            "lengths to evaluate at, such as 16,32,64 or 2-50; in tokens, of copy in letters, of text in bytes",
            "16,32,64,128; other tasks and figures have their own", into(o_.test_lengths, lengths));
        add("--test-shortest", "N",
            "of arithmetic: shortest rows of a test, as --shortest counts, whose longest --test-lengths has", "40",
            into(o_.data.test_shortest, whole{1, most_tokens}));
        add("--test-ell-max", "N", "most iterations for a chunk in tests", "--ell-max",
            [this](const std::string& name, const std::string& text) {
                o_.test_ell_max = static_cast<int>(whole{1, 1000000}(name, text));
            });
        app_.add_flag("--test-prefixes", o_.tests_prefixes,
                      help_text("the beginnings of the longest test sequences stand for the shorter lengths"));
        add("--test-sequences", "N", "sequences for each test length", "1024; figures and tables have their own",
            into(o_.test_sequences, whole{1, 1 << 24}));
    }

    void add_running() {
        add("--seed", "N",
            "of parameters and data; equal seeds give equal bits for any --threads, unless time runs short", "0",
            into(o_.seed, whole{0, std::numeric_limits<fp::index>::max() - 1}));
        add("--restarts", "N",
            "of word-problem: at most so many trainings more, of other seeds, as long as fewer than 0.995 of new "
            "sequences of the longest of --test-lengths are right and --time-limit has room for one more. The best of "
            "them is the model; each is in a folder of --out",
            "0; compare: 1", into(o_.restarts, whole{0, 1000}));
        auto& on = o_.machine;
        on.threads = fp::eigen::default_threads();
        add("--threads", "N", "threads", "one a core: " + std::to_string(on.threads), into(on.threads, whole{1, 1024}));
        add("--device", "DEVICE", "cpu, cuda (the first GPU) or cuda:N", "cpu",
            [&on](const std::string& name, const std::string& text) { read_device(name, text, on); });
        app_.add_flag("--tf32", on.tf32,
                      help_text("a GPU's products may shorten their factors to 10 bits behind the point"));
        add("--out", "DIR", "folder for what is written; made when it is not there", "out", into(o_.out, as_folder));

        add("--checkpoint-every", "N",
            "steps between checkpoints in --out, of which the last two are kept; one is also written when training "
            "ends or "
            "a signal ends it. 0: none",
            "0; figures and tables: a tenth of --steps", into(o_.checkpoint_every, whole{0}));
        add("--validate-every", "N",
            "steps between tests of the first of --test-lengths while the model is trained, into validation.csv. 0: "
            "none",
            "0; "
            "figures of texts: a twentieth of --steps",
            into(o_.validate_every, whole{0}));
        app_.add_flag(
            "--resume", o_.resume,
            help_text(
                "go on from the newest checkpoint in --out, with the same options; --threads, the number of a GPU, all "
                "that begin with --test, --checkpoint-every, --validate-every and --seeds may be others. Without a "
                "checkpoint, start anew"));
    }

    void add_job() {
        add("--seeds", "N", "trainings of each model of a figure, with seeds from --seed on; intervals are drawn", "1",
            into(o_.seeds, whole{1, 1000}));

        app_.add_flag("--compare", compare_, help_text("train FP-Mamba, Mamba and LSTM in turn and draw all three"));
        add("--figure", "NAME", "a figure of the paper; --list names all", "",
            [this](const std::string& name, const std::string& text) {
                o_.shown = exhibit_named(name, text, exhibit::kind::figure);
            });
        add("--table", "NAME", "a table of the paper", "", [this](const std::string& name, const std::string& text) {
            o_.shown = exhibit_named(name, text, exhibit::kind::table);
        });
        app_.add_flag("--paper-size", o_.paper_size,
                      help_text("with --figure or --table: the paper's sizes, steps and seeds, which take days"));
        add("--config", "FILE",
            "options of a file such as the config.json that a run has written; those of the command line go before "
            "them. --out and --resume are never of a file",
            "", [](const std::string&, const std::string&) {});

        app_.add_flag("--list", list_, help_text("name figures and tables"));
        app_.set_version_flag("--version", std::string("fprnn ") + version);
    }

    options& o_;
    CLI::App app_{fp::wrapped(description, help_columns), "experiment"};
    bool compare_ = false, list_ = false;
};

bool command_line::read(std::vector<std::string> arguments, std::ostream& printed) {
    require_values(app_, arguments);
    if (const auto file = configuration_file(arguments)) {
        const auto takes_value = [this](const std::string& name) {
            const CLI::Option* option = app_.get_option_no_throw(name);
            return option ? std::optional(option->get_expected_min() > 0) : std::nullopt;
        };
        auto configured = arguments_of_file(*file, takes_value);
        // Who asks for another exhibit than the file does wants the file's options for it.
        if (asks_for_an_exhibit(arguments)) std::erase_if(configured, is_for_an_exhibit);
        arguments.insert(arguments.begin(), configured.begin(), configured.end());
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    try {
        app_.parse(arguments);
    } catch (const CLI::Success& e) {
        app_.exit(e, printed, printed);
        return false;
    } catch (const CLI::ExtrasError&) {
        auto rest = app_.remaining();
        std::erase(rest, "--");
        refuse(rest.empty() ? "options" : rest.front(), "an option of --help", rest.empty() ? "--" : rest.front());
    } catch (const CLI::ParseError& e) {
        throw fp::argument_error(e.what());
    }
    if (o_.given.contains("--figure") && o_.given.contains("--table"))
        refuse("--table", "to stand without --figure", o_.given.at("--table"));
    if (list_) print_exhibits(printed);
    if (compare_) {
        if (o_.shown) refuse("--compare", "to stand alone", job_of(*o_.shown));
        o_.shown = exhibits().front();
    }
    return !list_;
}

/// What was given and is otherwise in a member, an exhibit chooses itself; what none of them has says
/// nothing.
void require_heard(const options& o, const std::vector<options>& all) {
    if (!o.shown) return;
    // Those of the job, and --d-inner, of which baselines have more.
    constexpr std::string_view elsewhere[] = {"out",   "seed",   "seeds",  "threads", "figure",
                                              "table", "config", "device", "d_inner"};
    const auto asked = to_json(o);
    std::vector<nlohmann::ordered_json> members;
    members.reserve(all.size());
    for (const options& one : all) members.push_back(to_json(one));
    const auto has = [](const auto& one, const std::string& key) { return one.contains(key); };
    const auto refuse_where = [&](const auto& is_wrong, const std::string& expected, const auto& got) {
        for (const auto& [option, text] : o.given) {
            const std::string key = key_of(option);
            if (std::find(std::begin(elsewhere), std::end(elsewhere), key) == std::end(elsewhere) &&
                is_wrong(key, text))
                refuse(option, expected, got(text));
        }
    };
    const auto is_chosen = [&](const std::string& key, const std::string& text) {
        return std::any_of(members.begin(), members.end(), [&](const auto& one) {
            if (!has(one, key)) return false;
            if (!has(asked, key)) return as_typed(one[key].dump()) != text;
            const bool in_tests = key == "ell_max" && has(one, "test_ell_max") && one["test_ell_max"] == asked[key];
            return one[key] != asked[key] && !in_tests;
        });
    };
    const auto is_of_none = [&](const std::string& key, const std::string&) {
        const bool is_default = !has(asked, key) && std::any_of(std::begin(seldom), std::end(seldom),
                                                                [&](const auto& one) { return one.key == key; });
        return !is_default &&
               std::none_of(members.begin(), members.end(), [&](const auto& one) { return has(one, key); });
    };
    refuse_where(is_chosen, "to stand without " + job_of(o) + ", which chooses it itself",
                 [](const std::string& text) { return text; });
    refuse_where(is_of_none, "to stand with a job that has a model or a task with it",
                 [&](const std::string&) { return job_of(o); });
}

/// What an exhibit chooses itself, and what only an exhibit has.
void require_job(const options& o) {
    const std::string exhibit_options = "--compare, --figure or --table";
    if (!o.shown) {
        if (o.given.contains("--seeds")) refuse("--seeds", "to stand with " + exhibit_options, "neither");
        if (o.paper_size) refuse("--paper-size", "to stand with --figure or --table", "neither");
        return;
    }
    for (const char* option : {"--task", "--model", "--mixer"})
        if (o.given.contains(option) && !(o.shown->of == exhibit::kind::comparison && option == std::string("--mixer")))
            refuse(option, "to stand without " + exhibit_options + ", which choose it themselves", o.given.at(option));
    if (o.paper_size && !o.shown->paper_size)
        refuse("--paper-size", "an exhibit that has a size in the paper", job_of(*o.shown));
}

}  // namespace

std::optional<options> read_options(int argc, const char* const* argv, std::ostream& printed) {
    options o;
    if (!command_line(o).read({argv + std::min(argc, 1), argv + argc}, printed)) return std::nullopt;
    require_job(o);
    fill_in(o);
    require_configuration(o);
    const auto all = models_of(o);
    require_heard(o, all);
    for (const options& one : all) check_together(one);
    if (!o.data.files.empty()) o.data.contents = contents_of(o.data);
    return o;
}

}  // namespace experiment
