#include "io/broken_npy.hpp"
#include "io/scratch_folder.hpp"

#include <fprnn/io/npy.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace {

using fprnn::decode_npy;
using fprnn::encode_npy;
using fprnn::shape;
using fprnn::tensor;
using fprnn::testing::npy_file;
using fprnn::testing::npy_shape;

template <class T>
tensor<T> example(shape s) {
    tensor<T> x(s);
    for (fprnn::index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * i - 3);
    return x;
}

template <class T>
bool same(const tensor<T>& a, const tensor<T>& b) {
    return a.shape() == b.shape() && std::equal(a.begin(), a.end(), b.begin());
}

/// What decode_npy<double> says, without the source; empty when it takes the file.
std::string message(const std::string& bytes) {
    try {
        decode_npy<double>(bytes, "file");
        return {};
    } catch (const std::runtime_error& e) {
        const std::string what = e.what();
        REQUIRE(what.substr(0, 6) == "file: ");
        return what.substr(6);
    }
}

TEST_CASE_TEMPLATE("npy: arrays of every type and rank come back as they were written", T, float, double, std::int32_t,
                   std::int64_t) {
    const fprnn::testing::scratch_folder folder;
    for (const shape& s : {shape{}, {0}, {5}, {2, 3}, {3, 0, 2}, {2, 3, 4}, {2, 1, 3, 2}}) {
        fprnn::save_npy(folder.path / "x.npy", example<T>(s));
        CHECK(same(fprnn::load_npy<T>(folder.path / "x.npy"), example<T>(s)));
    }
}

TEST_CASE("npy: the bytes of a file are those that numpy.save writes") {
    const std::string file = encode_npy(example<std::int32_t>({2, 1}));
    CHECK(file == npy_file("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }" + std::string(58, ' ') + "\n",
                           std::string("\xfd\xff\xff\xff\xfe\xff\xff\xff", 8)));
    CHECK(file.size() == 128 + 8);
    CHECK(encode_npy(example<double>({1})).find("'shape': (1,), }") != std::string::npos);
    CHECK(encode_npy(example<double>({})).find("'shape': (), }") != std::string::npos);

    const std::filesystem::path written_by_numpy = std::filesystem::path(FPRNN_FIXTURES) / "input.npy";
    const auto x = fprnn::load_npy<double>(written_by_numpy);
    CHECK(x.shape() == shape{2, 5, 4});
    CHECK(encode_npy(x) == fprnn::read_file(written_by_numpy, 10'000));
}

TEST_CASE("npy: version 2.0, other quotes, another order of keys and other spaces are read") {
    const std::string header = "{\"shape\":(2,1,),'fortran_order':False , 'descr' : \"<f8\"  }   \n";
    const auto x = decode_npy<double>(npy_file(header, std::string(16, '\0'), 2), "file");
    CHECK(x.shape() == shape{2, 1});
    CHECK(message(npy_shape("( 1 , )", "12345678")) == "");
    CHECK(message(npy_shape("()", "12345678")) == "");
    CHECK(message(npy_shape("(0, 9223372036854775807)")) == "");
}

TEST_CASE("npy: every known way to break a file is refused, and the message says where it is broken") {
    for (const auto& broken : fprnn::testing::broken_npy()) {
        const std::string got = message(broken.bytes);
        CAPTURE(broken.message);
        CAPTURE(got);
        CHECK(got.find(broken.message) != std::string::npos);
        CHECK(got.size() < 200);
    }
}

TEST_CASE("npy: a file that ends too early is refused wherever it ends") {
    const std::string file = encode_npy(example<double>({2, 3}));
    for (std::size_t n = 0; n < file.size(); ++n) CHECK(message(file.substr(0, n)) != "");
    CHECK(message(file) == "");
}

TEST_CASE("npy: a file with a flipped bit is refused, or it is another whole file") {
    const std::string file = encode_npy(example<double>({2, 3}));
    int taken = 0;
    for (std::size_t i = 0; i < file.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string other = file;
            other[i] = static_cast<char>(other[i] ^ 1 << bit);
            try {
                const auto x = decode_npy<double>(other, "file");
                ++taken;
                CHECK(x.size() == 6);
            } catch (const std::runtime_error&) {
            }
        }
    // At least the bits of the data.
    CHECK(taken >= 6 * 64);
}

TEST_CASE("npy: the file's name and what is wrong with it are in the message") {
    const fprnn::testing::scratch_folder folder;
    const std::string path = (folder.path / "x.npy").string();
    CHECK_THROWS_WITH_AS(fprnn::load_npy<float>(path), (path + ": No such file or directory").c_str(),
                         std::runtime_error);
    fprnn::save_npy(path, example<double>({3}));
    CHECK_THROWS_WITH_AS(fprnn::load_npy<float>(path), (path + ": expected '<f4', got '<f8'").c_str(),
                         std::runtime_error);
    CHECK_THROWS_WITH_AS(fprnn::load_npy<double>(path, 100),
                         (path + ": is longer than the 100 bytes that it may have").c_str(), std::runtime_error);
}

TEST_CASE("npy: the versions differ in their headers alone") {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n";
    for (const char version : {'\1', '\2', '\3'}) CHECK(message(npy_file(header, "12345678", version)) == "");
}

}  // namespace
