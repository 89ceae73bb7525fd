#include "io/broken_safetensors.hpp"
#include "io/scratch_folder.hpp"

#include <fprnn/io/parameters.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/sequence_model.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace {

using fprnn::decode_parameters;
using fprnn::encode_parameters;
using fprnn::load_parameters;
using fprnn::parameter_tree;
using fprnn::precision;
using fprnn::save_parameters;
using rule = fprnn::initialiser::rule;
using scratch_folder = fprnn::testing::scratch_folder;

template <class T>
parameter_tree<T> example(fprnn::seed s = {}) {
    parameter_tree<T> tree;
    tree.add({"blocks.0.Q", {3, 4}, {rule::normal, 1, 0}}, s);
    tree.add({"scalar", {}, {rule::normal, 1, 0}}, s);
    tree.add({"none", {0, 8}, {rule::normal, 1, 0}}, s);
    tree.add({"head", {2, 2, 1, 1}, {rule::normal, 1, 0}}, s);
    return tree;
}

template <class T>
bool same_bits(const parameter_tree<T>& a, const parameter_tree<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

TEST_CASE_TEMPLATE("parameters file: what is saved is loaded to the bit, with its metadata", T, float, double) {
    const scratch_folder folder;
    auto theta = example<T>({1});
    theta["head"][0] = -T(0);
    theta["head"][1] = std::numeric_limits<T>::max();
    theta["head"][2] = std::numeric_limits<T>::denorm_min();
    save_parameters(folder.path / "theta.safetensors", theta, {{"step", "12"}});

    auto other = example<T>({2});
    CHECK(load_parameters(folder.path / "theta.safetensors", other) == fprnn::safetensors_metadata{{"step", "12"}});
    CHECK(same_bits(other, theta));
}

TEST_CASE("parameters file: a model's parameters have the names that docs/files.md lists") {
    const fprnn::models::sequence_model model(
        fprnn::models::fp_mamba<2>(),
        {.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .d_state = 2, .layers = 2});
    const auto theta = model.init<float>(fprnn::seed{1});
    const auto file = fprnn::decode_safetensors(encode_parameters(theta), "file");
    std::vector<std::string> names;
    for (const auto& a : file.arrays) names.push_back(a.name);
    std::vector<std::string> expected{"embedding"};
    for (const char* block : {"blocks.0.", "blocks.1."})
        for (const char* name : {"norm.weight", "x", "delta", "delta.bias", "Q.u", "Q.alpha", "Q.alpha.bias", "b", "c",
                                 "ssm.omega", "D", "y_norm.weight", "y_norm.bias", "z", "out"})
            expected.push_back(std::string(block) + name);
    expected.insert(expected.end(), {"head.norm.weight", "head.logits"});
    std::sort(names.begin(), names.end());
    std::sort(expected.begin(), expected.end());
    CHECK(names == expected);
}

TEST_CASE("parameters file: float and double are converted on request alone") {
    const auto narrow = example<float>({1});
    auto wide = example<double>({2});
    const auto before = wide;
    CHECK_THROWS_WITH_AS(decode_parameters(encode_parameters(narrow), "file", wide),
                         "file: parameter 'blocks.0.Q': expected F64, got F32 (precision::converted would take it)",
                         std::runtime_error);
    CHECK(same_bits(wide, before));
    decode_parameters(encode_parameters(narrow), "file", wide, precision::converted);
    for (fprnn::index i = 0; i < wide.size(); ++i) CHECK(wide.data()[i] == static_cast<double>(narrow.data()[i]));

    auto back = example<float>({3});
    wide["scalar"][0] = 0.1;
    decode_parameters(encode_parameters(wide), "file", back, precision::converted);
    CHECK(back["scalar"][0] == 0.1f);
    CHECK(back["blocks.0.Q"][11] == narrow["blocks.0.Q"][11]);

    // The same precision is taken as it is, whatever was asked for.
    decode_parameters(encode_parameters(narrow), "file", back, precision::converted);
    CHECK(same_bits(back, narrow));
}

TEST_CASE("parameters file: what does not fit is named with what was expected and found, and nothing is changed") {
    auto theta = example<float>({1});
    const auto before = theta;
    const auto refused = [&](const std::string& bytes, const char* what, precision p = precision::same) {
        CHECK_THROWS_WITH_AS(decode_parameters(bytes, "file", theta, p), what, std::runtime_error);
        CHECK(same_bits(theta, before));
    };
    const auto changed = [](auto&& change) {
        const std::string bytes = encode_parameters(example<float>({2}));
        auto file = fprnn::decode_safetensors(bytes, "file");
        change(file.arrays);
        return fprnn::encode_safetensors(file.arrays);
    };

    refused(changed([](auto& arrays) { arrays[3].name = "tail"; }),
            "file: parameter 'head': expected [2,2,1,1], the file has no array of that name");
    refused(changed([](auto& arrays) { arrays.pop_back(); }),
            "file: parameter 'head': expected [2,2,1,1], the file has no array of that name");
    refused(changed([](auto& arrays) {
                arrays.push_back({"more\n", "U8", {1}, "x"});
            }),
            "file: expected no parameter 'more?', got one of U8 [1]");
    refused(changed([](auto& arrays) {
                arrays[0].extents = {4, 3};
            }),
            "file: parameter 'blocks.0.Q': expected [3,4], got [4,3]");
    refused(changed([](auto& arrays) { arrays[1].extents = {1}; }), "file: parameter 'scalar': expected [], got [1]");
    refused(changed([](auto& arrays) {
                arrays[3].extents = {2, 2, 1, 1, 1};
            }),
            "file: parameter 'head': expected [2,2,1,1], got [2,2,1,1,1]");
    refused(changed([](auto& arrays) { arrays[3].dtype = "I32"; }), "file: parameter 'head': expected F32, got I32",
            precision::converted);
    refused("{}", "file: too short for the 8 bytes of a header's length, got 2");

    auto large = example<double>({2});
    large["head"][3] = 1e39;
    refused(encode_parameters(large),
            "file: parameter 'head': expected numbers that a float can hold, got 1e+39 at position 3",
            precision::converted);
}

TEST_CASE(
    "parameters file: numbers that are not finite are refused with their parameter and place, in either precision") {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
        const std::string what = "file: parameter 'blocks.0.Q': expected finite numbers, got " +
                                 fprnn::detail::number_text(bad) + " at position 11";
        const auto refused = [&]<class File, class T>(parameter_tree<File> file, parameter_tree<T> theta, precision p) {
            const auto before = theta;
            file["blocks.0.Q"][11] = static_cast<File>(bad);
            CHECK_THROWS_WITH_AS(decode_parameters(encode_parameters(file), "file", theta, p), what.c_str(),
                                 std::runtime_error);
            CHECK(same_bits(theta, before));
        };
        refused(example<float>({1}), example<float>({2}), precision::same);
        refused(example<double>({1}), example<double>({2}), precision::same);
        refused(example<float>({1}), example<double>({2}), precision::converted);
        refused(example<double>({1}), example<float>({2}), precision::converted);
    }
}

