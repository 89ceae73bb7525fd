#include "rows.hpp"

#include <fprnn/tasks/text.hpp>
#include <fprnn/train/sampler.hpp>

#include <io/scratch_folder.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::ignored_target;
using fprnn::index;
using fprnn::split;
using fprnn::text_files;
using fprnn::testing::scratch_folder;
using rows::batch;
using rows::draw;
using rows::row;

static_assert(fprnn::sampler<const text_files::random_window_sampler>);
static_assert(fprnn::sampler<const text_files::consecutive_window_sampler>);

constexpr split parts[] = {split::train, split::validation, split::test};

void write(const std::filesystem::path& path, const std::string& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
}

// Bytes of all 256 values in an order of their own, so that a byte says much of its position.
std::string noise(std::size_t n, unsigned state) {
    std::string bytes;
    for (std::size_t i = 0; i < n; ++i) {
        state = state * 1664525u + 1013904223u;
        bytes += static_cast<char>(state >> 24);
    }
    return bytes;
}

std::string text_of(const std::vector<std::int32_t>& tokens) {
    std::string bytes;
    for (const std::int32_t x : tokens) bytes += static_cast<char>(x);
    return bytes;
}

// A folder of n files named 0.txt, 1.txt, …, of 3 + i bytes each.
void write_many(const std::filesystem::path& folder, int n) {
    for (int i = 0; i < n; ++i)
        write(folder / (std::to_string(i) + ".txt"), noise(static_cast<std::size_t>(i) + 3, static_cast<unsigned>(i)));
}

std::map<std::string, split> parts_of(const text_files& data) {
    std::map<std::string, split> found;
    for (const split part : parts)
        for (const std::string& name : data.files(part)) CHECK(found.emplace(name, part).second);
    return found;
}

std::string refusal(const std::string& path, const fprnn::text_options& options = {}) {
    try {
        const text_files data(path, options);
    } catch (const argument_error& e) {
        return e.what();
    }
    return "accepted";
}

TEST_CASE("files are read below all folders and joined in the order of their relative paths, byte by byte") {
    const scratch_folder scratch;
    const auto root = scratch.path / "corpus";
    write(root / "b", "B");
    write(root / "a" / "z" / "deep", "deep");
    write(root / "a-b", "minus");
    write(root / "a" / "1", "one");
    write(root / "Z", "Zed");
    write(root / "\xc3\xa9", "\xc3\xa9t\xc3\xa9");
    write(root / ".hidden", "dot");
    std::filesystem::create_directories(root / "empty" / "emptier");
    const text_files data(root.string(), {.validation_share = 0});
    CHECK(data.files(split::train) ==
          std::vector<std::string>{".hidden", "Z", "a-b", "a/1", "a/z/deep", "b", "\xc3\xa9"});
    CHECK(data.bytes(split::train) == "dotZedminusonedeepB\xc3\xa9t\xc3\xa9");
    CHECK(data.bytes(split::validation).empty());
    CHECK(data.files(split::test).empty());
}

TEST_CASE("each file is in one part, and each part is its files in order") {
    const scratch_folder scratch;
    write_many(scratch.path, 40);
    const text_files data(scratch.path.string(), {.validation_share = 0.2, .test_share = 0.2});
    CHECK(parts_of(data).size() == 40);
    for (const split part : parts) {
        std::string joined;
        for (const std::string& name : data.files(part)) {
            const int i = std::stoi(name);
            joined += noise(static_cast<std::size_t>(i) + 3, static_cast<unsigned>(i));
        }
        CHECK(data.bytes(part) == joined);
        CHECK(std::is_sorted(data.files(part).begin(), data.files(part).end()));
        CHECK(data.files(part).size() >= 2);
    }
}

