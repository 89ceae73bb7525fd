#include "io/scratch_folder.hpp"

#include <fprnn/tasks/babi.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::babi_story;
using fprnn::index;
using fprnn::parse_babi;
using fprnn::split;
using fprnn::testing::scratch_folder;
using lines = std::vector<std::string>;

// A file of two stories in the layout of the official ones, with a space behind '?'.
const std::string two_stories =
    "1 Mary moved to the bathroom.\n"
    "2 John went to the hallway.\n"
    "3 Where is Mary? \tbathroom\t1\n"
    "4 Daniel is carrying apple, said John's mother-in-law.\n"
    "5 What is Daniel carrying? \tApple,Milk\t1 4\n"
    "1 Sandra got the milk there.\n"
    "2 How many objects is Mary carrying?\tnone\t\n";

const lines first = {"mary moved to the bathroom .", "john went to the hallway .", "where is mary ? bathroom",
                     "daniel is carrying apple, said john's mother-in-law .", "what is daniel carrying ? apple,milk"};
const lines second = {"sandra got the milk there .", "how many objects is mary carrying ? none"};

void check_two_stories(const std::string& bytes) {
    const auto stories = parse_babi(bytes, "qa8_train.txt", 8);
    REQUIRE(stories.size() == 2);
    CHECK(stories[0].lines == first);
    CHECK(stories[1].lines == second);
    for (const babi_story& story : stories) CHECK(story.task == 8);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

TEST_CASE("babi: a file is its stories, lower-case words with the marks apart, without ids and supports") {
    check_two_stories(two_stories);
}

TEST_CASE("babi: the last line may lack its end, lines may end with CRLF, spaces may repeat") {
    check_two_stories(two_stories.substr(0, two_stories.size() - 1));
    check_two_stories(replaced(two_stories, "\n", "\r\n"));
    check_two_stories(replaced(two_stories, "\n", "\r\n").substr(0, two_stories.size() + 5));
    check_two_stories(replaced(replaced(two_stories, " ", "  "), ".\n", " . \n"));
    check_two_stories(replaced(two_stories, "? \t", "?\t"));
}

TEST_CASE("babi: each id 1 begins a story, also behind a story of one line") {
    const auto stories = parse_babi("1 A.\n1 B.\n2 C.\n1 D.\n", "file", 1);
    REQUIRE(stories.size() == 3);
    CHECK(stories[0].lines == lines{"a ."});
    CHECK(stories[1].lines == lines{"b .", "c ."});
    CHECK(stories[2].lines == lines{"d ."});
}

TEST_CASE("babi: ids may have several digits, and lines 1,024 bytes") {
    std::string bytes;
    for (int i = 1; i <= 120; ++i) bytes += std::to_string(i) + " A.\n";
    bytes += "121 Who?\tb\t1 9 10 99 100 120\n";
    CHECK(parse_babi(bytes, "file", 1).at(0).lines.size() == 121);
    const auto long_line = "1 " + std::string(fprnn::babi_longest_line - 3, 'A') + ".";
    CHECK(parse_babi(long_line + "\r\n", "file", 1).at(0).lines.at(0).size() == fprnn::babi_longest_line - 1);
    CHECK_THROWS_WITH_AS(parse_babi("1 A.\n2" + long_line.substr(1) + " \n", "file", 1),
                         "parse_babi: file:2: expected a line of at most 1024 bytes, got 1025", argument_error);
}

struct broken {
    std::string bytes, message;
};

const broken broken_files[] = {
    {"", ": expected stories, got an empty file"},
    // ids
    {"\n", ":1: expected the id 1, got ''"},
    {"2 A.\n", ":1: expected the id 1, got '2'"},
    {"A.\n", ":1: expected the id 1, got 'A.'"},
    {"1 A.\n\n", ":2: expected the id 1 or 2, got ''"},
    {"1 A.\n\n1 B.\n", ":2: expected the id 1 or 2, got ''"},
    {"1 A.\n3 B.\n", ":2: expected the id 1 or 2, got '3'"},
    {"1 A.\n2 B.\n2 C.\n", ":3: expected the id 1 or 3, got '2'"},
    {"1 A.\n02 B.\n", ":2: expected the id 1 or 2, got '02'"},
    {"1 A.\n 2 B.\n", ":2: expected the id 1 or 2, got ''"},
    {"1 A.\n2\tB?\tc\t1\n", ":2: expected the id 1 or 2, got '2\\tB?\\tc\\t1'"},
    {"1 A.\n-2 B.\n", ":2: expected the id 1 or 2, got '-2'"},
    // statements
    {"1 A\n", ":1: expected '.' at the end of a statement, or '?' and a TAB, got ' A'"},
    {"1", ":1: expected '.' at the end of a statement, or '?' and a TAB, got ''"},
    {"1 .\n", ":1: expected a word before the mark, got ' '"},
    {"1 A. B.\n", ":1: expected words of letters, digits, ' , and -, got 'A.'"},
    {"1 A ? B.\n", ":1: expected words of letters, digits, ' , and -, got '?'"},
    {"1 A <eos>.\n", ":1: expected words of letters, digits, ' , and -, got '<eos>'"},
    // questions
    {"1 A?\n", ":1: expected a TAB and an answer behind '?', got ' A?'"},
    {"1 A? b 1\n", ":1: expected '.' at the end of a statement, or '?' and a TAB, got ' A? b 1'"},
    {"1 A.\tb\t1\n", ":1: expected '?' before the first TAB, got ' A.\\tb\\t1'"},
    {"1 A?\tb\n", ":1: expected a second TAB, behind the answer, got ' A?\\tb'"},
    {"1 A?\t\t\n", ":1: expected an answer, got ' A?\\t\\t'"},
    {"1 ?\tb\t\n", ":1: expected a word before the mark, got ' '"},
    {"1 A?\tb c\t\n", ":1: expected one word as an answer, got 'b c'"},
    {"1 A?\t b\t\n", ":1: expected one word as an answer, got ' b'"},
    {"1 A? B?\tb\t\n", ":1: expected words of letters, digits, ' , and -, got 'A?'"},
    // supports
    {"1 A.\n2 B?\tc\t2\n", ":2: expected the id of an earlier line, got '2'"},
    {"1 A.\n2 B?\tc\t1 3\n", ":2: expected the id of an earlier line, got '3'"},
    {"1 A.\n2 B?\tc\t0\n", ":2: expected the id of an earlier line, got '0'"},
    {"1 A.\n2 B?\tc\t01\n", ":2: expected the id of an earlier line, got '01'"},
    {"1 A.\n2 B?\tc\t-1\n", ":2: expected the id of an earlier line, got '-1'"},
    {"1 A.\n2 B?\tc\t1x\n", ":2: expected the id of an earlier line, got '1x'"},
    {"1 A.\n2 B?\tc\t1,1\n", ":2: expected the id of an earlier line, got '1,1'"},
    {"1 A.\n2 B?\tc\t1\t1\n", ":2: expected the id of an earlier line, got '1\\t1'"},
    {"1 A.\n2 B?\tc\t18446744073709551617\n", ":2: expected the id of an earlier line, got '18446744073709551617'"},
    {"1 A?\tb\t1\n", ":1: expected the id of an earlier line, got '1'"},
    // bytes
    {std::string("1 A\0.\n", 6), ":1: expected printable ASCII, got the byte 0 at position 4"},
    {"1 A.\n2 Caf\xc3\xa9.\n", ":2: expected printable ASCII, got the byte 195 at position 6"},
    {"1 A.\r\r\n", ":1: expected printable ASCII, got the byte 13 at position 5"},
    {"1 A.\x7f\n", ":1: expected printable ASCII, got the byte 127 at position 5"},
    {"\xef\xbb\xbf"
     "1 A.\n",
     ":1: expected printable ASCII, got the byte 239 at position 1"},
    {"1 " + std::string(70, 'a') + "\n",
     ":1: expected '.' at the end of a statement, or '?' and a TAB, got ' " + std::string(59, 'a') + "'…"},
};

TEST_CASE("babi: a file that is not as it should be is refused with file, line, what was expected and what was got") {
    for (const broken& b : broken_files) {
        CAPTURE(b.bytes);
        try {
            (void)parse_babi(b.bytes, "qa1_train.txt", 1);
            FAIL_CHECK("accepted");
        } catch (const argument_error& e) {
            CHECK(std::string(e.what()) == "parse_babi: qa1_train.txt" + b.message);
        }
    }
}

void write(const std::filesystem::path& path, const std::string& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string refusal(const std::filesystem::path& folder) {
    try {
        (void)fprnn::read_babi(folder.string());
    } catch (const argument_error& e) {
        return e.what();
    }
    return "accepted";
}

TEST_CASE("babi: a folder's tasks are read into their parts, in the order of their numbers") {
    const scratch_folder scratch;
    const auto folder = scratch.path / "en-valid-10k";
    for (const std::string task : {"20", "3", "1"})
        for (const std::string part : {"train", "valid", "test"})
            write(folder / ("qa" + task + "_" + part + ".txt"), "1 Task " + task + " " + part + ".\n1 More.\n");
    write(folder / "qa21_train.txt", "not read");
    write(folder / "LICENSE", "not read");
    const auto stories = fprnn::read_babi(folder.string() + "/");
    CHECK(stories.name == "en-valid-10k");
    const std::pair<split, std::string> parts[] = {
        {split::train, "train"}, {split::validation, "valid"}, {split::test, "test"}};
    for (const auto& [part, name] : parts) {
        const auto& all = stories.of(part);
        REQUIRE(all.size() == 6);
        for (std::size_t i = 0; i < 6; ++i) {
            const index task = i < 2 ? 1 : i < 4 ? 3 : 20;
            CHECK(all[i].task == task);
            CHECK(all[i].lines == lines{i % 2 ? "more ." : "task " + std::to_string(task) + " " + name + " ."});
        }
    }
}

TEST_CASE("babi: a folder without a task, or with a part of one, is refused by name") {
    const scratch_folder scratch;
    const std::string none =
        "read_babi: expected qa1_train.txt, qa1_valid.txt, qa1_test.txt, or those of another task up to qa20, got none "
        "in '";
    CHECK(refusal(scratch.path) == none + scratch.path.string() + "'");
    CHECK(refusal(scratch.path / "nowhere") == none + (scratch.path / "nowhere").string() + "'");
    write(scratch.path / "file", "1 A.\n");
    CHECK(refusal(scratch.path / "file") == none + (scratch.path / "file").string() + "'");
    write(scratch.path / "qa7_train.txt", "1 A.\n");
    write(scratch.path / "qa7_test.txt", "1 A.\n");
    CHECK(refusal(scratch.path) == "read_babi: a task needs three parts, and '" + scratch.path.string() +
                                       "' has qa7_train.txt qa7_test.txt but not qa7_valid.txt");
    write(scratch.path / "qa7_valid.txt", "");
    CHECK(refusal(scratch.path) ==
          "parse_babi: " + scratch.path.string() + "/qa7_valid.txt: expected stories, got an empty file");
    write(scratch.path / "qa7_valid.txt", "1 A.\n2 B\n");
    CHECK(refusal(scratch.path) == "parse_babi: " + scratch.path.string() +
                                       "/qa7_valid.txt:2: expected '.' at the end of a statement, or '?' and a TAB, "
                                       "got ' B'");
    write(scratch.path / "qa7_valid.txt", "1 A.\n");
    CHECK(refusal(scratch.path) == "accepted");
    std::filesystem::create_directory(scratch.path / "qa8_train.txt");
    CHECK(refusal(scratch.path) ==
          "read_babi: " + scratch.path.string() + "/qa8_train.txt: expected a file, got none that is regular");
    std::filesystem::remove(scratch.path / "qa8_train.txt");
    write(scratch.path / "qa8_train.txt", "");
    std::filesystem::resize_file(scratch.path / "qa8_train.txt", fprnn::babi_longest_file + 1);
    CHECK(refusal(scratch.path) ==
          "read_babi: " + scratch.path.string() + "/qa8_train.txt: expected at most 268435456 bytes, got 268435457");
}

}  // namespace
