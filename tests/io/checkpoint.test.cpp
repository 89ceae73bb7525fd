#include "io/scratch_folder.hpp"
#include "locales.hpp"

#include <fprnn/io/checkpoint.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace {

namespace fs = std::filesystem;
using fprnn::checkpoints_in;
using fprnn::decode_checkpoint;
using fprnn::encode_checkpoint;
using fprnn::index;
using fprnn::load_latest_checkpoint;
using fprnn::parameter_tree;
using fprnn::save_checkpoint;
using fprnn::tensor;
using fprnn::training_state;
using fprnn::testing::scratch_folder;
using json = nlohmann::ordered_json;
using rule = fprnn::initialiser::rule;

const json configuration{{"group", "A5"}, {"d_model", 64}, {"note", "a \"checksum\":\"0000000000000000\" within"}};
const fprnn::training_options options{.optimiser = {.learning_rate = 0.25}};

template <class T>
parameter_tree<T> numbers(std::uint64_t s) {
    parameter_tree<T> tree;
    tree.add({"blocks.0.Q", {3, 4}, {rule::normal, 1}, true}, {s});
    tree.add({"none", {0, 8}, {rule::normal, 1}}, {s});
    tree.add({"scalar", {}, {rule::normal, 1}}, {s});
    return tree;
}

/// A state that has come to `steps`, all of whose numbers follow from it.
template <class T = float>
training_state<T> example(index steps) {
    const auto s = static_cast<std::uint64_t>(steps);
    training_state<T> state(numbers<T>(s), options);
    state.optimiser.restore(steps, numbers<T>(s + 100), numbers<T>(s + 200));
    state.last_good = numbers<T>(s + 300);
    state.steps = steps;
    state.last_good_steps = steps - (steps > 0);
    state.sequences = 128 * steps;
    state.length = 7;
    state.learnt = std::fmod(0.1 * static_cast<double>(steps), 1.0);
    state.seconds = 1.0 / 3 * static_cast<double>(steps);
    return state;
}

template <class T>
bool equal(const fprnn::ongoing_sequences<T>& a, const fprnn::ongoing_sequences<T>& b) {
    return a.sequence == b.sequence && a.window == b.window && a.left == b.left &&
           std::equal(a.carry.blocks.begin(), a.carry.blocks.end(), b.carry.blocks.begin(), b.carry.blocks.end(),
                      [](const tensor<T>& x, const tensor<T>& y) {
                          // A block without a carry has a tensor of no numbers, for whose null pointer memcmp
                          // is not defined.
                          return x.shape() == y.shape() &&
                                 std::ranges::equal(
                                     std::as_bytes(std::span(x.data(), static_cast<std::size_t>(x.size()))),
                                     std::as_bytes(std::span(y.data(), static_cast<std::size_t>(y.size()))));
                      });
}
template <class T>
bool equal(const training_state<T>& a, const training_state<T>& b) {
    const auto same_bits = [](const parameter_tree<T>& x, const parameter_tree<T>& y) {
        return x.size() == y.size() &&
               std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * sizeof(T)) == 0;
    };
    return same_bits(a.theta, b.theta) && same_bits(a.last_good, b.last_good) &&
           same_bits(a.optimiser.first_moment(), b.optimiser.first_moment()) &&
           same_bits(a.optimiser.second_moment(), b.optimiser.second_moment()) &&
           a.optimiser.steps() == b.optimiser.steps() && a.steps == b.steps && a.sequences == b.sequences &&
           a.last_good_steps == b.last_good_steps && a.length == b.length && a.learnt == b.learnt &&
           a.seconds == b.seconds && equal(a.ongoing, b.ongoing);
}

/// Why the bytes are refused, with a state that then stays as it was; nothing when they are taken.
template <class T = float>
std::string refusal(const std::string& bytes, training_state<T> state = example<T>(3), const json& c = configuration) {
    const auto before = state;
    std::string said;
    try {
        decode_checkpoint(bytes, "file", state, c);
    } catch (const std::runtime_error& e) {
        said = e.what();
        CHECK(equal(state, before));
    }
    return said;
}