TEST_CASE("a file's part depends on its relative path alone: not on other files, the folder or its bytes") {
    const scratch_folder scratch;
    const auto many = scratch.path / "many", few = scratch.path / "few";
    write_many(many, 300);
    for (int i = 0; i < 300; i += 2) write(few / (std::to_string(i) + ".txt"), "other");
    const fprnn::text_options options{.validation_share = 0.1, .test_share = 0.1};
    const text_files all(many.string(), options), half(few.string(), options);
    const auto of_all = parts_of(all), of_half = parts_of(half);
    CHECK(of_half.size() == 150);
    for (const auto& [name, part] : of_half) CHECK(of_all.at(name) == part);
    // A test part takes files from training alone.
    CHECK(text_files(many.string()).files(split::validation) == all.files(split::validation));
    // Computed by another program: parts must not change with a compiler or a machine.
    std::vector<std::string> validation;
    for (const char* i : {"100", "126", "144", "148", "154", "170", "178", "180", "218", "226", "230", "248", "262",
                          "266", "280", "48", "50", "6", "86"})
        validation.push_back(std::string(i) + ".txt");
    CHECK(half.files(split::validation) == validation);
    CHECK(half.files(split::test).size() == 17);
    CHECK(fprnn::detail::position_of("a") == 0.8405305372456284);
    CHECK(fprnn::detail::position_of("") == 0.5749205682089403);
}

TEST_CASE("shares are those of the files") {
    const scratch_folder scratch;
    for (int i = 0; i < 1500; ++i) write(scratch.path / std::to_string(i), "x");
    const text_files data(scratch.path.string(), {.validation_share = 0.1, .test_share = 0.3});
    const auto count = [&](split part) { return static_cast<double>(data.files(part).size()); };
    CHECK(std::abs(count(split::validation) - 150) < 4 * std::sqrt(1500 * 0.1 * 0.9));
    CHECK(std::abs(count(split::test) - 450) < 4 * std::sqrt(1500 * 0.3 * 0.7));
}

TEST_CASE("every part that is asked for has a file, whatever the shares and the names") {
    for (int n = 2; n <= 5; ++n)
        for (const char* suffix : {"", ".a", ".b", ".c", ".d", ".e"}) {
            const scratch_folder scratch;
            for (int i = 0; i < n; ++i) write(scratch.path / (std::to_string(i) + suffix), "x");
            const auto size = static_cast<std::size_t>(n);
            for (const double v : {0.0, 1e-9, 0.1, 0.5, 0.999}) {
                const text_files data(scratch.path.string(), {.validation_share = v});
                const std::size_t held = data.files(split::validation).size();
                CHECK((held > 0) == (v > 0));
                CHECK(held < size);
                CHECK(data.files(split::train).size() == size - held);
                CHECK(data.files(split::test).empty());
                if (v == 1e-9) CHECK(held == 1);
                if (v == 0.999) CHECK(held == size - 1);
                if (n == 2) continue;
                for (const double t : {1e-9, 0.4, 0.999}) {
                    if (v + t >= 1) continue;
                    const text_files three(scratch.path.string(), {.validation_share = v, .test_share = t});
                    CHECK((three.files(split::validation).empty() == (v == 0)));
                    CHECK_FALSE(three.files(split::test).empty());
                    CHECK_FALSE(three.files(split::train).empty());
                    CHECK(parts_of(three).size() == size);
                }
            }
        }
}

TEST_CASE(
    "a single file is cut: its end is validation, test what stands before, whether its folder is named or itself") {
    const scratch_folder scratch;
    const std::string bytes = noise(1005, 1);
    write(scratch.path / "one" / "file.txt", bytes);
    write(scratch.path / "one" / "empty", "");
    for (const auto& path : {scratch.path / "one", scratch.path / "one" / "file.txt"}) {
        const text_files two(path.string());
        CHECK(two.bytes(split::train) == bytes.substr(0, 905));
        CHECK(two.bytes(split::validation) == bytes.substr(905));
        CHECK(two.bytes(split::test).empty());
        const text_files three(path.string(), {.test_share = 0.5});
        CHECK(three.bytes(split::train) == bytes.substr(0, 403));
        CHECK(three.bytes(split::test) == bytes.substr(403, 502));
        CHECK(three.bytes(split::validation) == bytes.substr(905));
        for (const split part : parts) CHECK(three.files(part) == std::vector<std::string>{"file.txt"});
    }
}

