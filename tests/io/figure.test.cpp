#include "io/scratch_folder.hpp"
#include "locales.hpp"

#include <fprnn/io/figure.hpp>
#include <fprnn/io/read_file.hpp>

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using fprnn::testing::scratch_folder;

fprnn::figure example() {
    return {.title = "it's a test",
            .x = {.label = "length", .log = 2},
            .y = {.label = "accuracy", .limits = {{0, 1}}},
            .curves = {{.label = "one", .x = {2, 4, 8}, .y = {1, 0.5, 0.25}}},
            .upright = fprnn::mark{4, "here"}};
}

/// Four figures: no limits, both kinds of logarithmic axes, a curve without a point.
fprnn::picture example_of_four() {
    const fprnn::curve falling{.label = "falling", .x = {1, 2, 3, 4}, .y = {4, 3, 0.002, 0}};
    const fprnn::curve empty{.label = "empty", .x = {}, .y = {}};
    const fprnn::figure plain{.title = "plain", .x = {.label = "x"}, .y = {.label = "y"}, .curves = {falling, empty}};
    fprnn::figure decades = plain, octaves = plain, level = plain;
    decades.y.log = 10;
    octaves.x.log = octaves.y.log = 2;
    level.level = fprnn::mark{9, "level"};
    return {"four", {plain, decades, octaves, level}};
}

/// A variable of the environment is another one while it lives.
struct variable {
    const char* name;
    std::optional<std::string> before;
    variable(const char* n, const char* value) : name(n) {
        if (const char* text = std::getenv(name)) before = text;
        ::setenv(name, value, 1);
    }
    variable(const variable&) = delete;
    ~variable() { before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name); }
};

/// What is written to the standard error while f runs.
template <class F>
std::string errors_of(const fs::path& folder, F&& f) {
    const fs::path path = folder / "errors";
    const int before = ::dup(STDERR_FILENO), to = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(to, STDERR_FILENO);
    f();
    ::dup2(before, STDERR_FILENO);
    ::close(to);
    ::close(before);
    return fprnn::read_file(path, 1 << 20);
}

TEST_CASE("figure: the script holds the data, quotes text and marks powers of two") {
    const std::string script = fprnn::gnuplot_script(example(), "name");
    CHECK(script.find("$figure0_curve0 << EOD\n2 1\n4 0.5\n8 0.25\nEOD\n") != std::string::npos);
    CHECK(script.find("set title 'it''s a test'") != std::string::npos);
    CHECK(script.find("set xtics ('2' 2, '4' 4, '8' 8)") != std::string::npos);
    CHECK(script.find("set output 'name.png'") != std::string::npos);
    CHECK(script.find("set output 'name.svg'") != std::string::npos);
    CHECK(fprnn::gnuplot_script(example(), "it's").find("set output 'it''s.svg'") != std::string::npos);
}

TEST_CASE("figure: intervals are bands behind the curves, and what they need lies inside of the axes") {
    fprnn::figure f{.title = "bands",
                    .x = {.label = "x"},
                    .y = {.label = "y"},
                    .curves = {{.label = "one", .x = {1, 2}, .y = {4, 5}, .low = {3, 4}, .high = {4.5, 9}},
                               {.label = "two", .x = {1, 2}, .y = {1, 1}}}};
    const std::string script = fprnn::gnuplot_script(f, "name");
    CHECK(script.find("$figure0_curve0_band << EOD\n1 3 4.5\n2 4 9\nEOD\n") != script.npos);
    CHECK(script.find("$figure0_curve1_band") == script.npos);
    const auto band = script.find("plot $figure0_curve0_band using 1:2:3 with filledcurves"),
               line = script.find("$figure0_curve0 using 1:2 with linespoints");
    REQUIRE(band != script.npos);
    CHECK(band < line);
    CHECK(script.find("set yrange [-0.18:9.36]") != script.npos);
    f.curves[0].low[1] = std::numeric_limits<double>::quiet_NaN();
    CHECK(fprnn::gnuplot_script(f, "name").find("$figure0_curve0_band << EOD\n1 3 4.5\nEOD\n") != script.npos);
    const scratch_folder scratch;
    if (!fprnn::find_program("gnuplot").empty()) {
        CHECK_FALSE(fprnn::draw(f, scratch.path, "bands").has_value());
        CHECK(fs::file_size(scratch.path / "bands.png") > 1000);
    }
}

