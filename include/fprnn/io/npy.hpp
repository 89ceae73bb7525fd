#pragma once

#include <fprnn/core/tensor.hpp>
#include <fprnn/io/read_file.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// NumPy's .npy: one array a file.
///
///     "\x93NUMPY"  major  minor  N (2 bytes; 4 from version 2 on)
///     N bytes of text: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, spaces and a line feed
///     the array, row-major
namespace fprnn {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and nothing here swaps bytes");

/// What an .npy file can hold here.
template <class T>
inline constexpr std::string_view npy_descr{};
template <>
inline constexpr std::string_view npy_descr<float> = "<f4";
template <>
inline constexpr std::string_view npy_descr<double> = "<f8";
template <>
inline constexpr std::string_view npy_descr<std::int32_t> = "<i4";
template <>
inline constexpr std::string_view npy_descr<std::int64_t> = "<i8";

template <class T>
concept npy_element = !npy_descr<T>.empty();

namespace detail {

/// The dict of an .npy file's header. Python would evaluate it; this reads exactly the three keys and nothing
/// else.
class npy_header {
public:
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<index>> shape;

    npy_header(std::string_view text, std::string_view source) : text_(text), source_(source) {
        expect('{');
        while (!take('}')) {
            const std::string key = string();
            expect(':');
            if (key == "descr" && !descr)
                descr = type();
            else if (key == "fortran_order" && !fortran_order)
                fortran_order = boolean();
            else if (key == "shape" && !shape)
                shape = tuple();
            else
                fail("the key '" + key + "' is unknown or there twice");
            if (!take(',')) {
                expect('}');
                break;
            }
        }
        if (text_.find_first_not_of(' ', at_) != text_.size() - 1 || text_.back() != '\n')
            fail("the header does not end with '}', spaces and one line feed");
        if (!descr || !fortran_order || !shape)
            fail("the header must have the keys 'descr', 'fortran_order' and 'shape'");
    }

private:
    void skip_spaces() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool take(char c) {
        skip_spaces();
        const bool there = at_ < text_.size() && text_[at_] == c;
        if (there) ++at_;
        return there;
    }
    void expect(char c) {
        if (!take(c)) fail("expected '" + std::string(1, c) + "' at byte " + std::to_string(at_) + " of the header");
    }
    std::string string() {
        const char quote = take('"') ? '"' : (expect('\''), '\'');
        std::string text;
        // No string of this header needs more, nor an escape.
        for (; at_ < text_.size() && text_[at_] != quote; text += text_[at_++])
            if (text.size() == 32 || text_[at_] < ' ' || text_[at_] > '~' || text_[at_] == '\\')
                fail("a string with a character that has no place there at byte " + std::to_string(at_) +
                     " of the header");
        expect(quote);
        return text;
    }
    std::string type() {
        if (take('['))
            fail("a structured array, whose elements have named fields, is not read: save each field as an array");
        return string();
    }
    bool boolean() {
        skip_spaces();
        for (const auto& [word, value] : {std::pair(std::string_view("False"), false), {"True", true}})
            if (text_.substr(at_, word.size()) == word) {
                at_ += word.size();
                return value;
            }
        fail("fortran_order must be True or False");
    }
    index integer() {
        skip_spaces();
        const std::size_t begin = at_;
        index n = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            const index digit = text_[at_] - '0';
            if (n > (std::numeric_limits<index>::max() - digit) / 10) fail("an extent that 64 bits cannot hold");
            n = 10 * n + digit;
        }
        if (at_ == begin || (text_[begin] == '0' && at_ > begin + 1))
            fail("shape must be a tuple of non-negative integers");
        return n;
    }
    std::vector<index> tuple() {
        std::vector<index> extents;
        expect('(');
        if (take(')')) return extents;
        for (;;) {
            extents.push_back(integer());
            const bool comma = take(',');
            if (take(')')) {
                if (!comma && extents.size() == 1) fail("shape must be a tuple: (n,), not (n)");
                return extents;
            }
            if (!comma) fail("shape must be a tuple of non-negative integers");
        }
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(std::string(source_) + ": " + what);
    }

    std::string_view text_;
    std::string_view source_;
    std::size_t at_ = 0;
};

}  // namespace detail

