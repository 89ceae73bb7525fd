#pragma once

#include "io/broken_safetensors.hpp"

namespace fprnn::testing {

/// An .npy file with this header, whose length is right unless one is given.
inline std::string npy_file(std::string_view header, std::string_view data = {}, char version = 1, long length = -1) {
    const auto n = static_cast<std::uint32_t>(length < 0 ? header.size() : static_cast<std::size_t>(length));
    std::string file("\x93NUMPY");
    file += {version, '\0'};
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(n >> 8 * i & 0xff);
    return file.append(header).append(data);
}
/// Of doubles, with this shape.
inline std::string npy_shape(const std::string& shape, std::string_view data = {}) {
    return npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}\n", data);
}

/// Files that must be refused where an array of doubles is expected, each with what must be said.
inline std::vector<broken_file> broken_npy() {
    using namespace std::string_literals;
    const auto header = [](const std::string& descr, const std::string& fortran, const std::string& shape) {
        return npy_file("{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + "}\n",
                        "12345678");
    };
    const auto tuple = "shape must be a tuple of non-negative integers";
    return {
        {"", "not an .npy file"},
        {"\x93NUMPY\x01\0\0"s, "not an .npy file"},
        {"PK\x03\x04 an .npz file", "not an .npy file"},
        {npy_file("{}", "", 4), "version 4.0, expected 1.0, 2.0 or 3.0"},
        {"\x93NUMPY\0\0\0\0"s, "version 0.0, expected 1.0, 2.0 or 3.0"},
        {"\x93NUMPY\x01\x01\0\0"s, "version 1.1, expected 1.0, 2.0 or 3.0"},
        {"\x93NUMPY\x02\0\0\0\0"s, "too short for the length of its header"},
        {"\x93NUMPY\x03\0\0\0\0"s, "too short for the length of its header"},
        {npy_file("{}\n", "", 1, 4), "a header of 4 bytes in a file of 13"},
        {npy_file("{}\n", "", 2, 0xffffffff), "a header of 4294967295 bytes in a file of 15"},
        // The dict.
        {npy_file(""), "expected '{' at byte 0 of the header"},
        {npy_file("{}\n"), "the header must have the keys 'descr', 'fortran_order' and 'shape'"},
        {npy_file("{'descr': '<f8', 'shape': (1,)}\n", "12345678"), "the header must have the keys"},
        {npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "12345678"),
         "the header does not end with"},
        {npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x\n", "12345678"),
         "the header does not end with"},
        {npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}\n\n", "12345678"),
         "the header does not end with"},
        {npy_file("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}\n", "12345678"),
         "the key 'descr' is unknown or there twice"},
        {npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'a': (1,)}\n", "12345678"),
         "the key 'a' is unknown or there twice"},
        {npy_file("{'descr': '<f8' 'fortran_order': False, 'shape': (1,)}\n", "12345678"),
         "expected '}' at byte 16 of the header"},
        {npy_file("{{{{{{{{"), "expected ''' at byte 1 of the header"},
        {npy_file("{'" + std::string(1000, 'd') + "': 1}\n"), "a string with a character that has no place there"},
        {npy_file("{'a\\x41': 1}\n"), "a string with a character that has no place there"},
        {npy_file("{'a\n': 1}\n"), "a string with a character that has no place there"},
        {npy_file("{'descr"), "expected ''' at byte 7 of the header"},
        {npy_file("{'descr': 1}\n"), "expected ''' at byte 10 of the header"},
        // Kinds of arrays that are not read.
        {header("'>f8'", "False", "(1,)"), "big-endian numbers '>f8' are not read, expected '<f8'"},
        {header("'<f4'", "False", "(2,)"), "expected '<f8', got '<f4'"},
        {header("'<i8'", "False", "(1,)"), "expected '<f8', got '<i8'"},
        {header("'|O'", "False", "(1,)"), "expected '<f8', got '|O'"},
        {header("[('a', '<f4'), ('b', '<i4')]", "False", "(1,)"),
         "a structured array, whose elements have named fields, is not read: save each field as an array"},
        // Names that are not Latin-1 are what version 3.0 is for.
        {npy_file("{'descr': [('\u03bb', '<f8')], 'fortran_order': False, 'shape': (1,), }\n", "12345678", 3),
         "a structured array"},
        {header("'<f8'", "True", "(1,)"), "fortran_order is True, expected False"},
        {header("'<f8'", "1", "(1,)"), "fortran_order must be True or False"},
        {header("'<f8'", "Falsely", "(1,)"), "expected '}' at byte"},
        // The shape.
        {header("'<f8'", "False", "1"), "expected '(' at byte"},
        {header("'<f8'", "False", "[1]"), "expected '(' at byte"},
        {header("'<f8'", "False", "(1)"), "shape must be a tuple: (n,), not (n)"},
        {header("'<f8'", "False", "(,)"), tuple},
        {header("'<f8'", "False", "(1 1)"), tuple},
        {header("'<f8'", "False", "(1,,1)"), tuple},
        {header("'<f8'", "False", "(-1,)"), tuple},
        {header("'<f8'", "False", "(01,)"), tuple},
        {header("'<f8'", "False", "(1.0,)"), tuple},
        {header("'<f8'", "False", "(1L,)"), tuple},
        {header("'<f8'", "False", "(0x1,)"), tuple},
        {header("'<f8'", "False", "(True,)"), tuple},
        {header("'<f8'", "False", "((1,),)"), tuple},
        {header("'<f8'", "False", "(9223372036854775808,)"), "an extent that 64 bits cannot hold"},
        {header("'<f8'", "False", "(" + std::string(500, '9') + ",)"), "an extent that 64 bits cannot hold"},
        {header("'<f8'", "False", "(1, 1, 1, 1, 1)"), "an array of rank 5, at most 4 are read"},
        {npy_shape("(4294967296, 4294967296)"), "a shape with more elements than 64 bits can count"},
        {npy_shape("(3, 6148914691236517207)", "12345"), "a shape with more elements than 64 bits can count"},
        // 2^61 + 1 elements, whose bytes would wrap to 8.
        {npy_shape("(2305843009213693953,)", "12345678"),
         "the shape has 2305843009213693953 elements of 8 bytes, the file has 8 bytes of data"},
        {npy_shape("(1000000, 1000000)", "12345678"), "the file has 8 bytes of data"},
        {npy_shape("(1,)", "1234567"), "the shape has 1 elements of 8 bytes, the file has 7 bytes of data"},
        {npy_shape("(1,)", "123456789"), "the shape has 1 elements of 8 bytes, the file has 9 bytes of data"},
        {npy_shape("()"), "the shape has 1 elements of 8 bytes, the file has 0 bytes of data"},
        {npy_shape("(0,)", "1"), "the shape has 0 elements of 8 bytes, the file has 1 bytes of data"},
    };
}

}  // namespace fprnn::testing
