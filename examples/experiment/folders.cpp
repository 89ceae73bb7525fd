#include "folders.hpp"

#include "configuration.hpp"

#include <fprnn/io/checkpoint.hpp>
#include <fprnn/io/files.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace experiment {

namespace {

namespace fs = std::filesystem;

/// A file that training a model leaves in its folder; none when there is none.
std::optional<fs::path> file_of_a_model(const fs::path& folder) {
    const auto checkpoints = fp::checkpoints_in(folder);
    if (!checkpoints.empty()) return checkpoints.front().second;
    std::error_code none;
    for (const char* name : {"metrics.csv", "config.json"})
        if (fs::exists(folder / name, none)) return folder / name;
    return std::nullopt;
}

constexpr const char* job_file = "job.json";

/// What a folder has been used for; none when for nothing.
std::optional<std::string> job_in(const fs::path& folder) {
    std::error_code none;
    if (!fs::exists(folder / job_file, none)) return std::nullopt;
    const auto j = nlohmann::json::parse(fp::read_file(folder / job_file, 1 << 16), nullptr, false);
    return j.is_object() && j.contains("job") && j["job"].is_string() ? j["job"].get<std::string>() : "an unknown job";
}

/// A folder of an exhibit, and of each of its members, says which it is; that of a single model has the
/// model's files and says nothing.
void refuse_other_jobs(const options& o) {
    const auto refuse = [&](const std::string& what) {
        throw fp::argument_error("--out: expected a folder without files of another job, got '" + o.out.string() +
                                 "' " + what);
    };
    const auto job = job_in(o.out);
    if (job && *job != job_of(o)) refuse("of " + *job);
    if (!o.shown || job) return;
    if (const auto file = file_of_a_model(o.out)) refuse("with " + file->filename().string() + " of a single model");
    // In a new folder of an exhibit, but for one whose start was cut off.
    for (const options& one : models_of(o))
        if (!job_in(one.out))
            if (const auto file = file_of_a_model(one.out))
                refuse("with " + file->lexically_relative(o.out).string() + " of a single model");
}

/// Of an exhibit it says what was asked for, as --config takes it.
void write_job(const options& o, const fs::path& folder) {
    if (!o.shown) return;
    nlohmann::ordered_json j{{"job", job_of(o)}};
    if (folder == o.out) j.update(given_json(o));
    write_json(folder / job_file, j);
}

/// What --resume answers to the checkpoint of a run with other options.
std::string other_options(const options& o, const std::string& path, const fp::configuration_difference& difference) {
    auto [key, expected, got] = difference;
    for (const seldom_written& one : seldom)
        if (key == one.key || key == '"' + std::string(one.key) + '"') {
            key = one.key;
            for (std::string* text : {&expected, &got})
                if (*text == "nothing") *text = one.standard;
        }
    if (key == contents_key)
        return "--files: their contents are others than those that " + path + " was trained on; choose another --out";
    if (expected == "nothing" || got == "nothing" || key.empty() || is_constant(key))
        return path + ": written by another version (" + difference.to_string() + "); choose another --out";

    std::string option = "--" + key;
    std::replace(option.begin(), option.end(), '_', '-');
    const bool given = o.given.contains(option) || expected == "true";  // flags are not in it
    std::string text = option + ": " + path + " has " + as_typed(got) + ", got " + as_typed(expected) +
                       (given ? "" : ", the default") +
                       "; --resume needs the options that the run was started with, or another --out";
    // Options are for all models of a job, so what was a model's own default in another version cannot be
    // asked for.
    if (!given && o.shown && key == "time_limit")
        text += "; where they were those of an earlier version, '" + o.out.string() +
                "' has to be removed and is then trained anew";
    return text;
}

/// The newest checkpoint that is whole says what run a folder is of. Whether it can be taken is seen when it
/// is.
void require_same_options(const options& o) {
    for (const auto& [step, path] : fp::checkpoints_in(o.out)) {
        std::string configuration;
        try {
            configuration = fp::checkpoint_configuration(fp::read_file(path, fs::file_size(path)), path.string());
        } catch (const std::runtime_error&) {
            continue;
        }
        if (const auto difference = fp::first_difference(training_configuration(o), configuration))
            throw fp::argument_error(other_options(o, path.string(), *difference));
        return;
    }
}

/// A single training and attempts do not share a folder: each leaves its files where the other puts the
/// model's.
void require_same_restarts(const options& o) {
    std::vector<fs::path> elsewhere;
    if (o.restarts > 0) elsewhere.push_back(o.out);
    std::error_code none;
    for (int k = 1; o.restarts == 0 && fs::is_directory(attempt_folder(o.out, k), none); ++k)
        elsewhere.push_back(attempt_folder(o.out, k));
    for (const fs::path& folder : elsewhere)
        if (const auto checkpoints = fp::checkpoints_in(folder); !checkpoints.empty())
            throw fp::argument_error("--restarts: expected " + std::string(o.restarts > 0 ? "0" : "at least 1") +
                                     ", as the run that left " + checkpoints.front().second.string() +
                                     " had, or another --out, got " + std::to_string(o.restarts));
}

/// A folder for results, or none yet. What a run writes must not be what the next one is trained on.
void require_folder(const options& o) {
    const auto expected = [&](const std::string& what) {
        throw fp::argument_error("--out: expected " + what + ", got '" + o.out.string() + "'");
    };
    std::error_code error;
    const auto there = fs::status(o.out, error);
    if (fs::exists(there) && !fs::is_directory(there)) expected("a folder");
    if (fs::exists(there)) {
        fs::directory_iterator listed(o.out, error);
        if (error) expected("a folder that can be read (" + error.message() + ")");
    } else if (there.type() == fs::file_type::none) {
        expected("a folder (" + error.message() + ")");
    }
    if (o.data.files.empty() || !fs::is_directory(o.data.files, error)) return;
    const fs::path files = fs::weakly_canonical(fs::absolute(o.data.files), error),
                   out = fs::weakly_canonical(fs::absolute(o.out), error);
    if (std::mismatch(files.begin(), files.end(), out.begin(), out.end()).first == files.end())
        expected("a folder outside of --files " + o.data.files + ", all of which is read");
}

/// A run that is ended before its first files are written, and those of its end, leaves files of two.
void warn_of_another_run(const options& o) {
    const auto path = o.out / "config.json";
    if (o.shown || o.resume || !fs::exists(o.out / "summary.json") || !fs::is_regular_file(path)) return;
    const auto there =
        nlohmann::json::parse(fp::read_file(path, std::numeric_limits<std::uintmax_t>::max()), nullptr, false);
    if (!there.is_object()) return;
    const auto here = training_configuration(o);
    for (const auto& [key, value] : here.items())
        if (key != contents_key && there.contains(key) && nlohmann::json(value) != there[key]) {
            std::fprintf(stderr, "experiment: '%s' holds the results of another run (%s: %s), which are written over\n",
                         o.out.c_str(), key.c_str(), there[key].dump().c_str());
            return;
        }
}

}  // namespace

void prepare_folders(const options& o) {
    require_folder(o);
    refuse_other_jobs(o);
    std::vector<options> attempts;
    for (const options& model : models_of(o)) {
        require_same_restarts(model);
        for (options& one : attempts_of(model)) attempts.push_back(std::move(one));
    }
    for (const options& one : attempts) {
        if (o.resume) {
            require_same_options(one);
            continue;
        }
        const auto checkpoints = fp::checkpoints_in(one.out);
        fp::require(checkpoints.empty(), "--out", [&] {
            return "expected a folder without checkpoints, or --resume, got '" + one.out.string() + "' with " +
                   checkpoints.front().second.filename().string();
        });
    }
    fp::require_writable_folder(o.out, "--out");
    warn_of_another_run(o);
    write_job(o, o.out);
    for (const options& one : models_of(o)) {
        fp::require_writable_folder(one.out, "--out");
        write_job(o, one.out);
    }
}

}  // namespace experiment