/// The checkpoint of example(5) with a change to its content and a checksum that fits it.
template <class Change>
std::string changed(Change change) {
    const auto file = fprnn::decode_safetensors(encode_checkpoint(example(5), configuration), "file");
    auto arrays = file.arrays;
    auto metadata = file.metadata;
    change(arrays, metadata);
    if (metadata.contains("checksum")) metadata["checksum"] = fprnn::detail::checksum_zeros;
    std::string bytes = fprnn::encode_safetensors(arrays, metadata);
    const auto at = fprnn::detail::find_checksum(bytes, fprnn::detail::checksum_zeros);
    if (at != bytes.npos) bytes.replace(at, 16, fprnn::detail::checksum_of(bytes, at));
    return bytes;
}

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(folder)) names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

TEST_CASE_TEMPLATE("checkpoint: what is saved is loaded to the bit", T, float, double) {
    const scratch_folder folder;
    auto state = example<T>(1200);
    state.theta["scalar"][0] = std::numeric_limits<T>::denorm_min();
    state.theta["blocks.0.Q"][0] = -T(0);
    state.learnt = std::nextafter(0.3, 1.0);
    state.seconds = 1e5 / 3;
    state.sequences = std::numeric_limits<index>::max();
    const auto path = save_checkpoint(folder.path, state, configuration);
    CHECK(path == folder.path / "checkpoint-00001200.safetensors");

    auto other = example<T>(0);
    const auto search = load_latest_checkpoint(folder.path, other, configuration);
    CHECK(search.taken == path);
    CHECK(search.refused.empty());
    CHECK(equal(other, state));
    CHECK(encode_checkpoint(other, configuration) == encode_checkpoint(state, configuration));
}

template <class T>
training_state<T> going_on(index steps) {
    auto state = example<T>(steps);
    state.ongoing.sequence = {std::numeric_limits<index>::max(), 3};
    state.ongoing.window = {0, 7};
    state.ongoing.left = {5, 0};
    state.ongoing.carry.blocks = {tensor<T>({2, 3}, {1, -T(0), 3, 4, std::numeric_limits<T>::denorm_min(), 6}),
                                  tensor<T>({2, 0}), tensor<T>({2, 1}, {7, 8})};
    return state;
}

TEST_CASE_TEMPLATE("checkpoint: sequences that go on are saved with their windows and carries", T, float, double) {
    const auto state = going_on<T>(4);
    const std::string bytes = encode_checkpoint(state, configuration);
    auto other = example<T>(0);
    decode_checkpoint(bytes, "file", other, configuration);
    CHECK(equal(other, state));
    CHECK(encode_checkpoint(other, configuration) == bytes);
    decode_checkpoint(encode_checkpoint(example<T>(5), configuration), "file", other, configuration);
    CHECK(other.ongoing.window.empty());
    CHECK(other.ongoing.carry.blocks.empty());
}

TEST_CASE("checkpoint: sequences that go on and do not fit together are refused by their array") {
    const std::vector<index> five{5}, minus{0, -1};
    const std::vector<float> numbers{1, std::numeric_limits<float>::infinity()};
    const auto of = [](const std::vector<index>& x) {
        return std::string_view(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(index));
    };
    const auto with = [&](std::vector<fprnn::named_array> extra) {
        return refusal(changed([&](auto& arrays, auto&) { arrays.insert(arrays.end(), extra.begin(), extra.end()); }));
    };
    const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), 8);
    const fprnn::named_array sequence{"ongoing.sequence", "I64", {1}, of(five)};
    const fprnn::named_array window{"ongoing.window", "I64", {1}, of(five)}, left{"ongoing.left", "I64", {1}, of(five)};
    CHECK(with({sequence}) == "file: array 'ongoing.window': expected I64 of one extent, got nothing");
    CHECK(with({sequence, window}) == "file: array 'ongoing.left': expected I64 of one extent, got nothing");
    CHECK(with({window}) == "file: expected no array 'ongoing.window'");
    CHECK(with({{"ongoing.sequence", "F32", {2}, bytes}, window}) ==
          "file: array 'ongoing.sequence': expected I64 of one extent, got F32 [2]");
    CHECK(with({sequence, {"ongoing.window", "I64", {2}, of(minus)}}) ==
          "file: array 'ongoing.window': expected as many numbers as of ongoing.sequence, got I64 [2]");
    CHECK(with({{"ongoing.sequence", "I64", {2}, of(minus)}, window}) ==
          "file: array 'ongoing.sequence': expected numbers from 0 on, got -1 at position 1");
    CHECK(with({sequence, window, left, {"ongoing.carry.0", "F32", {2, 1}, bytes}}) ==
          "file: array 'ongoing.carry.0': expected F32 [1,numbers], got F32 [2,1]");
    CHECK(with({sequence, window, left, {"ongoing.carry.0", "F32", {1, 2}, bytes}}) ==
          "file: array 'ongoing.carry.0': expected finite numbers, got inf at position 1");
    CHECK(with({sequence, window, left, {"ongoing.carry.1", "F32", {1, 2}, bytes}}) ==
          "file: expected no array 'ongoing.carry.1'");
}

