#pragma once

#include <fprnn/io/checkpoint_format.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace fprnn {

namespace detail {
inline constexpr std::string_view checkpoint_stem = "checkpoint-", checkpoint_ending = ".safetensors";
}  // namespace detail

/// The checkpoints in a folder, the newest first: files with names such as checkpoint-00001200.safetensors,
/// after 1,200 steps. None when there is no such folder; std::runtime_error when it cannot be listed.
inline std::vector<std::pair<index, std::filesystem::path>> checkpoints_in(const std::filesystem::path& folder) {
    std::vector<std::pair<index, std::filesystem::path>> found;
    std::error_code error;
    for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
        const std::string name = i->path().filename().string();
        if (!name.starts_with(detail::checkpoint_stem) || !name.ends_with(detail::checkpoint_ending)) continue;
        const char *first = name.data() + detail::checkpoint_stem.size(),
                   *last = name.data() + name.size() - detail::checkpoint_ending.size();
        index step = 0;
        if (const auto [rest, bad] = std::from_chars(first, last, step);
            bad == std::errc{} && rest == last && step >= 0)
            found.push_back({step, i->path()});
    }
    std::error_code none;
    if (error && std::filesystem::status(folder, none).type() != std::filesystem::file_type::not_found)
        throw std::runtime_error(folder.string() + ": cannot be listed: " + error.message());
    std::sort(found.begin(), found.end(), std::greater<>());
    return found;
}

namespace detail {
/// Removes the checkpoints of earlier steps but the last one. What cannot be removed does no harm.
inline void remove_all_earlier_but_one(const std::filesystem::path& folder, index steps) {
    std::error_code none;
    index earlier = 0;
    try {
        for (const auto& [at, old] : checkpoints_in(folder))
            if (at < steps && ++earlier > 1) std::filesystem::remove(old, none);
    } catch (const std::runtime_error&) {
    }
}
}  // namespace detail

/// Writes a checkpoint into a folder, which belongs to one training and is made with its parents where it
/// lacks, and returns the checkpoint's path. It appears whole or not at all;
/// when it is on the disk, all earlier ones but one are removed, and so is what a killed process left
/// unfinished more than an hour ago. `configuration`, an object of JSON, is what must be equal for a run to
/// go on from here. Errors: std::runtime_error when it cannot be written, and then nothing is removed;
/// encode_checkpoint's.
template <std::floating_point T>
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const training_state<T>& state,
                                      const nlohmann::ordered_json& configuration) {
    char step[32];
    std::snprintf(step, sizeof step, "%08lld", static_cast<long long>(state.steps));
    std::filesystem::path path =
        folder / (std::string(detail::checkpoint_stem) + step + std::string(detail::checkpoint_ending));
    const std::string bytes = encode_checkpoint(state, configuration);
    detail::need_folder(folder);
    write_file(path, bytes);

    // Errors from here on are none of the caller's.
    detail::remove_all_earlier_but_one(folder, state.steps);
    std::error_code none;
    const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    std::vector<std::filesystem::path> parts;
    for (std::filesystem::directory_iterator i(folder, none), end; !none && i != end; i.increment(none)) {
        const std::string name = i->path().filename().string();
        if (name.starts_with(detail::checkpoint_stem) && name.ends_with(".part")) parts.push_back(i->path());
    }
    for (const auto& part : parts)
        if (std::filesystem::last_write_time(part, none) < hour_ago && !none) std::filesystem::remove(part, none);
    return path;
}

/// What load_latest_checkpoint found.
struct checkpoint_search {
    std::optional<std::filesystem::path> taken{};  ///< none: the folder has no checkpoint
    std::vector<std::string> refused{};            ///< newer ones, a line each that names file and reason
};

/// Overwrites the state with the newest checkpoint in a folder that is whole and fits; see decode_checkpoint.
/// Newer ones are reported and renamed to NAME.refused, so that they are not met again; all earlier ones but
/// one are removed, which a process that was killed while it saved may not have come to. When there are
/// checkpoints and none can be taken: std::runtime_error with all reasons, and neither state nor folder are
/// changed.
template <std::floating_point T>
checkpoint_search load_latest_checkpoint(const std::filesystem::path& folder, training_state<T>& state,
                                         const nlohmann::ordered_json& configuration) {
    checkpoint_search search;
    const auto all = checkpoints_in(folder);
    std::string reasons;
    for (const auto& [step, path] : all) {
        try {
            training_state<T> read = state;
            decode_checkpoint(read_file(path, std::filesystem::file_size(path)), path.string(), read, configuration);
            // Under another name it would be met again and again, or hide newer ones.
            if (read.steps != step)
                throw std::runtime_error(path.string() + ": holds step " + std::to_string(read.steps));
            state = std::move(read);
        } catch (const std::runtime_error& e) {
            search.refused.push_back(e.what());
            reasons += (reasons.empty() ? "" : "; ") + search.refused.back();
            continue;
        }
        search.taken = path;
        break;
    }
    if (!all.empty() && !search.taken)
        throw std::runtime_error("no checkpoint in " + folder.string() + " can be taken: " + reasons);
    for (std::size_t i = 0; i < search.refused.size(); ++i) {
        std::error_code none;
        std::filesystem::rename(all[i].second, all[i].second.string() + ".refused", none);
    }
    if (search.taken) detail::remove_all_earlier_but_one(folder, state.steps);
    return search;
}

}  // namespace fprnn