TEST_CASE("names are the last component of the path, 256 tokens and classes") {
    const scratch_folder scratch;
    write(scratch.path / "corpus" / "a.txt", "hello world");
    const std::string root = scratch.path.string();
    CHECK(text_files(root + "/corpus").name() == "corpus");
    CHECK(text_files(root + "/corpus//").name() == "corpus");
    CHECK(text_files(root + "/corpus/.").name() == "corpus");
    CHECK(text_files(root + "/corpus/../corpus/./").name() == "corpus");
    CHECK(text_files(root + "/corpus/a.txt").name() == "a.txt");
    CHECK(fprnn::detail::last_component("/") == "/");
    CHECK(fprnn::detail::last_component("a") == "a");
    CHECK(text_files::vocabulary() == 256);
    CHECK(text_files::classes() == 256);
}

TEST_CASE("all 256 bytes are tokens: zero, line ends and those above 127 as they are") {
    const scratch_folder scratch;
    std::string bytes;
    for (int i = 0; i < 257; ++i) bytes += static_cast<char>(i);
    bytes += std::string("\r\n\0\x1a\n", 5);
    write(scratch.path / "bytes", bytes);
    const text_files data((scratch.path / "bytes").string(), {.validation_share = 0});
    const auto b = draw(data.consecutive_windows(split::train), 1, 256);
    for (index i = 0; i < 256; ++i) {
        CHECK(b.tokens(0, i) == i);
        CHECK(b.targets(0, i) == (i + 1) % 256);
    }
    CHECK(data.bytes(split::train) == bytes);
}

TEST_CASE("consecutive windows show every byte of a part once, and ask for each but the first once") {
    const scratch_folder scratch;
    for (const std::size_t n : {2u, 3u, 21u, 64u, 65u, 66u, 1000u}) {
        const std::string bytes = noise(n, static_cast<unsigned>(n));
        write(scratch.path / "x" / "file", bytes);
        const text_files data((scratch.path / "x").string(), {.validation_share = 0});
        const auto windows = data.consecutive_windows(split::train);
        for (const index T : {1, 2, 3, 7, 20, 63, 64}) {
            if (T >= static_cast<index>(n)) continue;
            CAPTURE(n);
            CAPTURE(T);
            const index count = windows.windows(T);
            const auto b = draw(windows, count, T);
            const std::vector<std::int32_t> tokens(b.tokens.begin(), b.tokens.end()),
                targets(b.targets.begin(), b.targets.end());
            const auto in_targets = static_cast<std::size_t>(
                std::count_if(targets.begin(), targets.end(), [](std::int32_t y) { return y != ignored_target; }));
            REQUIRE(in_targets == n - 1);
            // Rows are the text itself, so the ignored ones are at the end.
            CHECK(text_of({targets.begin(), targets.begin() + static_cast<long>(n - 1)}) == bytes.substr(1));
            const std::size_t shown = std::min(tokens.size(), n);
            CHECK(shown >= n - 1);
            CHECK(text_of({tokens.begin(), tokens.begin() + static_cast<long>(shown)}) == bytes.substr(0, shown));
            for (std::size_t i = shown; i < tokens.size(); ++i) CHECK(tokens[i] == 0);
            // Fewer at a time are the same.
            for (index w = 0; w < count; ++w) {
                const auto alone = draw(windows, 1, T, static_cast<std::uint64_t>(w));
                CHECK(row(alone.tokens, 0) == row(b.tokens, w));
                CHECK(row(alone.targets, 0) == row(b.targets, w));
            }
        }
    }
}

TEST_CASE("windows of a part are of its files alone") {
    const scratch_folder scratch;
    write_many(scratch.path, 40);
    const text_files data(scratch.path.string(), {.validation_share = 0.2, .test_share = 0.2});
    for (const split part : parts) {
        const auto windows = data.consecutive_windows(part);
        const auto b = draw(windows, windows.windows(1), 1);
        CHECK(text_of({b.targets.begin(), b.targets.end()}) == data.bytes(part).substr(1));
        const auto random = draw(data.random_windows({3}, part), 200, 9);
        for (index s = 0; s < 200; ++s)
            CHECK(data.bytes(part).find(text_of(row(random.tokens, s))) != std::string_view::npos);
    }
}

