#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/io/c_locale.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fprnn {

/// An array by its name. Any rank: a shape of fprnn holds four extents, a file may have more.
struct named_array {
    std::string name;
    std::string dtype;  ///< "F32", "F64", "I64", "I32", "U8" …
    std::vector<index> extents;
    std::string_view bytes;  ///< row-major, little-endian
};

/// Text that travels with the arrays.
using safetensors_metadata = std::map<std::string, std::string>;

namespace detail {

inline constexpr std::size_t max_header = 100'000'000;  ///< what the format's reference implementation allows
inline constexpr std::size_t max_rank = 64;  ///< as NumPy; keeps "[1,1,1,…" from becoming eight times as long

/// Bytes of an element; 0 when the dtype is unknown.
inline index element_size(std::string_view dtype) {
    static constexpr std::pair<std::string_view, index> known[] = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
        {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
        {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8},     {"C64", 8}};
    for (const auto& [name, size] : known)
        if (name == dtype) return size;
    return 0;
}

/// A file's text as part of a message: on one line and not long.
inline std::string shown(std::string_view text) {
    std::string q = "'";
    for (const char c : text.substr(0, 64)) q += c >= ' ' && c <= '~' ? c : '?';
    return q + (text.size() > 64 ? "…'" : "'");
}

inline std::string extents_text(const std::vector<index>& extents) {
    std::string text = "[";
    for (const index e : extents) text += (text.size() > 1 ? "," : "") + std::to_string(e);
    return text + "]";
}

/// What is said of a dtype whose element_size is 0.
inline std::string unknown_dtype(std::string_view dtype) {
    for (const std::string_view packed : {"F4", "F6_E2M3", "F6_E3M2"})
        if (dtype == packed) return "the elements of dtype " + shown(dtype) + " are not whole bytes and are not read";
    return "unknown dtype " + shown(dtype);
}

/// A name that is there more than once.
inline std::optional<std::string_view> used_twice(std::vector<std::string_view> names) {
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    return twice == names.end() ? std::nullopt : std::optional(*twice);
}

/// The header of a safetensors file. It takes the parser's events one by one and builds no document, so that
/// what is out of place ends the parse where it stands: no depth, no duplicate and no number can cost more
/// than its own text.
class safetensors_header {
public:
    struct entry {
        named_array array;  ///< without its bytes
        std::array<index, 2> offsets{};
        int fields = 0;  ///< a bit for each that has been seen
    };
    std::vector<entry> entries;
    safetensors_metadata metadata;

    explicit safetensors_header(std::string_view source) : source_(source) {}

    /// std::runtime_error "source: what is wrong"; offsets and extents are not yet compared with anything.
    void parse(std::string_view text) {
        if (text.empty() || text.front() != '{') fail("the header does not begin with '{'");
        // The parser takes a zero byte for the end of its text and would not look at what follows.
        if (const auto zero = text.find('\0'); zero != text.npos) not_json(zero + 1);
        const c_locale plain;
        nlohmann::json::sax_parse(text.begin(), text.end(), this);
        std::vector<std::string_view> names;
        for (const entry& e : entries) names.push_back(e.array.name);
        if (const auto twice = used_twice(std::move(names))) fail("the name " + shown(*twice) + " is used twice");
    }