TEST_CASE("figure: a logarithmic axis has whole decades or powers of two, and no value that is not positive") {
    const std::string script = fprnn::gnuplot_script(example_of_four(), "name");
    CHECK(script.find("$figure0_curve0 << EOD\n1 4\n2 3\n3 0.002\n4 0\nEOD\n") != std::string::npos);
    CHECK(script.find("$figure1_curve0 << EOD\n1 4\n2 3\n3 0.002\nEOD\n") != std::string::npos);
    CHECK(script.find(
              "set yrange [0.0009090909:14]\nset ytics ('10^{-3}' 0.001, '10^{-2}' 0.01, '10^{-1}' 0.1, '10^{0}' 1, "
              "'10^{1}' 10)") != std::string::npos);
    CHECK(script.find("set xtics ('1' 1, '2' 2)") != std::string::npos);
    // A linear axis begins at 0 and reaches what is marked on it.
    CHECK(script.find("set yrange [-0.08:4.16]") != std::string::npos);
    CHECK(script.find("set yrange [-0.18:9.36]") != std::string::npos);
    // One key for all.
    CHECK(script.find("plot NaN") == std::string::npos);
    CHECK(script.find("NaN with linespoints") != std::string::npos);
}

TEST_CASE("figure: a linear axis has at most six round ticks") {
    struct axis {
        double last;
        std::string ticks;
    };
    for (const axis& a : {axis{1, "0.2"}, {1.01, "0.5"}, {50, "10"}, {51, "20"}, {12000, "5000"}}) {
        CAPTURE(a.last);
        const fprnn::figure f{.title = "",
                              .x = {.label = ""},
                              .y = {.label = ""},
                              .curves = {{.label = "a", .x = {0, a.last}, .y = {1, 1}}}};
        CHECK(fprnn::gnuplot_script(f, "name").find("set xtics " + a.ticks + "\n") != std::string::npos);
    }
}

TEST_CASE("figure: between limits ticks are round, too") {
    struct axis {
        double low, high;
        std::string ticks;
    };
    for (const axis& a : {axis{0, 1, "0,0.2,1"}, {-0.1, 1, "0,0.2,1"}, {1.5, 4, "1.5,0.5,4"}, {1, 4, "1,0.6,4"}}) {
        CAPTURE(a.low);
        const fprnn::figure f{.title = "",
                              .x = {.label = ""},
                              .y = {.label = "", .limits = {{a.low, a.high}}},
                              .curves = {{.label = "a", .x = {0, 1}, .y = {1, 1}}}};
        CHECK(fprnn::gnuplot_script(f, "name").find("set ytics " + a.ticks + " format '%.1f'\n") != std::string::npos);
    }
}

TEST_CASE("figure: between limits the numbers of ticks have all their digits") {
    struct axis {
        double low, high;
        std::string ticks;
    };
    for (const axis& a : {axis{8.1, 8.3, "8.1,0.05,8.3 format '%.2f'"},
                          {0, 1, "0,0.2,1 format '%.1f'"},
                          {0, 10, "0,2,10 format '%.0f'"}}) {
        CAPTURE(a.ticks);
        const fprnn::figure f{.title = "",
                              .x = {.label = ""},
                              .y = {.label = "", .limits = {{a.low, a.high}}},
                              .curves = {{.label = "a", .x = {0, 1}, .y = {a.low, a.high}}}};
        CHECK(fprnn::gnuplot_script(f, "name").find("set ytics " + a.ticks + "\n") != std::string::npos);
    }
}

TEST_CASE("figure: between two powers of the base the ends of a logarithmic axis have ticks") {
    fprnn::figure f = example();
    f.upright.reset();
    f.curves.front().x = {20, 25, 30};
    CHECK(fprnn::gnuplot_script(f, "name").find("set xtics (20, 30)\n") != std::string::npos);
    f.curves.front().x = {200, 200, 200};
    CHECK(fprnn::gnuplot_script(f, "name").find("set xtics (200)\n") != std::string::npos);
}

TEST_CASE("figure: a long title is smaller, and a mark at the right end stands to the left of it") {
    fprnn::figure f = example();
    f.title = std::string(62, 'm');
    f.upright = fprnn::mark{2, "training"};
    std::string script = fprnn::gnuplot_script(f, "name");
    CHECK(script.find(f.title + "' font ',20'") != script.npos);
    CHECK(script.find("set label 'training' at 2,graph 1 center") != script.npos);
    f.title = std::string(50, 'm') + "\u2212\u2212\u2212\u2212\u2212\u2212\u2212\u2212\u2212\u2212\u2212\u2212";
    CHECK(fprnn::gnuplot_script(f, "name").find(f.title + "' font ',20'") != script.npos);
    f.title = std::string(100, 'm');
    f.upright->at = 8;
    script = fprnn::gnuplot_script(f, "name");
    CHECK(script.find(f.title + "' font ',12'") != script.npos);
    CHECK(script.find("set label 'training' at 8,graph 1 right") != script.npos);
}