TEST_CASE("random windows are T bytes of the text with the next ones for targets, and begin everywhere as often") {
    const scratch_folder scratch;
    const std::string bytes = noise(60, 5);
    write(scratch.path / "file", bytes);
    const text_files data(scratch.path.string(), {.validation_share = 0});
    constexpr index T = 20, B = 20000;
    const auto b = draw(data.random_windows({8}), B, T);
    std::vector<double> count(60 - T);
    for (index s = 0; s < B; ++s) {
        const std::size_t begin = bytes.find(text_of(row(b.tokens, s)));
        REQUIRE(begin < count.size());
        REQUIRE(text_of(row(b.targets, s)) == bytes.substr(begin + 1, T));
        ++count[begin];
    }
    double chi_square = 0;
    const double expected = static_cast<double>(B) / static_cast<double>(count.size());
    for (const double c : count) chi_square += (c - expected) * (c - expected) / expected;
    const auto freedom = static_cast<double>(count.size() - 1);
    CHECK(chi_square < freedom + 4.5 * std::sqrt(2 * freedom));
}

TEST_CASE("a random window depends on its number alone, and differs between seeds and parts") {
    const scratch_folder scratch;
    const std::string bytes = noise(100000, 2);
    // Equal bytes in all parts, so that only the position tells them apart.
    for (int i = 0; i < 40; ++i) write(scratch.path / std::to_string(i), bytes);
    const text_files data(scratch.path.string(), {.validation_share = 0.3, .test_share = 0.3});
    const auto whole = draw(data.random_windows({1}), 12, 16, 50);
    for (index s = 11; s >= 0; --s) {
        const auto alone = draw(data.random_windows({1}), 1, 16, 50 + static_cast<std::uint64_t>(s));
        CHECK(row(alone.tokens, 0) == row(whole.tokens, s));
        CHECK(row(alone.targets, 0) == row(whole.targets, s));
    }
    std::set<std::vector<std::int32_t>> all;
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (const split part : parts) {
            const auto b = draw(data.random_windows({seed}, part), 20, 16);
            for (index s = 0; s < 20; ++s) all.insert(row(b.tokens, s));
        }
    // Positions repeat after 100,000 bytes: of 180 independent ones 0.16 pairs are equal on average.
    CHECK(all.size() >= 177);
}

TEST_CASE("parts of equal bytes have other random windows for one seed") {
    const scratch_folder scratch;
    const std::string half = noise(5000, 4);
    write(scratch.path / "file", half + half);
    const text_files data(scratch.path.string(), {.validation_share = 0.5});
    REQUIRE(data.bytes(split::train) == data.bytes(split::validation));
    const auto train = draw(data.random_windows({7}), 30, 12);
    const auto validation = draw(data.random_windows({7}, split::validation), 30, 12);
    index equal = 0;
    for (index s = 0; s < 30; ++s) equal += row(train.tokens, s) == row(validation.tokens, s);
    CHECK(equal <= 1);
}

TEST_CASE("samplers outlive the text, and copies share its bytes") {
    const scratch_folder scratch;
    write(scratch.path / "file", noise(500, 3));
    auto data = std::make_unique<text_files>(scratch.path.string());
    const auto copy = *data;
    CHECK(copy.bytes(split::train).data() == data->bytes(split::train).data());
    const auto random = data->random_windows({1});
    const auto consecutive = data->consecutive_windows(split::validation);
    const auto before = draw(random, 4, 8);
    data.reset();
    std::filesystem::remove(scratch.path / "file");
    CHECK(row(draw(random, 4, 8).tokens, 3) == row(before.tokens, 3));
    CHECK(consecutive.windows(7) == 7);
    CHECK(draw(consecutive, 7, 7).targets(6, 6) == static_cast<unsigned char>(copy.bytes(split::validation)[49]));
}

TEST_CASE("symbolic links below the folder are not followed: no file is read twice, and circles end") {
    const scratch_folder scratch;
    const auto root = scratch.path / "corpus";
    write(root / "a" / "file", "once");
    write(scratch.path / "elsewhere" / "file", "outside");
    std::filesystem::create_directory_symlink(root, root / "a" / "circle");
    std::filesystem::create_directory_symlink("..", root / "a" / "up");
    std::filesystem::create_directory_symlink(scratch.path / "elsewhere", root / "out");
    std::filesystem::create_symlink("file", root / "a" / "again");
    std::filesystem::create_symlink("itself", root / "itself");
    std::filesystem::create_symlink("nowhere", root / "broken");
    const text_files data(root.string(), {.validation_share = 0});
    CHECK(data.bytes(split::train) == "once");
    // The path itself may be one.
    std::filesystem::create_directory_symlink(root, scratch.path / "link");
    const text_files linked((scratch.path / "link").string(), {.validation_share = 0});
    CHECK(linked.bytes(split::train) == "once");
    CHECK(linked.name() == "link");
    CHECK(text_files((scratch.path / "link//").string()).name() == "link");
    CHECK(refusal((root / "itself").string()).find("(Too many levels of symbolic links)") != std::string::npos);
}