    // What nlohmann's parser calls; the bool says whether to go on.
    bool null() { unexpected("null"); }
    bool boolean(bool) { unexpected("a boolean"); }
    bool number_integer(std::int64_t n) { unexpected(n == 0 ? "-0" : std::to_string(n)); }
    bool number_float(double, const std::string& digits) { unexpected(shown(digits)); }
    bool number_unsigned(std::uint64_t n) {
        if (n > static_cast<std::uint64_t>(std::numeric_limits<index>::max())) unexpected(std::to_string(n));
        const auto value = static_cast<index>(n);
        if (place_ == place::shape) {
            if (last().extents.size() == max_rank) fail(where() + ": more than 64 extents");
            last().extents.push_back(value);
        } else if (place_ == place::offsets && offsets_ < 2) {
            entries.back().offsets[offsets_++] = value;
        } else {
            unexpected(std::to_string(n));
        }
        return true;
    }
    bool string(std::string& text) {
        if (place_ == place::metadata)
            metadata[key_] = std::move(text);
        else if (place_ == place::entry && key_ == "dtype")
            last().dtype = std::move(text);
        else
            unexpected("a string");
        return true;
    }
    bool binary(const std::vector<std::uint8_t>&) { unexpected("bytes"); }
    bool start_object(std::size_t) {
        if (place_ == place::start)
            place_ = place::names;
        else if (place_ == place::names)
            place_ = key_ == "__metadata__" ? place::metadata : place::entry;
        else
            unexpected("an object");
        if (place_ == place::entry) entries.push_back({{std::move(key_), {}, {}, {}}, {}, 0});
        return true;
    }
    bool key(std::string& name) {
        key_ = std::move(name);
        if (place_ == place::names && key_ == "__metadata__" && std::exchange(has_metadata_, true))
            fail("__metadata__ is there twice");
        if (place_ == place::metadata && metadata.count(key_) > 0)
            fail("__metadata__: the key " + shown(key_) + " is used twice");
        if (place_ == place::entry) {
            const int field = key_ == "dtype" ? 1 : key_ == "shape" ? 2 : key_ == "data_offsets" ? 4 : 0;
            if (field == 0)
                fail(name_of_last() + ": unknown field " + shown(key_) +
                     ", expected are dtype, shape and data_offsets");
            if (entries.back().fields & field) fail(name_of_last() + ": " + key_ + " is there twice");
            entries.back().fields |= field;
        }
        return true;
    }
    bool end_object() {
        if (place_ == place::entry && entries.back().fields != 7)
            fail(name_of_last() + ": expected dtype, shape and data_offsets, one is missing");
        place_ = place_ == place::names ? place::end : place::names;
        return true;
    }
    bool start_array(std::size_t) {
        if (place_ != place::entry || key_ == "dtype") unexpected("an array");
        place_ = key_ == "shape" ? place::shape : place::offsets;
        offsets_ = 0;
        return true;
    }
    bool end_array() {
        if (place_ == place::offsets && offsets_ != 2) fail(where() + ": expected two integers, got fewer");
        place_ = place::entry;
        return true;
    }
    [[noreturn]] bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
        not_json(position);
    }

private:
    enum class place { start, names, metadata, entry, shape, offsets, end };

    named_array& last() { return entries.back().array; }
    std::string name_of_last() const { return "array " + shown(entries.back().array.name); }
    std::string where() const {
        switch (place_) {
            case place::names: return key_ == "__metadata__" ? key_ : "array " + shown(key_);
            case place::metadata: return "__metadata__, key " + shown(key_);
            case place::entry:
            case place::shape:
            case place::offsets: return name_of_last() + ", " + key_;
            default: return "the header";
        }
    }
    std::string expected() const {
        switch (place_) {
            case place::metadata: return "a string";
            case place::entry: return key_ == "dtype" ? "a string" : "an array of integers";
            case place::shape: return "integers from 0 to 2^63 - 1";
            case place::offsets: return "two integers from 0 to 2^63 - 1";
            default: return "an object";
        }
    }
    [[noreturn]] void unexpected(const std::string& got) const {
        fail(where() + ": expected " + expected() + ", got " + got);
    }
    [[noreturn]] void not_json(std::size_t position) const {
        fail("the header is not JSON in UTF-8, see its byte " + std::to_string(position));
    }
    [[noreturn]] void fail(const std::string& what) const { throw std::runtime_error(source_ + ": " + what); }

    std::string source_;
    place place_ = place::start;
    std::string key_;
    bool has_metadata_ = false;
    std::size_t offsets_ = 0;
};

}  // namespace detail
}  // namespace fprnn
