#include "io/scratch_folder.hpp"
#include "locales.hpp"

#include <fprnn/io/csv_file.hpp>
#include <fprnn/io/read_csv.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

namespace {

using rows = std::vector<std::vector<double>>;

rows read(const std::filesystem::path& path, const std::vector<std::string>& columns) {
    rows all;
    fprnn::read_csv(path, columns, [&](const std::vector<double>& row) { all.push_back(row); });
    return all;
}

TEST_CASE("read_csv: what csv_file wrote is read, by the columns' names and in the order that is asked for") {
    const fprnn::testing::scratch_folder folder;
    const auto path = folder.path / "table.csv";
    {
        fprnn::csv_file table(path, "step,loss,accuracy");
        table.row({1, 0.5, std::optional<double>{}});
        table.row({2, NAN, INFINITY});
        table.row({3, -1e-300, 0.25});
    }
    const rows all = read(path, {"accuracy", "step"});
    REQUIRE(all.size() == 3);
    CHECK(std::isnan(all[0][0]));
    CHECK(all[0][1] == 1);
    CHECK(all[1] == std::vector<double>{INFINITY, 2});
    CHECK(all[2] == std::vector<double>{0.25, 3});
    CHECK(read(path, {"loss"})[2][0] == -1e-300);
}

TEST_CASE("read_csv: a text with commas, quotes or ends of lines is one cell") {
    const fprnn::testing::scratch_folder folder;
    const auto path = folder.path / "table.csv";
    {
        fprnn::csv_file table(path, "label,seed,loss");
        table.row({std::string("fp_rnn, R = 4, 5,6"), 2, 0.25});
        table.row({std::string("\"quoted\", and\non two lines"), 3, 0.5});
        table.row({std::string(), 4, 1});
    }
    CHECK(read(path, {"seed", "loss"}) == rows{{2, 0.25}, {3, 0.5}, {4, 1}});
    const std::string whole = fprnn::read_file(path, 1000);
    fprnn::write_file(path, whole.substr(0, whole.find("two lines")));
    CHECK(read(path, {"seed"}) == rows{{2}});
}

TEST_CASE("read_csv: a last line that was cut is left out, whatever it would say") {
    const fprnn::testing::scratch_folder folder;
    const auto path = folder.path / "table.csv";
    for (const char* rest : {"2,0.2", "2,", "2", "x"}) {
        fprnn::write_file(path, std::string("step,loss\n1,0.5\n") + rest);
        CHECK(read(path, {"loss"}) == rows{{0.5}});
    }
    fprnn::write_file(path, "step,loss\n");
    CHECK(read(path, {"loss"}).empty());
}

TEST_CASE("read_csv: what is wrong with a file is said with its name and the row") {
    const fprnn::testing::scratch_folder folder;
    const auto path = folder.path / "table.csv";
    const std::string name = path.string();
    CHECK_THROWS_WITH_AS(read(path, {"loss"}), (name + ": cannot be read").c_str(), std::runtime_error);
    fprnn::write_file(path, "");
    CHECK_THROWS_WITH_AS(read(path, {"loss"}), (name + ": has no header").c_str(), std::runtime_error);
    fprnn::write_file(path, "step,loss\n1,0.5\n2\n");
    CHECK_THROWS_WITH_AS(read(path, {"rate"}), (name + ": has no column 'rate'").c_str(), std::runtime_error);
    CHECK_THROWS_WITH_AS(read(path, {"loss"}), (name + ": row 2: expected a number as loss, got '?'").c_str(),
                         std::runtime_error);
    fprnn::write_file(path, "step,loss\n1,0.5x\n");
    CHECK_THROWS_WITH_AS(read(path, {"loss"}), (name + ": row 1: expected a number as loss, got '0.5x'").c_str(),
                         std::runtime_error);
}

TEST_CASE("read_csv: what csv_file wrote in one locale is read in every other") {
    const fprnn::testing::scratch_folder folder;
    const auto path = folder.path / "table.csv";
    const auto write = [&] { fprnn::csv_file(path, "step,loss").row({1000, 0.5}); };
    const auto check = [&] { CHECK(read(path, {"step", "loss"}) == rows{{1000, 0.5}}); };
    write();
    fprnn::testing::with_decimal_commas([&] {
        check();
        write();
        check();
    });
    check();
}

}  // namespace