TEST_CASE("pipes are left out below a folder, and refused as the path") {
    const scratch_folder scratch;
    write(scratch.path / "file", "bytes");
    const std::string pipe = (scratch.path / "pipe").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(text_files(scratch.path.string(), {.validation_share = 0}).bytes(split::train) == "bytes");
    CHECK(refusal(pipe) == "text_files: path must lead to a file or a folder, got '" + pipe + "' (neither)");
}

TEST_CASE("a path that leads nowhere, an empty folder and empty files are refused with the path") {
    const scratch_folder scratch;
    const std::string root = scratch.path.string();
    CHECK(refusal(root + "/none") ==
          "text_files: path must lead to a file or a folder, got '" + root + "/none' (No such file or directory)");
    CHECK(refusal("") == "text_files: path must lead to a file or a folder, got '' (No such file or directory)");
    CHECK(refusal(root) ==
          "text_files: path must lead to a file with at least one byte, got '" + root + "' with 0 files without any");
    write(scratch.path / "a", "");
    write(scratch.path / "b" / "c", "");
    CHECK(refusal(root) ==
          "text_files: path must lead to a file with at least one byte, got '" + root + "' with 2 files without any");
    CHECK(refusal(root + "/a") ==
          "text_files: path must lead to a file with at least one byte, got '" + root + "/a' with 1 files without any");
}

TEST_CASE("a file or a folder that cannot be read is named") {
    if (::geteuid() == 0) return;  // root reads all
    for (const char* locked : {"locked", "folder"}) {
        const scratch_folder scratch;
        write(scratch.path / "file", "bytes");
        write(scratch.path / "locked", "bytes");
        write(scratch.path / "folder" / "inner", "bytes");
        const std::string path = (scratch.path / locked).string();
        ::chmod(path.c_str(), 0);
        try {
            const text_files data(scratch.path.string());
            FAIL("it was read");
        } catch (const std::runtime_error& e) {
            const std::string message = e.what();
            CHECK(message.find(path) == 0);
            CHECK(message.find(": Permission denied") != std::string::npos);
        }
        ::chmod(path.c_str(), 0700);
    }
}

TEST_CASE("a file that became shorter, one that is gone and one that is no file are named") {
    const scratch_folder scratch;
    write(scratch.path / "file", "bytes");
    const std::string path = (scratch.path / "file").string();
    std::string bytes = "before";
    CHECK_THROWS_WITH_AS(fprnn::detail::append_file(path, 6, bytes),
                         (path + ": became shorter than 6 bytes while it was read").c_str(), std::runtime_error);
    CHECK_THROWS_WITH_AS(fprnn::detail::append_file(path + "s", 6, bytes),
                         (path + "s: No such file or directory").c_str(), std::runtime_error);
    CHECK_THROWS_WITH_AS(fprnn::detail::append_file(scratch.path.string(), 6, bytes),
                         (scratch.path.string() + ": Is a directory").c_str(), std::runtime_error);
    CHECK_THROWS_WITH_AS((void)fprnn::detail::files_below(path), (path + "/: Not a directory").c_str(),
                         std::runtime_error);
    bytes = "before";
    fprnn::detail::append_file(path, 4, bytes);
    CHECK(bytes == "beforebyte");
}