/// The bytes of a file of version 1.0 with these numbers, as numpy.save writes it.
template <npy_element T>
std::string encode_npy(view<const T> x) {
    std::string header = "{'descr': '" + std::string(npy_descr<T>) + "', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < x.shape().rank(); ++i) header += (i ? ", " : "") + std::to_string(x.shape()[i]);
    header += x.shape().rank() == 1 ? ",), }" : "), }";
    // The data begin at a multiple of 64 bytes.
    constexpr std::size_t before = 10, multiple = 64;
    header.append(multiple - 1 - (before + header.size()) % multiple, ' ');
    header += '\n';
    std::string file("\x93NUMPY\x01\x00", 8);
    file += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    file += header;
    if (!x.empty())
        file.append(reinterpret_cast<const char*>(x.data()), static_cast<std::size_t>(x.size()) * sizeof(T));
    return file;
}
template <npy_element T>
std::string encode_npy(const tensor<T>& x) {
    return encode_npy(x.view());
}

/// The array in a file's bytes, which must be one of T, row-major, little-endian, of at most four extents and
/// with nothing after it: std::runtime_error "source: what is wrong".
template <npy_element T>
tensor<T> decode_npy(std::string_view bytes, std::string_view source) {
    const auto refuse = [&](const std::string& what) { throw std::runtime_error(std::string(source) + ": " + what); };
    const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(bytes[i])}; };
    if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") refuse("not an .npy file");
    if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
        refuse("version " + std::to_string(byte(6)) + "." + std::to_string(byte(7)) + ", expected 1.0, 2.0 or 3.0");
    const std::size_t start = byte(6) == 1 ? 10 : 12;
    if (bytes.size() < start) refuse("too short for the length of its header");
    std::size_t length = byte(8) | byte(9) << 8;
    if (start == 12) length |= byte(10) << 16 | byte(11) << 24;
    if (length > bytes.size() - start)
        refuse("a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(bytes.size()));

    const detail::npy_header header(bytes.substr(start, length), source);
    const std::string_view data = bytes.substr(start + length);
    const std::string expected = "expected '" + std::string(npy_descr<T>) + "'";
    if (header.descr->starts_with('>')) refuse("big-endian numbers '" + *header.descr + "' are not read, " + expected);
    if (*header.descr != npy_descr<T>) refuse(expected + ", got '" + *header.descr + "'");
    if (*header.fortran_order)
        refuse("fortran_order is True, expected False: save numpy.ascontiguousarray of the array");
    const auto& extents = *header.shape;
    if (extents.size() > shape::max_rank)
        refuse("an array of rank " + std::to_string(extents.size()) + ", at most 4 are read");
    index count = 1;
    for (const index e : extents) {
        if (e > 0 && count > std::numeric_limits<index>::max() / e)
            refuse("a shape with more elements than 64 bits can count");
        count *= e;
    }
    if (data.size() % sizeof(T) != 0 || data.size() / sizeof(T) != static_cast<std::size_t>(count))
        refuse("the shape has " + std::to_string(count) + " elements of " + std::to_string(sizeof(T)) +
               " bytes, the file has " + std::to_string(data.size()) + " bytes of data");

    const auto at = [&](std::size_t i) { return extents[i]; };
    const std::size_t rank = extents.size();
    tensor<T> x(rank == 0   ? shape{}
                : rank == 1 ? shape{at(0)}
                : rank == 2 ? shape{at(0), at(1)}
                : rank == 3 ? shape{at(0), at(1), at(2)}
                            : shape{at(0), at(1), at(2), at(3)});
    if (!x.empty()) std::memcpy(x.data(), data.data(), data.size());
    return x;
}

/// Writes one array, which appears whole or not at all. std::runtime_error when it cannot be written.
template <npy_element T>
void save_npy(const std::filesystem::path& path, const tensor<T>& x) {
    write_file(path, encode_npy(x));
}

/// Reads one array; std::runtime_error "path: …" when the file is not what decode_npy takes or has more than
/// `most` bytes.
template <npy_element T>
tensor<T> load_npy(const std::filesystem::path& path, std::uintmax_t most = std::uintmax_t{1} << 32) {
    return decode_npy<T>(read_file(path, most), path.string());
}

}  // namespace fprnn