TEST_CASE("checkpoint: the optimiser keeps the options that it was made with, and which parameters decay") {
    training_state<float> state(numbers<float>(1), {.optimiser = {.learning_rate = 0.5, .weight_decay = 0.7}});
    decode_checkpoint(encode_checkpoint(example(5), configuration), "file", state, configuration);
    CHECK(state.optimiser.options().learning_rate == 0.5);
    auto expected = state;
    const auto zero = state.theta.zeros_like();
    state.optimiser.restore(5, zero, zero);
    state.optimiser.step(state.theta, zero);
    for (index i = 0; i < 12; ++i)
        CHECK(state.theta["blocks.0.Q"][i] ==
              doctest::Approx(0.65 * expected.theta["blocks.0.Q"][i]).epsilon(3e-7).scale(0));
}

TEST_CASE("checkpoint: other programs find the arrays and the numbers under the names that docs/files.md lists") {
    const auto file = fprnn::decode_safetensors(encode_checkpoint(example(5), configuration), "file");
    std::vector<std::string> names;
    for (const auto& a : file.arrays) names.push_back(a.name);
    std::sort(names.begin(), names.end());
    std::vector<std::string> expected;
    for (const char* tree : {"first_moment.", "last_good.", "second_moment.", "theta."})
        for (const char* name : {"blocks.0.Q", "none", "scalar"}) expected.push_back(std::string(tree) + name);
    CHECK(names == expected);
    auto metadata = file.metadata;
    CHECK(json::parse(metadata["configuration"]) == configuration);
    CHECK(metadata["checksum"].size() == 16);
    metadata.erase("configuration");
    metadata.erase("checksum");
    CHECK(metadata == fprnn::safetensors_metadata{{"format", "fprnn checkpoint"},
                                                  {"version", "1"},
                                                  {"step", "5"},
                                                  {"last_good_step", "4"},
                                                  {"sequences", "640"},
                                                  {"length", "7"},
                                                  {"learnt", "0.5"},
                                                  {"seconds", "1.6666666666666665"}});
}

TEST_CASE("checkpoint: the last two are kept, and nothing else is removed") {
    const scratch_folder folder;
    for (const char* name : {"checkpoint-x.safetensors", "checkpoint-00000001.safetensors.refused", "metrics.csv",
                             "checkpoint-00000002.safetensors.77-0.part", "checkpoint-00000001.safetensors.77-0.part"})
        fprnn::write_file(folder.path / name, "");
    fs::last_write_time(folder.path / "checkpoint-00000001.safetensors.77-0.part",
                        fs::file_time_type::clock::now() - std::chrono::hours(2));
    save_checkpoint(folder.path, example(500), configuration);
    for (const index steps : {10, 20, 30, 30, 40}) save_checkpoint(folder.path, example(steps), configuration);
    // The one from far ahead is not this run's.
    CHECK(names_in(folder.path) ==
          std::vector<std::string>{"checkpoint-00000001.safetensors.refused",
                                   "checkpoint-00000002.safetensors.77-0.part", "checkpoint-00000030.safetensors",
                                   "checkpoint-00000040.safetensors", "checkpoint-00000500.safetensors",
                                   "checkpoint-x.safetensors", "metrics.csv"});
    const auto all = checkpoints_in(folder.path);
    REQUIRE(all.size() == 3);
    CHECK(all[0].first == 500);
    CHECK(all[2].second == folder.path / "checkpoint-00000030.safetensors");
    CHECK(checkpoints_in(folder.path / "none").empty());
}