TEST_CASE("parameters file: the file's name and what is wrong with it are in the message") {
    const scratch_folder folder;
    auto theta = example<float>({1});
    const std::string path = (folder.path / "theta.safetensors").string();
    CHECK_THROWS_WITH_AS(load_parameters(path, theta), (path + ": No such file or directory").c_str(),
                         std::runtime_error);
    CHECK_THROWS_WITH_AS(load_parameters(folder.path, theta), (folder.path.string() + ": Is a directory").c_str(),
                         std::runtime_error);
    fprnn::write_file(path, "abc");
    CHECK_THROWS_WITH_AS(load_parameters(path, theta),
                         (path + ": too short for the 8 bytes of a header's length, got 3").c_str(),
                         std::runtime_error);
    CHECK_THROWS_AS(save_parameters(folder.path / "none" / "theta.safetensors", theta), std::runtime_error);
}

TEST_CASE("read_file: reads no more than the bound, from whatever it is") {
    const scratch_folder folder;
    const auto path = folder.path / "file";
    const std::string text(200'000, 'x');
    fprnn::write_file(path, text);
    CHECK(fprnn::read_file(path, 200'000) == text);
    CHECK_THROWS_WITH_AS(fprnn::read_file(path, 199'999),
                         (path.string() + ": is longer than the 199999 bytes that it may have").c_str(),
                         std::runtime_error);
    CHECK_THROWS_AS(fprnn::read_file("/dev/zero", 100'000), std::runtime_error);
    CHECK(fprnn::read_file("/dev/null", 0).empty());
}

}  // namespace