TEST_CASE("figure: what is drawn takes the place of what was, whether gnuplot is there or not") {
    const scratch_folder scratch;
    for (const char* extension : {".png", ".svg", ".txt"})
        fprnn::write_file(scratch.path / (std::string("name") + extension), "old");
    {
        const variable path("PATH", scratch.path.c_str());
        CHECK(fprnn::draw(example(), scratch.path, "name").has_value());
    }
    CHECK(fs::exists(scratch.path / "name.txt"));
    CHECK_FALSE(fs::exists(scratch.path / "name.png"));
    CHECK_FALSE(fs::exists(scratch.path / "name.svg"));
    if (fprnn::find_program("gnuplot").empty()) return;
    CHECK_FALSE(fprnn::draw(example(), scratch.path, "name").has_value());
    CHECK_FALSE(fs::exists(scratch.path / "name.txt"));
    CHECK(fs::exists(scratch.path / "name.png"));
}

TEST_CASE("figure: of many octaves every second or third has its tick") {
    fprnn::figure f = example();
    f.curves.front().x = {1, 4, 1 << 20};
    CHECK(fprnn::gnuplot_script(f, "name").find("set xtics ('1' 1, '4' 4, '16' 16,") != std::string::npos);
}

TEST_CASE("figure: as text, a bar is as long as its share and the mark stands at its length") {
    const std::string text = fprnn::text_chart(example());
    CHECK(text.find("      2  |" + std::string(50, '#') + "| 1.000\n") != std::string::npos);
    CHECK(text.find("      4 *|" + std::string(25, '#') + std::string(25, ' ') + "| 0.500\n") != std::string::npos);
}

TEST_CASE("figure: as text, it has all figures, bars of a logarithmic axis too, and at most so many of a curve") {
    const std::string text = fprnn::text_chart(example_of_four());
    for (const char* part : {"four\n", "plain\n", "y; x\n", "falling\n", "      1  |", "| 0.002\n"})
        CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("empty") == std::string::npos);
    // In the second figure 0.002 is the lowest of the decades and has no bar, and 0 has no place at all.
    CHECK(text.find("      3  |" + std::string(50, ' ') + "| 0.002\n") != std::string::npos);

    fprnn::curve many{.label = "many", .x = {}, .y = {}};
    for (int i = 0; i <= 1000; ++i) {
        many.x.push_back(i);
        many.y.push_back(0.5);
    }
    const std::string short_text = fprnn::text_chart(
        fprnn::figure{.title = "", .x = {}, .y = {.label = "", .limits = {{0, 1}}}, .curves = {many}}, 80, 5);
    CHECK(std::count(short_text.begin(), short_text.end(), '|') == 10);
    for (const char* x : {"      0  |", "    250  |", "    500  |", "    750  |", "   1000  |"})
        CHECK(short_text.find(x) != std::string::npos);
}

TEST_CASE("figure: as text, no line is wider than the terminal") {
    for (const int columns : {1, 10, 22, 30, 40, 79, 80, 200}) {
        CAPTURE(columns);
        std::istringstream lines(fprnn::text_chart(example_of_four(), columns));
        for (std::string line; std::getline(lines, line);) CHECK(std::ssize(line) <= std::max(22, columns));
    }
    CHECK(fprnn::text_chart(example(), 200) == fprnn::text_chart(example()));  // wider is of no use
}

TEST_CASE("figure: gnuplot draws it where it is installed") {
    if (fprnn::find_program("gnuplot").empty()) return;
    const scratch_folder folder;
    CHECK_FALSE(fprnn::draw(example(), folder.path, "name").has_value());
    CHECK(fs::file_size(folder.path / "name.png") > 1000);
    CHECK(fs::file_size(folder.path / "name.svg") > 1000);
    CHECK_FALSE(fs::exists(folder.path / "name.txt"));
    CHECK_FALSE(fprnn::draw(example_of_four(), folder.path, "four").has_value());
    CHECK(fs::file_size(folder.path / "four.png") > 1000);
    // Nothing to draw is not an error either.
    const fprnn::figure empty{.title = "empty", .x = {}, .y = {}, .curves = {}};
    CHECK_FALSE(fprnn::draw(empty, folder.path, "empty"));
    CHECK_FALSE(fprnn::draw({"empty", {empty, empty}}, folder.path, "empties"));
}

TEST_CASE("figure: without gnuplot, or when it fails, there is a text chart and the script") {
    const scratch_folder folder;
    const fs::path programs = folder.path / "programs";
    fs::create_directory(programs);
    const variable path("PATH", programs.c_str());
    const auto text = fprnn::draw(example(), folder.path, "name");
    REQUIRE(text.has_value());
    CHECK(fs::file_size(folder.path / "name.txt") == text->size());
    CHECK(fs::exists(folder.path / "name.gp"));
    // The file does not depend on who looks on.
    CHECK(fprnn::draw(example(), folder.path, "narrow", 30) != text);
    CHECK(fs::file_size(folder.path / "narrow.txt") == text->size());

    fprnn::write_file(programs / "gnuplot", "#!/bin/sh\nexit 1\n");
    fs::permissions(programs / "gnuplot", fs::perms::owner_all);
    CHECK(fprnn::draw(example(), folder.path, "name").has_value());
}