TEST_CASE("shares out of their range, too few files and too many bytes are refused") {
    const scratch_folder scratch;
    write(scratch.path / "a", "12345");
    write(scratch.path / "b", "67890");
    const std::string root = scratch.path.string();
    const std::string shares =
        "text_files: validation_share and test_share must be at least 0 and together below 1, got ";
    CHECK(refusal(root, {.validation_share = 1}) == shares + "1 and 0");
    CHECK(refusal(root, {.validation_share = -0.5}) == shares + "-0.5 and 0");
    CHECK(refusal(root, {.validation_share = 0.5, .test_share = 0.5}) == shares + "0.5 and 0.5");
    CHECK(refusal(root, {.test_share = -1e-3}) == shares + "0.1 and -0.001");
    CHECK(refusal(root, {.validation_share = std::nan("")}) == shares + "nan and 0");
    CHECK(refusal(root, {.test_share = 0.1}) ==
          "text_files: training, validation and test need a file each, or one for all, which is cut, got '" + root +
              "' with 2 files");
    CHECK(refusal(root, {.validation_share = 0, .test_share = 0.1}) == "accepted");
    CHECK(refusal(root, {.most_bytes = 9}) ==
          "text_files: path must lead to at most most_bytes = 9 bytes, got '" + root + "' with 10");
    CHECK(refusal(root, {.most_bytes = 10}) == "accepted");
}

TEST_CASE("a part with fewer than T + 1 bytes is refused with both numbers and the part") {
    const scratch_folder scratch;
    write(scratch.path / "corpus" / "file", noise(100, 1));
    const text_files data((scratch.path / "corpus").string());
    const auto message = [](const char* T, const char* least, const char* has) {
        return std::string("text_files: windows of T = ") + T + " need at least " + least + " bytes, got " + has +
               " part of 'corpus'";
    };
    CHECK_NOTHROW(draw(data.random_windows({1}), 3, 89));
    CHECK_THROWS_WITH_AS(draw(data.random_windows({1}), 3, 90), message("90", "91", "90 in the training").c_str(),
                         argument_error);
    CHECK_NOTHROW(draw(data.consecutive_windows(split::validation), 1, 9));
    CHECK_THROWS_WITH_AS(draw(data.consecutive_windows(split::validation), 1, 10),
                         message("10", "11", "10 in the validation").c_str(), argument_error);
    CHECK_THROWS_WITH_AS((void)data.consecutive_windows(split::test).windows(1),
                         message("1", "2", "0 in the test").c_str(), argument_error);
    CHECK_THROWS_WITH_AS((void)data.consecutive_windows(split::train).windows(std::numeric_limits<index>::max()),
                         message("9223372036854775807", "9223372036854775808", "90 in the training").c_str(),
                         argument_error);
}

TEST_CASE("windows beyond the last, T = 0 and arrays of different shapes are refused") {
    const scratch_folder scratch;
    write(scratch.path / "corpus" / "file", noise(100, 1));
    const text_files data((scratch.path / "corpus").string());
    const auto windows = data.consecutive_windows(split::train);
    CHECK(windows.windows(20) == 5);
    CHECK_NOTHROW(draw(windows, 2, 20, 3));
    CHECK_NOTHROW(draw(windows, 0, 20, 5));
    CHECK_THROWS_WITH_AS(draw(windows, 2, 20, 4),
                         "text_files: 'corpus' has 5 windows of T = 20, got first = 4 and B = 2", argument_error);
    CHECK_THROWS_WITH_AS((void)windows.windows(0), "text_files: T must be at least 1, got 0", argument_error);
    CHECK_NOTHROW(draw(data.random_windows({1}), 4, 0));
    CHECK_NOTHROW(draw(data.random_windows({1}), 0, 4));
    fprnn::tensor<std::int32_t> tokens({2, 3}), targets({3, 2});
    const char* shapes = "text_files: tokens and targets must both be [B,T], got [2,3] and [3,2]";
    CHECK_THROWS_WITH_AS(windows(tokens, targets, 0), shapes, argument_error);
    CHECK_THROWS_WITH_AS(data.random_windows({1})(tokens, targets, 0), shapes, argument_error);
    const std::uint64_t last = (std::uint64_t{1} << 62) - 1;
    CHECK_NOTHROW(draw(data.random_windows({1}), 1, 4, last));
    CHECK_THROWS_AS(draw(data.random_windows({1}), 2, 4, last), argument_error);
}

TEST_CASE("bits_per_byte: a uniform guess of 256 costs 8 bits") {
    CHECK(fprnn::bits_per_byte(std::log(256.0)) == doctest::Approx(8));
    CHECK(fprnn::bits_per_byte(0) == 0);
}

}  // namespace
