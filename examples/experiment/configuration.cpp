#include "configuration.hpp"

#include "choices.hpp"
#include "exhibits.hpp"
#include "readers.hpp"

#include <fprnn/io/files.hpp>
#include <fprnn/io/read_file.hpp>
#include <fprnn/version.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

namespace experiment {

#define FPRNN_TEXT_OF(x) #x
#define FPRNN_TEXT(x) FPRNN_TEXT_OF(x)
const char* const version =
    FPRNN_TEXT(FPRNN_VERSION_MAJOR) "." FPRNN_TEXT(FPRNN_VERSION_MINOR) "." FPRNN_TEXT(FPRNN_VERSION_PATCH);

using json = nlohmann::ordered_json;

void write_json(const std::filesystem::path& path, const json& j) {
    fp::write_file(path, j.dump(4, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string key_of(const std::string& option) {
    std::string key = option.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
}

std::string as_typed(std::string text) {
    if (text == "null") return "none";
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

json to_json(const options& o) {
    const auto& t = o.training;
    json j;
    j["version"] = version;
    j["task"] = o.task_name;
    switch (o.data.task) {
        case data_options::kind::word_problem:
            j["group"] = o.data.group;
            if (o.data.begins) j["begin_token"] = true;
            break;
        case data_options::kind::arithmetic:
            j["operators"] = name_in(choices::operators, o.data.multiplies);
            j["shortest"] = o.data.shortest;
            j["longest"] = o.data.longest;
            break;
        case data_options::kind::copy:
            j["shortest"] = o.data.shortest;
            j["longest"] = o.data.longest;
            break;
        case data_options::kind::catbabi:
            if (!o.data.files.empty()) j["files"] = o.data.files;
            break;
        case data_options::kind::text: j["files"] = o.data.files; break;
    }
    j["model"] = o.model_name;
    j["layers"] = o.model.size.layers;
    j["d_model"] = o.model.size.d_model;
    j["d_inner"] = o.model.size.d_inner;
    j["d_state"] = o.model.size.d_state;
    if (has_heads(o.model)) j["heads"] = o.model.size.heads;
    if (o.model.kind == architecture::block::transformer) j["context"] = o.model.size.context;
    if (o.model.kind == architecture::block::fp_mamba) j["convolution"] = o.model.convolution;
    if (o.model.gate != architecture::gating::outside) j["gate"] = name_in(choices::gates, o.model.gate);
    if (!(o.model.sees_y == architecture::dependence{})) j["sees_y"] = name_in(choices::dependences, o.model.sees_y);
    if (has_mixer(o.model)) {
        j["mixer"] = o.mixer_name;
        if (o.model.mixer == architecture::mixing::householder) {
            j["reflections"] = o.model.reflections;
            j["reflection_scale"] = o.model.reflection_scale;
        }
        if (mixer_has_gates(o.model)) j["mixer_bias"] = o.start_of_gates();
    }
    j["length"] = t.length;
    j["curriculum"] = t.first_length;
    if (t.first_length < t.length &&
        (o.data.task == data_options::kind::arithmetic || t.lengthen_at != fp::training_options{}.lengthen_at))
        j["lengthen_at"] = t.lengthen_at;
    if (t.state_passing) {
        j["windows"] = t.state_passing->windows;
        j["windows_from"] = t.state_passing->from;
    }
    j["batch"] = t.batch;
    j["steps"] = t.steps;
    j["time_limit"] = std::isfinite(t.time_limit) ? json(t.time_limit) : nullptr;
    j["learning_rate"] = t.optimiser.learning_rate;
    j["beta1"] = t.optimiser.beta1;
    j["beta2"] = t.optimiser.beta2;
    j["weight_decay"] = t.optimiser.weight_decay;
    j["warmup_steps"] = t.warmup();
    j["decay"] = "cosine";
    j["max_norm"] = std::isfinite(t.max_norm) ? json(t.max_norm) : json("none");
    if (t.micro_batches > 1) j["micro_batches"] = t.micro_batches;
    if (t.label_smoothing > 0) j["label_smoothing"] = t.label_smoothing;
    if (o.schedule.length == fp::whole_sequence)
        j["schedule"] = "parallel";
    else if (o.schedule.length == 1)
        j["schedule"] = "sequential";
    else
        j["schedule"] = o.schedule.length;
    j["tolerance"] = o.schedule.tolerance;
    if (o.draws_ell_max)
        j["ell_max"] = "gamma";
    else
        j["ell_max"] = o.schedule.ell_max;
    j["adjoint"] = o.one_step ? "one-step" : "implicit";
    j["test_lengths"] = o.test_lengths;
    if (o.data.task == data_options::kind::arithmetic) j["test_shortest"] = o.data.test_shortest;
    if (o.test_ell_max) j["test_ell_max"] = *o.test_ell_max;
    if (o.tests_prefixes) j["test_prefixes"] = true;
    j["test_sequences"] = o.test_sequences;
    j["seed"] = o.seed;
    if (o.restarts > 0) j["restarts"] = o.restarts;
    j["threads"] = o.machine.threads;
    if (o.machine.cuda) {
        j["device"] = "cuda";
        j["gpu"] = o.machine.gpu;
        j["tf32"] = o.machine.tf32;
    }
    j["out"] = o.out.string();
    j["checkpoint_every"] = o.checkpoint_every;
    j["validate_every"] = o.validate_every;
    return j;
}

json training_configuration(const options& o) {
    json j = to_json(o);
    for (const char* other : {"version", "context", "test_lengths", "test_shortest", "test_ell_max", "test_prefixes",
                              "test_sequences", "threads", "gpu", "out", "checkpoint_every", "validate_every"})
        j.erase(other);
    if (!o.data.contents.empty()) j[contents_key] = o.data.contents;
    return j;
}

json given_json(const options& o) {
    json j = json::object();
    if (o.shown && o.shown->of == exhibit::kind::comparison) j["compare"] = true;
    if (o.paper_size) j["paper_size"] = true;
    for (const auto& [option, text] : o.given) {
        if (option == "--out" || option == "--config") continue;
        j[key_of(option)] = text;
    }
    if (o.data.begins) j["begin_token"] = true;
    if (o.model.convolution) j["convolution"] = true;
    if (o.tests_prefixes) j["test_prefixes"] = true;
    if (o.machine.tf32) j["tf32"] = true;
    return j;
}

namespace {

/// What the program writes beside the options, and where: nobody asks for these.
constexpr std::string_view said_beside[] = {"version", "job", "out", "gpu"};
constexpr std::string_view of_command_line[] = {"--config", "--resume", "--help", "--version", "--list"};
constexpr std::string_view constants[] = {"beta1", "beta2", "warmup_steps", "decay"};

template <std::size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
    return std::find(names, names + N, name) != names + N;
}

json read_json(const std::string& path) {
    constexpr std::uintmax_t most_bytes = 1 << 20;
    std::string text;
    try {
        text = fp::read_file(path, most_bytes);
    } catch (const std::runtime_error& e) {
        throw fp::argument_error(std::string("--config: ") + e.what());
    }
    json j;
    try {
        j = json::parse(text);
    } catch (const json::parse_error& e) {
        const std::string_view read = std::string_view(text).substr(0, e.byte > 0 ? e.byte - 1 : 0);
        const auto line = std::count(read.begin(), read.end(), '\n') + 1;
        const std::size_t column = read.size() - (read.rfind('\n') + 1) + 1;
        refuse("--config", "JSON in " + path,
               "what is none in line " + std::to_string(line) + ", column " + std::to_string(column));
    }
    if (!j.is_object()) refuse("--config", "an object of JSON in " + path, j.type_name());
    return j;
}

/// As it is typed behind the option.
std::string typed(const std::string& option, const json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number() || value.is_boolean()) return value.dump();
    const auto other = [&](const std::string& got) {
        refuse("--config", "a text, a number, true, false or a list of these for " + option, got);
    };
    if (!value.is_array()) other(value.is_object() ? "an object" : value.dump());
    std::string list;
    for (const json& one : value) {
        if (one.is_structured()) other("a list in a list, or an object");
        list += (list.empty() ? "" : ",") + typed(option, one);
    }
    return list;
}

}  // namespace

bool is_constant(std::string_view key) { return among(constants, key); }

std::vector<std::string> arguments_of_file(const std::string& path,
                                           const std::function<std::optional<bool>(const std::string&)>& takes_value) {
    const json j = read_json(path);
    std::vector<std::string> all;
    for (const auto& [key, value] : j.items()) {
        if (among(said_beside, key) || among(constants, key) || value.is_null()) continue;
        std::string option = "--" + key;
        std::replace(option.begin(), option.end(), '_', '-');
        const auto has_value = takes_value(option);
        if (!has_value || among(of_command_line, option)) refuse("--config", "only options of --help in " + path, key);
        if (!*has_value && !value.is_boolean())
            refuse("--config", "true or false for " + option + " in " + path, as_typed(value.dump()));
        std::string text = typed(option, value);
        if (text.empty() || text.find('\0') != text.npos)
            refuse("--config", "a value for " + option + " in " + path, as_typed(value.dump()));
        if (key == "device" && j.contains("gpu") && text == "cuda") text += ":" + j["gpu"].dump();
        all.push_back(option + "=" + text);
    }
    return all;
}

void require_configuration(const options& o) {
    const auto given = o.given.find("--config");
    if (given == o.given.end()) return;
    const json j = read_json(given->second), of_program = to_json(o);
    for (const std::string_view name : constants)
        if (const std::string key(name); j.contains(key) && j[key] != of_program[key])
            refuse("--config", key + " " + of_program[key].dump() + " in " + given->second + ", which is no option",
                   j[key].dump());
}

}  // namespace experiment