TEST_CASE("figure: script and text have the same numbers in any locale, with points and without groups") {
    fprnn::figure f = example();
    f.curves.front() = {.label = "a", .x = {1, 1000.5, 1234567}, .y = {0.125, 0.5, 1}};
    const fprnn::picture four = example_of_four();
    const auto script = [&] { return fprnn::gnuplot_script(f, "name") + fprnn::gnuplot_script(four, "four"); };
    const auto text = [&] { return fprnn::text_chart(f) + fprnn::text_chart(four); };
    const std::string expected_script = script(), expected_text = text();
    CHECK(expected_script.find("1000.5 0.5\n") != std::string::npos);
    CHECK(expected_text.find(" 1000.5  |") != std::string::npos);
    fprnn::testing::with_decimal_commas([&] {
        CHECK(script() == expected_script);
        CHECK(text() == expected_text);
    });
}

TEST_CASE("figure: as text, the largest number is whole and its line ends") {
    fprnn::figure f = example();
    f.curves.front().y = {1, 1e300, 0.25};
    const std::string text = fprnn::text_chart(f);
    CHECK(text.find(".000\n      8  |") != std::string::npos);
}

TEST_CASE("figure: gnuplot is run in a locale of UTF-8, so that it has nothing to warn of in others") {
    const scratch_folder folder;
    const variable locale("LC_ALL", "C");
    if (!fprnn::find_program("gnuplot").empty())
        CHECK(errors_of(folder.path, [&] { CHECK_FALSE(fprnn::draw(example(), folder.path, "name")); }) == "");

    const fs::path programs = folder.path / "programs";
    fs::create_directory(programs);
    fprnn::write_file(programs / "gnuplot",
                      "#!/bin/sh\necho \"$LC_ALL,$PATH\" >locale\necho >name.png\necho >name.svg\n");
    fs::permissions(programs / "gnuplot", fs::perms::owner_all);
    const variable path("PATH", programs.c_str());
    CHECK_FALSE(fprnn::draw(example(), folder.path, "name"));
    CHECK(fprnn::read_file(folder.path / "locale", 1 << 20) == "C.UTF-8," + programs.string() + "\n");
}

TEST_CASE("figure: what cannot be drawn is refused, with nothing written") {
    const scratch_folder folder;
    const auto refuses = [&](const fprnn::picture& p, const char* message) {
        CHECK_THROWS_WITH_AS(fprnn::gnuplot_script(p, "f"), message, fprnn::argument_error);
        CHECK_THROWS_WITH_AS(fprnn::text_chart(p), message, fprnn::argument_error);
        CHECK_THROWS_WITH_AS(fprnn::draw(p, folder.path / "new", "f"), message, fprnn::argument_error);
        CHECK_FALSE(fs::exists(folder.path / "new"));
    };
    const auto with = [](const auto& change) {
        fprnn::figure f = example();
        change(f);
        return f;
    };
    refuses({"none", {}}, "picture: expected a figure, got none");
    refuses(with([](auto& f) { f.curves[0].y.pop_back(); }),
            "picture: curve 'one': y must have as many numbers as x, 3, got 2");
    refuses(with([](auto& f) {
                f.curves[0].low = {0, 0, 0};
            }),
            "picture: curve 'one': high must have as many numbers as x, 3, got 0");
    refuses(with([](auto& f) {
                f.curves[0].high = f.curves[0].low = {1, 2, 3, 4};
            }),
            "picture: curve 'one': low must have as many numbers as x, 3, got 4");
    refuses(with([](auto& f) { f.y.log = 10; }),
            "picture: y.limits must be finite and rise, on a logarithmic axis from above 0, got 0 and 1");
    refuses(with([](auto& f) { f.y.limits = {1, 1}; }), "picture: y.limits must be finite and rise, got 1 and 1");
    refuses(with([](auto& f) { f.x.log = 1; }), "picture: x.log is a base of at least 2, or 0: linear, got 1");
}

TEST_CASE("figure: the folder is made where it lacks") {
    const scratch_folder folder;
    const variable path("PATH", folder.path.c_str());
    CHECK(fprnn::draw(example(), folder.path / "a" / "b", "name").has_value());
    CHECK(fs::exists(folder.path / "a" / "b" / "name.txt"));
}

}  // namespace