TEST_CASE("checkpoint: what cannot be written takes nothing away") {
    const scratch_folder folder;
    for (const index steps : {10, 20}) save_checkpoint(folder.path, example(steps), configuration);
    fs::create_directory(folder.path / "checkpoint-00000030.safetensors");
    CHECK_THROWS_AS(save_checkpoint(folder.path, example(30), configuration), std::runtime_error);
    CHECK(names_in(folder.path).size() == 3);

    auto over = example(30);
    over.steps = 29;
    CHECK_THROWS_WITH_AS(save_checkpoint(folder.path, over, configuration),
                         "encode_checkpoint: expected a state that can go on, got one of 29 steps whose optimiser has "
                         "taken 30",
                         fprnn::argument_error);
}

TEST_CASE("checkpoint: one that ends early is refused, wherever it ends") {
    const std::string bytes = encode_checkpoint(example(5), configuration);
    REQUIRE(refusal(bytes.substr(0, bytes.size() - 1)) != "");
    for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 100) CHECK(refusal(bytes.substr(0, n)) != "");
    CHECK(refusal(bytes + " ") != "");
}

TEST_CASE("checkpoint: a bit that flips is found, wherever it is") {
    const std::string bytes = encode_checkpoint(example(5), configuration);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 1 << i % 8);
        CHECK_MESSAGE(refusal(damaged) != "", "byte " << i);
    }
    std::string damaged = bytes;
    damaged.back() ^= 1;
    CHECK(refusal(damaged).find("file: damaged: its checksum is ") == 0);
}

TEST_CASE("checkpoint: another configuration is refused with the first option that differs") {
    json other = configuration;
    other["d_model"] = 32;
    CHECK(refusal(encode_checkpoint(example(5), other)) ==
          "file: of another configuration: d_model: expected 64, got 32");
    // Said of the configuration and not of the shapes, of which it is the reason.
    parameter_tree<float> small;
    small.add({"blocks.0.Q", {3, 2}, {}});
    CHECK(refusal(encode_checkpoint(training_state<float>(small, options), other)) ==
          "file: of another configuration: d_model: expected 64, got 32");
}

TEST_CASE("checkpoint: of another model, the first array that does not fit is named") {
    const auto of = [](auto&& add) {
        parameter_tree<float> theta;
        theta.add({"blocks.0.Q", {3, 4}, {}});
        theta.add({"none", {0, 8}, {}});
        add(theta);
        return refusal(encode_checkpoint(training_state<float>(theta, options), configuration));
    };
    CHECK(of([](auto&) {}) == "file: array 'theta.scalar': expected F32 [], got nothing");
    const auto scalar_as_vector = [](auto& t) { t.add({"scalar", {1}, {}}); };
    CHECK(of(scalar_as_vector) == "file: array 'theta.scalar': expected F32 [], got F32 [1]");
    CHECK(of([](auto& t) {
              t.add({"scalar", {}, {}});
              t.add({"more", {}, {}});
          }).find("file: expected no array '") == 0);
    CHECK(refusal(encode_checkpoint(example<double>(5), configuration)) ==
          "file: array 'theta.blocks.0.Q': expected F32 [3,4], got F64 [3,4]");
    CHECK(refusal(changed([](auto& arrays, auto&) {
              for (auto& a : arrays)
                  if (a.name == "second_moment.none") a.name = "second_moment.nun";
          })) == "file: array 'second_moment.none': expected F32 [0,8], got nothing");
}

TEST_CASE("checkpoint: what is no checkpoint, of another version or out of range is said to be") {
    const auto with = [](const char* key, const char* text) {
        return refusal(changed([&](auto&, auto& metadata) {
            if (text)
                metadata[key] = text;
            else
                metadata.erase(key);
        }));
    };
    CHECK(with("seconds", "1.5") == "");
    CHECK(with("version", "2") == "file: expected version 1, got '2'");
    CHECK(with("format", "pt") == "file: not a checkpoint: its format is 'pt'");
    CHECK(with("format", nullptr) == "file: not a checkpoint: no format in its metadata");
    for (const char* key :
         {"version", "checksum", "configuration", "step", "last_good_step", "sequences", "length", "learnt", "seconds"})
        CHECK(with(key, nullptr) == std::string("file: not a checkpoint: no ") + key + " in its metadata");
    const std::string most = std::to_string(std::numeric_limits<index>::max());
    CHECK(with("step", "-1") == "file: step: expected a number from 0 to " + most + ", got '-1'");
    CHECK(with("step", "") == "file: step: expected a number from 0 to " + most + ", got ''");
    CHECK(with("step", "5x") == "file: step: expected a number from 0 to " + most + ", got '5x'");
    CHECK(with("step", "9223372036854775808") ==
          "file: step: expected a number from 0 to " + most + ", got '9223372036854775808'");
    CHECK(with("last_good_step", "6") == "file: last_good_step: expected a number from 0 to 5, got '6'");
    CHECK(with("length", "0") == "file: length: expected a number from 1 to " + most + ", got '0'");
    CHECK(with("learnt", "nan") == "file: learnt: expected a number from 0 to 1, got 'nan'");
    CHECK(with("seconds", "inf") == "file: seconds: expected a number from 0 to 1.7976931348623157e+308, got 'inf'");
    CHECK(with("configuration", "{") ==
          "file: of another configuration: expected an object of JSON, got text that is none");
    CHECK(refusal("{}") == "file: too short for the 8 bytes of a header's length, got 2");
}

