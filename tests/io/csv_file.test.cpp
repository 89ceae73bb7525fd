#include "io/scratch_folder.hpp"
#include "locales.hpp"

#include <fprnn/io/csv_file.hpp>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>

namespace {

using fprnn::csv_file;
using fprnn::testing::scratch_folder;

std::string content(const std::filesystem::path& path) { return fprnn::read_file(path, 1 << 20); }

TEST_CASE("csv: a table's rows can be read while it grows") {
    const scratch_folder folder;
    csv_file csv(folder.path / "t.csv", "a,b,c");
    csv.row({1, 0.25, std::optional<double>()});
    CHECK(content(folder.path / "t.csv") == "a,b,c\n1,0.25,\n");
    csv.row({2, std::nan(""), std::optional<double>(3.5)});
    CHECK(content(folder.path / "t.csv") == "a,b,c\n1,0.25,\n2,nan,3.5\n");
    CHECK(csv.rows() == 2);
    CHECK_NOTHROW(csv.sync());
    CHECK_THROWS_AS(csv_file(folder.path / "none" / "t.csv", "a"), std::runtime_error);
}

TEST_CASE("csv: a text stands in quotes where a reader would take it for several cells") {
    const scratch_folder folder;
    csv_file csv(folder.path / "t.csv", "a,b");
    csv.row({std::string("plain text"), 1});
    csv.row({std::string("one, \"two\""), 2});
    csv.row({std::string("lines\nof it"), 3});
    csv.row({std::string(), 4});
    CHECK(content(folder.path / "t.csv") == "a,b\nplain text,1\n\"one, \"\"two\"\"\",2\n\"lines\nof it\",3\n,4\n");
}

TEST_CASE("csv: a table that is continued has every row once, whatever came after the row it goes on from") {
    const scratch_folder folder;
    const auto path = folder.path / "t.csv";
    const auto continued = [&](const std::string& text, fprnn::index last) {
        fprnn::write_file(path, text);
        auto csv = csv_file::continued(path, "step,x", last);
        const auto rows = csv.rows();
        csv.row({rows + 1, 0.5});
        return content(path);
    };
    CHECK(continued("step,x\n1,1\n2,4\n3,9\n", 2) == "step,x\n1,1\n2,4\n3,0.5\n");
    CHECK(continued("step,x\n1,1\n2,4\n", 2) == "step,x\n1,1\n2,4\n3,0.5\n");
    CHECK(continued("step,x\n1,1\n2,4\n", 0) == "step,x\n1,0.5\n");
    CHECK(continued("step,x\n", 5) == "step,x\n1,0.5\n");
    // What a killed process or a power failure leaves: half a row, zeros, a row again.
    CHECK(continued("step,x\n1,1\n2", 2) == "step,x\n1,1\n2,0.5\n");
    CHECK(continued("step,x\n1,1\n2,4", 2) == "step,x\n1,1\n2,0.5\n");
    for (const char* part : {"", "st", "step,x"}) CHECK(continued(part, 2) == "step,x\n1,0.5\n");
    const auto damaged = folder.path / "t.csv.damaged";
    CHECK_FALSE(std::filesystem::exists(damaged));
    CHECK(continued("step,x\n1,1\n2\n3,9\n", 3) == "step,x\n1,1\n2,0.5\n");
    CHECK(content(damaged) == "step,x\n1,1\n2\n3,9\n");
    CHECK(continued("step,x\n1,1\n2,4,4\n3,9\n", 3) == "step,x\n1,1\n2,0.5\n");
    CHECK(continued("step,x\n1,\"1,1\"\n2,4\n", 2) == "step,x\n1,\"1,1\"\n2,4\n3,0.5\n");
    std::filesystem::remove(damaged);
    CHECK(continued(std::string("step,x\n1,1\n\0\0\0\n", 15), 9) == "step,x\n1,1\n2,0.5\n");
    const std::string repeated = "step,x\n1,1\n1,1\n2,4\n";
    CHECK(continued(repeated, 2) == "step,x\n1,1\n2,0.5\n");
    CHECK(content(damaged) == repeated);

    fprnn::write_file(path, "step\n1\n2\n3\n");
    CHECK(csv_file::continued(path, "step", 2).rows() == 2);
    CHECK(content(path) == "step\n1\n2\n");

    std::filesystem::remove(path);
    CHECK(csv_file::continued(path, "step,x", 7).rows() == 0);
    CHECK(content(path) == "step,x\n");
    fprnn::write_file(path, "step,loss\n1,1\n");
    CHECK_THROWS_WITH_AS(csv_file::continued(path, "step,x", 1),
                         (path.string() + ": expected a table of step,x, got step,l").c_str(), std::runtime_error);
    CHECK(content(path) == "step,loss\n1,1\n");
    const auto pipe = folder.path / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(csv_file::continued(pipe, "step,x", 1), (pipe.string() + ": not a regular file").c_str(),
                         std::runtime_error);
}

TEST_CASE("csv: a disk that is full is named") {
    if (!std::filesystem::exists("/dev/full")) return;
    CHECK_THROWS_WITH_AS(csv_file("/dev/full", "a"), "cannot write /dev/full: No space left on device",
                         std::runtime_error);
}

TEST_CASE("csv: numbers have points and no groups in any locale, so that commas part cells alone") {
    fprnn::testing::with_decimal_commas([] {
        const scratch_folder folder;
        const auto path = folder.path / "t.csv";
        csv_file csv(path, "a,b,c");
        csv.row({1, 0.5, 1234567.25});
        csv.row({1234567, std::optional<double>(-2.5e-10), 0.1f});
        const std::string rows = "a,b,c\n1,0.5,1234567\n1234567,-2.5e-10,0.1\n";
        CHECK(content(path) == rows);
        CHECK(csv_file::continued(path, "a,b,c", 1234567).rows() == 2);
        CHECK(content(path) == rows);
    });
}

TEST_CASE("csv: a NaN has no sign, which is chance") {
    CHECK(csv_file::cell(-std::nan("")).text == "nan");
    CHECK(csv_file::cell(-HUGE_VAL).text == "-inf");
}

}  // namespace
