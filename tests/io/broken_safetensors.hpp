#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Files that a reader of safetensors must refuse, each with what it must say. Tests check the message, the
/// fuzzer starts from the bytes.
namespace fprnn::testing {

struct broken_file {
    std::string bytes;
    std::string message;
};

/// A file with this header, whose length is right unless one is given.
inline std::string safetensors_file(std::string_view header, std::string_view data = {}, std::int64_t length = -1) {
    const std::uint64_t n = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
    std::string file(8, '\0');
    std::memcpy(file.data(), &n, 8);
    return file.append(header).append(data);
}
/// A file of one array "a" with these fields.
inline std::string one_array(std::string_view fields, std::string_view data = {}) {
    return safetensors_file("{\"a\":{" + std::string(fields) + "}}", data);
}

inline std::vector<broken_file> broken_safetensors() {
    using namespace std::string_literals;
    const auto nested = [](std::size_t depth) { return "{\"a\":" + std::string(depth, '['); };
    const auto largest = "9223372036854775807"s;
    const std::string two = R"("b":{"dtype":"U8","shape":[4],"data_offsets":)";
    std::string many_extents = R"("dtype":"U8","data_offsets":[0,1],"shape":[1)";
    for (int i = 0; i < 64; ++i) many_extents += ",1";

    return {
        // The length of the header.
        {"", "too short for the 8 bytes of a header's length, got 0"},
        {"1234567", "too short for the 8 bytes of a header's length, got 7"},
        {safetensors_file("{}", "", 3), "truncated: expected at least 11 bytes, which the header alone takes, got 10"},
        {safetensors_file("{}", "", 100'000'000),
         "truncated: expected at least 100000008 bytes, which the header alone takes, got 10"},
        {safetensors_file("{}", "", 100'000'001), "a header of 100000001 bytes, at most 100000000 are allowed"},
        {"\0\0\0\0\0\0\0\x80{}"s, "a header of 9223372036854775808 bytes, at most 100000000 are allowed"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}"s,
         "a header of 18446744073709551615 bytes, at most 100000000 are allowed"},
        // Text that is not one JSON object in UTF-8.
        {safetensors_file(""), "the header does not begin with '{'"},
        {safetensors_file(" {}"), "the header does not begin with '{'"},
        {safetensors_file("\xef\xbb\xbf{}"), "the header does not begin with '{'"},
        {safetensors_file("[]"), "the header does not begin with '{'"},
        {safetensors_file("{"), "the header is not JSON in UTF-8, see its byte 2"},
        {safetensors_file("{}{}"), "the header is not JSON in UTF-8, see its byte 3"},
        {safetensors_file("{} \0"s), "the header is not JSON in UTF-8, see its byte 4"},
        {safetensors_file("{}\0{\"a\":1}"s), "the header is not JSON in UTF-8, see its byte 3"},
        {safetensors_file("{/**/}"), "the header is not JSON in UTF-8, see its byte 2"},
        {safetensors_file("{\"a\xff\":1}"), "the header is not JSON in UTF-8, see its byte 4"},
        {safetensors_file("{\"\xc0\x80\":1}"), "the header is not JSON in UTF-8, see its byte 3"},
        {safetensors_file("{\"\xed\xa0\x80\":1}"), "the header is not JSON in UTF-8, see its byte 4"},
        {safetensors_file("{\"\\ud800\":1}"), "the header is not JSON in UTF-8, see its byte 9"},
        {safetensors_file("{\"a\":NaN}"), "the header is not JSON in UTF-8, see its byte 6"},
        // JSON that is no header.
        {safetensors_file("{\"a\":1}"), "array 'a': expected an object, got 1"},
        {safetensors_file("{\"a\":null}"), "array 'a': expected an object, got null"},
        {safetensors_file("{\"a\\n\":true}"), "array 'a?': expected an object, got a boolean"},
        {safetensors_file(nested(100'000)), "array 'a': expected an object, got an array"},
        {one_array(R"("dtype":{"a":{}})"), "array 'a', dtype: expected a string, got an object"},
        {one_array(R"("dtype":["F32"])"), "array 'a', dtype: expected a string, got an array"},
        {one_array(R"("dtype":"F32","shape":[0],"data_offsets":[0,0],"strides":[1])"),
         "array 'a': unknown field 'strides', expected are dtype, shape and data_offsets"},
        {one_array(R"("dtype":"F32","shape":[0])"),
         "array 'a': expected dtype, shape and data_offsets, one is missing"},
        {one_array(""), "array 'a': expected dtype, shape and data_offsets, one is missing"},
        {safetensors_file(R"({"__metadata__":{"a":1}})"), "__metadata__, key 'a': expected a string, got 1"},
        {safetensors_file(R"({"__metadata__":{"a":{}}})"), "__metadata__, key 'a': expected a string, got an object"},
        {safetensors_file(R"({"__metadata__":"a"})"), "__metadata__: expected an object, got a string"},
        // Duplicates, also where the names are the same only when they are read.
        {safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                          R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                          "12"),
         "the name 'a' is used twice"},
        {one_array(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"shape":[2,2])", "1234"),
         "array 'a': shape is there twice"},
        {safetensors_file(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ is there twice"},
        {safetensors_file(R"({"__metadata__":{"k":"1","k":"2"}})"), "__metadata__: the key 'k' is used twice"},
        // Numbers.
        {one_array(R"("dtype":"U8","shape":[-1],"data_offsets":[0,0])"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got -1"},
        {one_array(R"("dtype":"U8","shape":[-0],"data_offsets":[0,0])"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got -0"},
        {one_array(R"("dtype":"U8","shape":[4],"data_offsets":[-4,0])", "1234"),
         "array 'a', data_offsets: expected two integers from 0 to 2^63 - 1, got -4"},
        {one_array(R"("dtype":"U8","shape":[4],"data_offsets":[0,4.0])", "1234"),
         "array 'a', data_offsets: expected two integers from 0 to 2^63 - 1, got '4.0'"},
        {one_array(R"("dtype":"U8","shape":[1e0],"data_offsets":[0,1])", "1"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got '1e0'"},
        {one_array(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1])", "1"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got 9223372036854775808"},
        {one_array(R"("dtype":"U8","shape":[18446744073709551617],"data_offsets":[0,1])", "1"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got '18446744073709551617'"},
        {one_array("\"dtype\":\"U8\",\"shape\":[" + std::string(1000, '9') + "],\"data_offsets\":[0,1]", "1"),
         "the header is not JSON in UTF-8, see its byte 1028"},
        {one_array(R"("dtype":"U8","shape":[true],"data_offsets":[0,1])", "1"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got a boolean"},
        {one_array(R"("dtype":"U8","shape":[[1]],"data_offsets":[0,1])", "1"),
         "array 'a', shape: expected integers from 0 to 2^63 - 1, got an array"},
        {one_array(R"("dtype":"U8","shape":"1","data_offsets":[0,1])", "1"),
         "array 'a', shape: expected an array of integers, got a string"},
        {one_array(R"("dtype":"U8","shape":[1],"data_offsets":[0])", "1"),
         "array 'a', data_offsets: expected two integers, got fewer"},
        {one_array(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,1])", "1"),
         "array 'a', data_offsets: expected two integers from 0 to 2^63 - 1, got 1"},
        {one_array(many_extents + "]", "1"), "array 'a', shape: more than 64 extents"},
        // Numbers that do not fit each other.
        {one_array(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])", "1234"), "array 'a': unknown dtype 'F31'"},
        {one_array(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", "1234"), "array 'a': unknown dtype 'f32'"},
        {one_array(R"("dtype":"F4","shape":[8],"data_offsets":[0,4])", "1234"),
         "array 'a': the elements of dtype 'F4' are not whole bytes and are not read"},
        {one_array(R"("dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3])", "123"),
         "array 'a': the elements of dtype 'F6_E3M2' are not whole bytes"},
        {one_array(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])", "1234"),
         "array 'a': data_offsets [4,0] end before they begin"},
        {one_array(R"("dtype":"U8","shape":[5],"data_offsets":[0,5])", "1234"),
         "truncated: expected 66 bytes, got 65; array 'a': data_offsets [0,5] reach beyond the file"},
        {one_array("\"dtype\":\"U8\",\"shape\":[" + largest + "],\"data_offsets\":[0," + largest + "]", "1234"),
         "truncated: expected 9223372036854775904 bytes, got 101; array 'a': data_offsets [0," + largest +
             "] reach beyond the file"},
        // The whole that is missing, not only the first array that is not whole.
        {safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)" + two + "[4,8]}}", "123"),
         "truncated: expected 121 bytes, got 116; array 'a': data_offsets [0,4] reach beyond the file"},
        {one_array(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "1234"),
         "array 'a': F32 [2] has 2 elements of 4 bytes, but data_offsets [0,4] hold 4 bytes"},
        {one_array(R"("dtype":"F32","shape":[1],"data_offsets":[0,5])", "12345"),
         "array 'a': F32 [1] has 1 elements of 4 bytes, but data_offsets [0,5] hold 5 bytes"},
        {one_array(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])", "1234"),
         "array 'a': F32 [0] has 0 elements of 4 bytes, but data_offsets [0,4] hold 4 bytes"},
        {one_array(R"("dtype":"F32","shape":[],"data_offsets":[0,0])"),
         "array 'a': F32 [] has 1 elements of 4 bytes, but data_offsets [0,0] hold 0 bytes"},
        // 2^32 · 2^32 and 2^33 · (2^31 + 1) · … wrap to 0 and to a small number.
        {one_array(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
         "array 'a': U8 [4294967296,4294967296] has more elements than 64 bits can count"},
        {one_array(R"("dtype":"U8","shape":[3,6148914691236517207],"data_offsets":[0,5])", "12345"),
         "array 'a': U8 [3,6148914691236517207] has more elements than 64 bits can count"},
        // The elements can be counted, their bytes would wrap to 8.
        {one_array(R"("dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8])", "12345678"),
         "array 'a': F64 [2305843009213693953] has 2305843009213693953 elements of 8 bytes, but data_offsets [0,8] "
         "hold "
         "8 bytes"},
        // Bytes that belong to no array or to two.
        {safetensors_file("{}", "1"), "bytes [0,1] of the data belong to no array"},
        {one_array(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])", "12345"),
         "bytes [4,5] of the data belong to no array"},
        {one_array(R"("dtype":"U8","shape":[4],"data_offsets":[1,5])", "12345"),
         "bytes [0,1] of the data belong to no array"},
        {safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)" + two + "[5,9]}}", "123456789"),
         "bytes [4,5] of the data belong to no array"},
        {safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)" + two + "[3,7]}}", "1234567"),
         "array 'b' overlaps the array before it"},
        {safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)" + two + "[0,4]}}", "1234"),
         "overlaps the array before it"},
        {safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                          "1234"),
         "array 'b' overlaps the array before it"},
    };
}

}  // namespace fprnn::testing
