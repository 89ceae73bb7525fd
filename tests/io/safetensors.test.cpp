#include "io/broken_safetensors.hpp"
#include "locales.hpp"

#include <fprnn/io/safetensors.hpp>

#include <doctest/doctest.h>

namespace {

using namespace std::string_literals;
using fprnn::argument_error;
using fprnn::decode_safetensors;
using fprnn::encode_safetensors;
using fprnn::named_array;
using fprnn::testing::one_array;
using fprnn::testing::safetensors_file;

bool same(const named_array& a, const named_array& b) {
    return a.name == b.name && a.dtype == b.dtype && a.extents == b.extents && a.bytes == b.bytes;
}

/// Arrays of every kind: a scalar, an empty one, more extents than fprnn::shape has, a name that needs
/// escapes.
const std::vector<named_array> several = {{"one byte", "U8", {1}, "x"},
                                          {"scalar", "F64", {}, "12345678"},
                                          {"nothing", "F32", {0, 3}, ""},
                                          {"\"blocks\".0.\\Q\n\u00fc", "I32", {2, 1}, "abcdefgh"},
                                          {"deep", "BF16", {1, 1, 1, 1, 1, 3}, "ABCDEF"}};

/// What decode_safetensors says, without the source; empty when it takes the file.
std::string message(const std::string& bytes) {
    try {
        decode_safetensors(bytes, "file");
        return {};
    } catch (const std::runtime_error& e) {
        const std::string what = e.what();
        REQUIRE(what.substr(0, 6) == "file: ");
        return what.substr(6);
    }
}

TEST_CASE("safetensors: arrays and metadata come back as they were written, in their order") {
    const fprnn::safetensors_metadata metadata{{"format", "pt"}, {"empty", ""}, {"line\n", "\u03bb"}};
    const auto file = decode_safetensors(encode_safetensors(several, metadata), "file");
    REQUIRE(file.arrays.size() == several.size());
    for (std::size_t i = 0; i < several.size(); ++i) CHECK(same(file.arrays[i], several[i]));
    CHECK(file.metadata == metadata);

    const auto nothing = decode_safetensors(encode_safetensors({}), "file");
    CHECK(nothing.arrays.empty());
    CHECK(nothing.metadata.empty());
}

TEST_CASE("safetensors: what has been decoded can be moved") {
    auto first = decode_safetensors(encode_safetensors({several[0]}), "file");
    auto second = std::move(first);
    fprnn::safetensors_content third;
    third = std::move(second);
    REQUIRE(third.arrays.size() == 1);
    CHECK(third.arrays[0].bytes == "x");
    CHECK(third.arrays[0].bytes.data() >= third.storage.data());
    CHECK(third.arrays[0].bytes.data() < third.storage.data() + third.storage.size());
}

TEST_CASE("safetensors: the bytes of a file are those of the format, and every array is aligned in it") {
    CHECK(encode_safetensors({{"b", "U8", {3}, "xyz"}, {"a", "F32", {1}, "1234"}}, {{"k", "v"}}) ==
          safetensors_file(R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                           R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}     )",
                           "1234xyz"));
    const auto file = decode_safetensors(encode_safetensors(several), "file");
    for (const auto& a : file.arrays)
        CHECK((a.bytes.data() - file.storage.data()) % fprnn::detail::element_size(a.dtype) == 0);
}

