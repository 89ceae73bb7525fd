#include "io/scratch_folder.hpp"

#include <fprnn/io/figure.hpp>

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using fprnn::testing::scratch_folder;

fprnn::figure example() {
    return {.title = "it's a test",
            .x_label = "length",
            .y_label = "accuracy",
            .curves = {{.label = "one", .x = {2, 4, 8}, .y = {1, 0.5, 0.25}}},
            .mark = 4,
            .mark_label = "here",
            .log_x = true};
}

/// PATH is another one while it lives.
struct path_variable {
    std::string before = std::getenv("PATH");
    explicit path_variable(const char* path) { ::setenv("PATH", path, 1); }
    ~path_variable() { ::setenv("PATH", before.c_str(), 1); }
};

TEST_CASE("figure: the script holds the data, quotes text and marks powers of two") {
    const std::string script = fprnn::gnuplot_script(example(), "name");
    CHECK(script.find("$curve0 << EOD\n2 1\n4 0.5\n8 0.25\nEOD\n") != std::string::npos);
    CHECK(script.find("set title 'it''s a test'") != std::string::npos);
    CHECK(script.find("set xtics ('2' 2, '4' 4, '8' 8)") != std::string::npos);
    CHECK(script.find("set output 'name.png'") != std::string::npos);
    CHECK(script.find("set output 'name.svg'") != std::string::npos);
}

TEST_CASE("figure: as text, a bar is as long as its share and the mark stands at its length") {
    const std::string text = fprnn::text_chart(example());
    CHECK(text.find("     2  |" + std::string(50, '#') + "| 1.000\n") != std::string::npos);
    CHECK(text.find("     4 *|" + std::string(25, '#') + std::string(25, ' ') + "| 0.500\n") != std::string::npos);
}

TEST_CASE("figure: gnuplot draws it where it is installed") {
    if (fprnn::find_program("gnuplot").empty()) return;
    const scratch_folder folder;
    CHECK_FALSE(fprnn::draw(example(), folder.path, "name").has_value());
    CHECK(fs::file_size(folder.path / "name.png") > 1000);
    CHECK(fs::file_size(folder.path / "name.svg") > 1000);
    CHECK_FALSE(fs::exists(folder.path / "name.txt"));
    // Nothing to draw is not an error either.
    CHECK_FALSE(fprnn::draw({.title = "empty", .x_label = "", .y_label = "", .curves = {}}, folder.path, "empty"));
}

TEST_CASE("figure: without gnuplot, or when it fails, there is a text chart and the script") {
    const scratch_folder folder;
    const fs::path programs = folder.path / "programs";
    fs::create_directory(programs);
    const path_variable path(programs.c_str());
    const auto text = fprnn::draw(example(), folder.path, "name");
    REQUIRE(text.has_value());
    CHECK(fs::file_size(folder.path / "name.txt") == text->size());
    CHECK(fs::exists(folder.path / "name.gp"));

    fprnn::write_file(programs / "gnuplot", "#!/bin/sh\nexit 1\n");
    fs::permissions(programs / "gnuplot", fs::perms::owner_all);
    CHECK(fprnn::draw(example(), folder.path, "name").has_value());
}

}  // namespace