TEST_CASE("checkpoint: its configuration can be read alone, and only of one that is whole") {
    const std::string bytes = encode_checkpoint(example(5), configuration);
    CHECK(json::parse(fprnn::checkpoint_configuration(bytes, "file")) == configuration);
    std::string damaged = bytes;
    damaged[bytes.find("d_model")] = 'D';
    CHECK_THROWS_AS((void)fprnn::checkpoint_configuration(damaged, "file"), std::runtime_error);
    CHECK_THROWS_AS((void)fprnn::checkpoint_configuration(bytes.substr(0, bytes.size() - 1), "file"),
                    std::runtime_error);
}

TEST_CASE("checkpoint: numbers that no training has are refused with their array and place") {
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const auto with = [](const char* array, float x) {
        return refusal(changed([&](auto& arrays, auto&) {
            for (auto& a : arrays)
                if (a.name == array) {
                    static std::string bytes;
                    bytes = a.bytes;
                    std::memcpy(bytes.data() + 7 * sizeof x, &x, sizeof x);
                    a.bytes = bytes;
                }
        }));
    };
    for (const char* tree : {"theta", "first_moment", "second_moment", "last_good"})
        for (const float x : {-inf, nan, inf}) {
            if (x > 0 && tree == std::string("second_moment")) continue;
            const std::string array = std::string(tree) + ".blocks.0.Q";
            CHECK(with(array.c_str(), x) == "file: array '" + array + "': expected finite numbers, got " +
                                                fprnn::detail::number_text(x) + " at position 7");
        }
    // Without clipping, the square of a large gradient is infinite, and AdamW leaves that parameter alone.
    CHECK(with("second_moment.blocks.0.Q", inf) == "");
}

TEST_CASE("checkpoint: where the newest are damaged, the newest that is whole is taken, and they are named once") {
    const scratch_folder folder;
    const auto path = [&](const char* step) {
        return folder.path / ("checkpoint-" + std::string(step) + ".safetensors");
    };
    for (const index steps : {10, 20}) save_checkpoint(folder.path, example(steps), configuration);
    fs::copy_file(path("00000020"), path("00000030"));
    fprnn::write_file(path("00000040"), "abc");

    auto state = example(0);
    auto search = load_latest_checkpoint(folder.path, state, configuration);
    CHECK(equal(state, example(20)));
    CHECK(search.taken == path("00000020"));
    CHECK(search.refused == std::vector<std::string>{
                                path("00000040").string() + ": too short for the 8 bytes of a header's length, got 3",
                                path("00000030").string() + ": holds step 20"});
    CHECK(names_in(folder.path) == std::vector<std::string>{"checkpoint-00000010.safetensors",
                                                            "checkpoint-00000020.safetensors",
                                                            "checkpoint-00000030.safetensors.refused",
                                                            "checkpoint-00000040.safetensors.refused"});
    search = load_latest_checkpoint(folder.path, state, configuration);
    CHECK(search.taken == path("00000020"));
    CHECK(search.refused.empty());
}

TEST_CASE("checkpoint: what killed processes did not come to remove is removed by the one that goes on") {
    const scratch_folder folder;
    for (const index steps : {10, 20, 30, 40})
        fprnn::write_file(folder.path / ("checkpoint-000000" + std::to_string(steps) + ".safetensors"),
                          encode_checkpoint(example(steps), configuration));
    auto state = example(0);
    CHECK(load_latest_checkpoint(folder.path, state, configuration).refused.empty());
    CHECK(equal(state, example(40)));
    CHECK(names_in(folder.path) ==
          std::vector<std::string>{"checkpoint-00000030.safetensors", "checkpoint-00000040.safetensors"});
}

