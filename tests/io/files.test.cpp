#include <fprnn/io/files.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

/// A folder of its own that is gone afterwards.
struct scratch_folder {
    fs::path path;
    scratch_folder() {
        std::string name = (fs::temp_directory_path() / "fprnn_test_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~scratch_folder() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("files: a file is written whole and nothing is left beside it") {
    const scratch_folder folder;
    fprnn::write_file(folder.path / "a.txt", "first");
    fprnn::write_file(folder.path / "a.txt", "second");
    CHECK(content(folder.path / "a.txt") == "second");
    CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
    CHECK_THROWS_AS(fprnn::write_file(folder.path / "none" / "a.txt", ""), std::runtime_error);
}

TEST_CASE("files: a folder is made with its parents; what cannot be one is named") {
    const scratch_folder folder;
    fprnn::require_writable_folder(folder.path / "a" / "b", "--out");
    CHECK(fs::is_empty(folder.path / "a" / "b"));
    fprnn::write_file(folder.path / "file", "");
    const std::string path = (folder.path / "file").string();
    try {
        fprnn::require_writable_folder(path, "--out");
        FAIL("a file passed as a folder");
    } catch (const fprnn::argument_error& e) {
        CHECK(std::string(e.what()).find("--out: expected a folder that can be written, got '" + path + "' (") == 0);
    }
    CHECK_THROWS_AS(fprnn::require_writable_folder(folder.path / "file" / "below", "--out"), fprnn::argument_error);
}

TEST_CASE("files: a table's rows can be read while it grows") {
    const scratch_folder folder;
    fprnn::csv_file csv(folder.path / "t.csv", "a,b,c");
    csv.row({1, 0.25, std::optional<double>()});
    CHECK(content(folder.path / "t.csv") == "a,b,c\n1,0.25,\n");
    csv.row({2, std::nan(""), std::optional<double>(3.5)});
    CHECK(content(folder.path / "t.csv") == "a,b,c\n1,0.25,\n2,nan,3.5\n");
    CHECK_THROWS_AS(fprnn::csv_file(folder.path / "none" / "t.csv", "a"), std::runtime_error);
}

}  // namespace
