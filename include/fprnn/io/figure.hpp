#pragma once

#include <fprnn/io/files.hpp>
#include <fprnn/io/gnuplot.hpp>
#include <fprnn/io/text_chart.hpp>

#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace fprnn {

namespace detail {
/// The environment for gnuplot: in a locale without UTF-8 it warns of scripts that are in UTF-8.
struct utf8_environment {
    std::string locale = "LC_ALL=C.UTF-8";
    std::vector<char*> all;
    utf8_environment() {
        for (char** e = environ; e && *e; ++e)
            if (!std::string_view(*e).starts_with("LC_ALL=")) all.push_back(*e);
        all.push_back(locale.data());
        all.push_back(nullptr);
    }
    utf8_environment(const utf8_environment&) = delete;
};

/// Whether `program NAME.gp`, run in the folder, ended well.
inline bool run_script(const std::string& program, const std::filesystem::path& folder, std::string script) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    std::string self = "gnuplot";
    char* arguments[] = {self.data(), script.data(), nullptr};
    pid_t child = 0;
    utf8_environment environment;
    const bool started =
        ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environment.all.data()) == 0;
    ::posix_spawn_file_actions_destroy(&actions);
    int state = -1;
    while (started && ::waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return started && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}
}  // namespace detail

/// Writes name.gp into the folder, which is made where it lacks, and runs gnuplot on it, which writes
/// name.png and name.svg; without gnuplot, or when it fails, writes name.txt, 80 columns wide. What is not
/// written and there from before is removed. Returns the text chart in that case, `columns` wide, otherwise
/// nothing. Errors: what picture::validate refuses, with nothing written; std::runtime_error where nothing
/// can be.
inline std::optional<std::string> draw(const picture& p, const std::filesystem::path& folder, const std::string& name,
                                       int columns = 80) {
    const std::string script = gnuplot_script(p, name);
    detail::need_folder(folder);
    write_file(folder / (name + ".gp"), script);
    std::error_code none;
    for (const char* extension : {".png", ".svg", ".txt"}) std::filesystem::remove(folder / (name + extension), none);
    const std::string program = find_program("gnuplot");
    const auto is_drawn = [&](const char* extension) {  // a full disk is not always an error to gnuplot
        std::error_code error;
        const auto path = folder / (name + extension);
        return std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) > 0 && !error;
    };
    if (!program.empty() && detail::run_script(program, folder, name + ".gp") && is_drawn(".png") && is_drawn(".svg"))
        return std::nullopt;
    write_file(folder / (name + ".txt"), text_chart(p));
    return text_chart(p, columns);
}

}  // namespace fprnn