TEST_CASE("checkpoint: where none is whole, all reasons are given and nothing is changed") {
    const scratch_folder folder;
    for (const index steps : {10, 20}) save_checkpoint(folder.path, example(steps), configuration);
    json other = configuration;
    other["group"] = "S3";
    const auto names = names_in(folder.path);
    auto state = example(3);
    const std::string path = (folder.path / "checkpoint-000000").string();
    const std::string reason = ".safetensors: of another configuration: group: expected \"S3\", got \"A5\"";
    CHECK_THROWS_WITH_AS(load_latest_checkpoint(folder.path, state, other),
                         ("no checkpoint in " + folder.path.string() + " can be taken: " + path + "20" + reason + "; " +
                          path + "10" + reason)
                             .c_str(),
                         std::runtime_error);
    CHECK(equal(state, example(3)));
    CHECK(names_in(folder.path) == names);
}

TEST_CASE("checkpoint: a folder without any leaves the state at its beginning") {
    const scratch_folder folder;
    auto state = example(0);
    CHECK_FALSE(load_latest_checkpoint(folder.path, state, configuration).taken.has_value());
    CHECK_FALSE(load_latest_checkpoint(folder.path / "none", state, configuration).taken.has_value());
    CHECK(equal(state, example(0)));
}

TEST_CASE("checkpoint: its folder is made where it lacks; what cannot be one is named") {
    const scratch_folder folder;
    const auto path = folder.path / "a" / "b";
    const auto state = example(5);
    CHECK(save_checkpoint(path, state, configuration) == path / "checkpoint-00000005.safetensors");
    auto read = example(3);
    CHECK(load_latest_checkpoint(path, read, configuration).taken);
    CHECK(equal(read, state));
    fprnn::write_file(folder.path / "file", "");
    CHECK_THROWS_AS(save_checkpoint(folder.path / "file", state, configuration), std::runtime_error);
    CHECK_THROWS_AS(save_checkpoint(folder.path / "file" / "c", state, configuration), std::runtime_error);
}

TEST_CASE("checkpoint: a configuration that it takes is one that can go on") {
    const auto state = example(5);
    for (const json& taken : {json(), json::object(), json{{"time_limit", HUGE_VAL}, {"rate", NAN}},
                              json{{"files", "caf\xe9"}}, json{{"nested", {{"lengths", {1, 2}}}}}}) {
        const scratch_folder folder;
        save_checkpoint(folder.path, state, taken);
        auto read = example(3);
        CHECK(load_latest_checkpoint(folder.path, read, taken).taken);
        CHECK(equal(read, state));
    }
    json deep = 1;
    for (int level = 0; level < 20; ++level) deep = json{{"deeper", deep}};
    for (const auto& [refused, why] : {std::pair<json, const char*>{json(5), "expected an object of JSON, got number"},
                                       {json::array(), "expected an object of JSON, got array"},
                                       {deep, "expected at most 16 levels of JSON, got more"}})
        CHECK_THROWS_WITH_AS(encode_checkpoint(state, refused),
                             (std::string("encode_checkpoint: configuration: ") + why).c_str(), fprnn::argument_error);
}

TEST_CASE("checkpoint: a folder that cannot be listed is not one without checkpoints") {
    const scratch_folder folder;
    fprnn::write_file(folder.path / "file", "");
    auto state = example(3);
    CHECK_THROWS_WITH_AS(load_latest_checkpoint(folder.path / "file", state, configuration),
                         ((folder.path / "file").string() + ": cannot be listed: Not a directory").c_str(),
                         std::runtime_error);
    for (const char* none : {"none", "file/none"})
        CHECK(!load_latest_checkpoint(folder.path / none, state, configuration).taken);
}

TEST_CASE("checkpoint: written in one locale, it is read in every other") {
    const json fractions{{"learning_rate", 0.003}, {"steps", 12000}};
    const std::string bytes = encode_checkpoint(example(5), fractions);
    const auto check = [&] {
        CHECK(encode_checkpoint(example(5), fractions) == bytes);
        CHECK(refusal(bytes, example(3), fractions) == "");
    };
    check();
    fprnn::testing::with_decimal_commas(check);
}

}  // namespace
