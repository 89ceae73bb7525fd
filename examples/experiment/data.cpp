#include "data.hpp"

#include "options.hpp"

#include <fprnn/io/checkpoint_format.hpp>
#include <fprnn/io/read_file.hpp>
#include <fprnn/tasks/babi_world.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <vector>

namespace experiment {

namespace {
/// What a constructor refuses, or cannot read, is said of the option that it is made from.
template <class Make>
auto of_option(const char* option, Make&& make) {
    try {
        return make();
    } catch (const fp::argument_error& e) {
        throw fp::argument_error(std::string(option) + ": " + e.what());
    } catch (const std::runtime_error& e) {
        throw fp::argument_error(std::string(option) + ": expected files that can be read, got " + e.what());
    }
}

/// The official files, or as many questions of the nine tasks that are generated.
fp::babi_stories stories_of(const data_options& o, fp::seed seed) {
    if (!o.files.empty()) return fp::read_babi(o.files);
    return fp::babi_world{seed}.stories(1800, 200, 200);
}
}  // namespace

fp::task make_task(const data_options& o, fp::seed seed) {
    switch (o.task) {
        case data_options::kind::word_problem:
            return as_task(fp::word_problem{.group = of_option("--group", [&] { return fp::finite_group(o.group); }),
                                            .seed = seed,
                                            .begin_token = o.begins});
        case data_options::kind::copy:
            return as_task(fp::copying{.shortest = o.shortest, .longest = o.longest, .seed = seed});
        case data_options::kind::arithmetic:
            return as_task(
                fp::modular_arithmetic{
                    .multiplication = o.multiplies, .shortest = o.shortest, .longest = o.longest, .seed = seed},
                o.test_shortest);
        case data_options::kind::catbabi:
            return of_option("--files", [&] {
                const fp::catbabi stories(stories_of(o, seed));
                fp::require(stories.questions(fp::split::test) > 0, "catbabi",
                            [&] { return "expected a question for tests in '" + stories.name() + "', got none"; });
                return as_task(stories, seed);
            });
        case data_options::kind::text:
            return as_task(of_option("--files", [&] { return fp::text_files(o.files); }), seed);
    }
    return {};
}

fp::copying_test copies_of(const data_options& o, fp::seed seed, fp::index length) {
    return fp::copying{.shortest = o.shortest, .longest = o.longest, .seed = seed, .part = fp::split::test}.test(
        length);
}

std::string contents_of(const data_options& o) {
    namespace fs = std::filesystem;
    const std::string& files = o.files;
    const bool reads_links = o.task != data_options::kind::text;  // see files_below
    try {
        std::vector<fs::path> all;
        if (fs::is_directory(files)) {
            std::error_code leads_nowhere;
            for (const auto& entry : fs::recursive_directory_iterator(files))
                if ((reads_links || !entry.is_symlink()) && entry.is_regular_file(leads_nowhere))
                    all.push_back(entry.path());
            std::sort(all.begin(), all.end());
        } else if (fs::is_regular_file(files)) {
            all.emplace_back(files);
        } else {
            return {};
        }
        std::uint64_t hash = fp::detail::fnv1a("");
        std::uintmax_t bytes = 0;
        for (const fs::path& path : all) {
            const std::string text = fp::read_file(path, std::numeric_limits<std::uintmax_t>::max());
            hash = fp::detail::fnv1a(text, fp::detail::fnv1a(path.lexically_relative(files).string(), hash));
            bytes += text.size();
        }
        char text[64];
        std::snprintf(text, sizeof text, "%llu bytes, %016llx", static_cast<unsigned long long>(bytes),
                      static_cast<unsigned long long>(hash));
        return text;
    } catch (const std::exception&) {
        return {};
    }
}

void require_task(const options& o) {
    const bool made = o.data.task != data_options::kind::word_problem && o.data.files.empty();
    if (made && o.data.task != data_options::kind::text) return;
    const fp::task task = make_task(o.data, {});
    if (o.data.task != data_options::kind::text) return;
    const fp::index T = o.windows * o.training.length;
    fp::tensor<std::int32_t> tokens({1, T}), targets({1, T});
    of_option(o.windows > 1 ? "--windows" : "--length",
              [&] { return task.train(tokens.view(), targets.view(), 0), true; });
    for (const fp::index length : o.test_lengths) of_option("--test-lengths", [&] { return task.test(length); });
}

fp::index tokens_of_test(const data_options& o, fp::index length) {
    switch (o.task) {
        case data_options::kind::copy: return fp::copying{}.test(length).tokens();
        case data_options::kind::arithmetic:
            return fp::modular_arithmetic{.shortest = 1, .longest = length}.tokens_needed();
        default: return length + (o.begins ? 1 : 0);
    }
}

fp::index tokens_of_longest(const data_options& o) {
    return o.task == data_options::kind::copy
               ? 2 * o.longest + 2
               : fp::modular_arithmetic{.shortest = 1, .longest = o.longest}.tokens_needed();
}

std::string title_of(const data_options& o) {
    switch (o.task) {
        case data_options::kind::word_problem: return "State tracking on " + o.group;
        case data_options::kind::copy: return "Copying";
        case data_options::kind::arithmetic:
            return std::string("Arithmetic modulo 5 with ") + (o.multiplies ? "+, -, *" : "+, -");
        case data_options::kind::catbabi: return o.files.empty() ? "Questions about a generated world" : "catbAbI";
        case data_options::kind::text: return "Text";
    }
    return {};
}

}  // namespace experiment