TEST_CASE("safetensors: files that others may write are read") {
    // Spaces around and after the header, fields and arrays in any order, an array of every dtype.
    CHECK(message(safetensors_file("{ } \n\t\r")) == "");
    CHECK(message(one_array(R"( "shape" : [ 2 , 2 ] , "data_offsets":[0,4],"dtype":"U8")", "1234")) == "");
    CHECK(message(safetensors_file(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},"__metadata__":{},)"
                                   R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                                   "12345")) == "");
    // Empty arrays may stand anywhere between two others.
    CHECK(message(safetensors_file(R"({"c":{"dtype":"F64","shape":[0,9223372036854775807],"data_offsets":[4,4]},)"
                                   R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})",
                                   "12345")) == "");
    for (const char* dtype : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"})
        CHECK(message(one_array("\"dtype\":\""s + dtype + R"(","shape":[4],"data_offsets":[0,4])", "1234")) == "");
    for (const char* dtype : {"I16", "U16", "F16", "BF16"})
        CHECK(message(one_array("\"dtype\":\""s + dtype + R"(","shape":[2],"data_offsets":[0,4])", "1234")) == "");
    for (const char* dtype : {"I32", "U32", "F32"})
        CHECK(message(one_array("\"dtype\":\""s + dtype + R"(","shape":[1],"data_offsets":[0,4])", "1234")) == "");
    for (const char* dtype : {"I64", "U64", "F64", "C64"})
        CHECK(message(one_array("\"dtype\":\""s + dtype + R"(","shape":[],"data_offsets":[0,8])", "12345678")) == "");
}

TEST_CASE("safetensors: every known way to break a file is refused, and the message says where it is broken") {
    for (const auto& broken : fprnn::testing::broken_safetensors()) {
        const std::string got = message(broken.bytes);
        CAPTURE(broken.message);
        CAPTURE(got);
        CHECK(got.find(broken.message) != std::string::npos);
        CHECK(got.size() < 400);
    }
}

TEST_CASE("safetensors: a message shows no control characters and no more than the start of a name") {
    const std::string name(10'000, 'n');
    CHECK(message(safetensors_file("{\"" + name + "\":1}")) ==
          "array '" + name.substr(0, 64) + "…': expected an object, got 1");
    CHECK(message(safetensors_file("{\"\\u001b[2J\":1}")) == "array '?[2J': expected an object, got 1");
}

TEST_CASE("safetensors: a file that ends too early is refused wherever it ends") {
    const std::string file = encode_safetensors(several, {{"k", "v"}});
    for (std::size_t n = 0; n < file.size(); ++n) CHECK(message(file.substr(0, n)) != "");
    CHECK(message(file) == "");
}

TEST_CASE("safetensors: a file with a flipped bit is refused, or it is another whole file") {
    const std::string file = encode_safetensors({several[0], several[1]}, {{"k", "v"}});
    int taken = 0;
    for (std::size_t i = 0; i < file.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string other = file;
            other[i] = static_cast<char>(other[i] ^ 1 << bit);
            try {
                const auto content = decode_safetensors(other, "file");
                ++taken;
                REQUIRE(content.arrays.size() == 2);
                CHECK(content.arrays[0].bytes.size() + content.arrays[1].bytes.size() == 9);
            } catch (const std::runtime_error&) {
            }
        }
    // At least the bits of the data.
    CHECK(taken >= 9 * 8);
}

TEST_CASE("safetensors: arrays that a file cannot hold are the caller's mistake") {
    const auto refused = [](std::vector<named_array> arrays, const char* what) {
        CHECK_THROWS_WITH_AS((void)encode_safetensors(arrays), what, argument_error);
    };
    refused({{"a", "U8", {1}, "x"}, {"a", "U8", {1}, "y"}}, "encode_safetensors: the name 'a' is used twice");
    refused({{"__metadata__", "U8", {1}, "x"}},
            "encode_safetensors: array '__metadata__': the name belongs to the format");
    refused({{"a", "float", {1}, "1234"}}, "encode_safetensors: array 'a': unknown dtype 'float'");
    refused({{"a", "F32", {2}, "1234"}}, "encode_safetensors: array 'a': F32 [2] takes 8 bytes, got 4");
    refused({{"a", "F32", {-1}, "1234"}}, "encode_safetensors: extents must not be negative, got 1 and -1");
    refused({{"a", "U8", std::vector<fprnn::index>(65, 1), "x"}},
            "encode_safetensors: array 'a': more than 64 extents");
    refused({{"\xff", "U8", {1}, "x"}}, "encode_safetensors: a name or the metadata are not UTF-8");
    CHECK_THROWS_WITH_AS((void)encode_safetensors({}, {{"k", "\xc0\x80"}}),
                         "encode_safetensors: a name or the metadata are not UTF-8", argument_error);
}

TEST_CASE("safetensors: complex numbers are pairs of floats, aligned as doubles are") {
    const std::complex<float> numbers[] = {{1, -2}, {0.5f, 0}};
    const std::string_view bytes(reinterpret_cast<const char*>(numbers), sizeof numbers);
    const std::string_view dtype = fprnn::dtype_of<std::complex<float>>;
    CHECK(dtype == "C64");
    const auto file =
        decode_safetensors(encode_safetensors({{"b", "U8", {1}, "x"}, {"z", std::string(dtype), {2}, bytes}}), "file");
    REQUIRE(file.arrays.size() == 2);
    CHECK(file.arrays[1].dtype == dtype);
    CHECK(file.arrays[1].bytes == bytes);
    CHECK((file.arrays[1].bytes.data() - file.storage.data()) % 8 == 0);
    CHECK(message(one_array(R"("dtype":"C64","shape":[2],"data_offsets":[0,8])", "12345678")) ==
          "array 'a': C64 [2] has 2 elements of 8 bytes, but data_offsets [0,8] hold 8 bytes");
}

TEST_CASE("safetensors: what is wrong with a number is said in its own digits in any locale") {
    fprnn::testing::with_decimal_commas([] {
        CHECK(message(one_array(R"("dtype":"U8","shape":[4.5],"data_offsets":[0,4])", "1234")) ==
              "array 'a', shape: expected integers from 0 to 2^63 - 1, got '4.5'");
    });
}

}  // namespace
