#pragma once

#include "options.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace experiment {

/// The program's, such as "0.1.0".
extern const char* const version;

/// Indented; bytes of a path that are not UTF-8, which JSON is, are replaced. Errors: std::runtime_error when
/// the file cannot be written.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& j);

/// All options of a single model, as they are written to config.json.
nlohmann::ordered_json to_json(const options& o);

/// Those that the trained parameters depend on: a run goes on only with equal ones. The others say what is
/// done with the model, where, and on how many threads.
nlohmann::ordered_json training_configuration(const options& o);

/// Of what the files of --files hold, which is no option.
inline constexpr const char* contents_key = "contents_of_files";

/// An option that config.json does not name in each run, and what it then is, as it is typed.
struct seldom_written {
    std::string_view key, standard;
};
inline constexpr seldom_written seldom[] = {
    {"gate", "outside"},     {"sees_y", "mixer+bc"},   {"windows", "1"},  {"lengthen_at", "0.5"},
    {"micro_batches", "1"},  {"label_smoothing", "0"}, {"restarts", "0"}, {"files", "stories that are made"},
    {"begin_token", "false"}};

/// A value of config.json as it is typed.
std::string as_typed(std::string json);

/// The key of an option: "test_lengths" of "--test-lengths".
std::string key_of(const std::string& option);

/// Whether a key of config.json is no option, but how the program trains.
bool is_constant(std::string_view key);

/// Those that were given, as they are written to the job.json of an exhibit.
nlohmann::ordered_json given_json(const options& o);

/// What --config FILE stands for: "--steps=3000" for {"steps": 3000}. Keys that are no options but the
/// program's own are left out. `takes_value` says of an option whether it has a value, and nothing of what is
/// none. Errors: fprnn::argument_error for a file that is none, keys that are no options, and values that
/// cannot be typed.
std::vector<std::string> arguments_of_file(
    const std::string& path, const std::function<std::optional<bool>(const std::string& option)>& takes_value);

/// What the file of --config says that is no option has to be what the program does. Errors:
/// fprnn::argument_error.
void require_configuration(const options& o);

}  // namespace experiment
