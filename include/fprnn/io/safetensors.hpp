#pragma once

#include <fprnn/io/safetensors_header.hpp>

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <stdexcept>

/// The safetensors format: named arrays that other programs read, too.
///
///     N (8 bytes)
///     N bytes of JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end]}, …}
///     the arrays, row-major
///
/// All little-endian. Offsets count from the end of the header, and every byte after it belongs to one array.
namespace fprnn {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and nothing here swaps bytes");

/// The dtype of T, as the format names it.
template <class T>
inline constexpr std::string_view dtype_of{};
template <>
inline constexpr std::string_view dtype_of<float> = "F32";
template <>
inline constexpr std::string_view dtype_of<double> = "F64";
template <>
inline constexpr std::string_view dtype_of<std::int32_t> = "I32";
template <>
inline constexpr std::string_view dtype_of<std::int64_t> = "I64";
template <>
inline constexpr std::string_view dtype_of<std::uint8_t> = "U8";
template <>
inline constexpr std::string_view dtype_of<std::uint64_t> = "U64";

/// The real part and then the imaginary one.
template <>
inline constexpr std::string_view dtype_of<std::complex<float>> = "C64";

/// What a file holds; arrays come in the order of the header. Their bytes lie in `storage`, at any alignment,
/// so it can be moved and not copied.
struct safetensors_content {
    std::string storage;
    std::vector<named_array> arrays;
    safetensors_metadata metadata;

    safetensors_content() = default;
    safetensors_content(safetensors_content&&) = default;
    safetensors_content& operator=(safetensors_content&&) = default;
    safetensors_content(const safetensors_content&) = delete;
    safetensors_content& operator=(const safetensors_content&) = delete;
};

/// The bytes of a file with these arrays, the same for the same arguments. The data begin at a multiple of 8
/// bytes and wide elements stand first, so that in a mapped file every array is aligned to its elements.
/// argument_error for names that are used twice, "__metadata__", text that is not UTF-8, an unknown dtype and
/// bytes that are not those of the shape.
inline std::string encode_safetensors(const std::vector<named_array>& arrays,
                                      const safetensors_metadata& metadata = {}) {
    constexpr std::string_view operation = "encode_safetensors";
    std::vector<std::size_t> order(arrays.size());
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const named_array& a = arrays[i];
        const auto where = [&] { return "array " + detail::shown(a.name) + ": "; };
        const index width = detail::element_size(a.dtype);
        require(a.name != "__metadata__", operation, [&] { return where() + "the name belongs to the format"; });
        require(width > 0, operation, [&] { return where() + detail::unknown_dtype(a.dtype); });
        require(a.extents.size() <= detail::max_rank, operation, [&] { return where() + "more than 64 extents"; });
        index count = 1;
        for (const index e : a.extents) count = checked_product(count, e, operation);
        require(static_cast<std::uint64_t>(checked_product(count, width, operation)) == a.bytes.size(), operation, [&] {
            return where() + a.dtype + " " + detail::extents_text(a.extents) + " takes " +
                   std::to_string(count * width) + " bytes, got " + std::to_string(a.bytes.size());
        });
        order[i] = i;
        names.push_back(a.name);
    }
    const auto twice = detail::used_twice(std::move(names));
    require(!twice, operation, [&] { return "the name " + detail::shown(*twice) + " is used twice"; });

    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return detail::element_size(arrays[a].dtype) > detail::element_size(arrays[b].dtype);
    });
    std::vector<std::size_t> begin(arrays.size());
    std::size_t size = 0;
    for (const std::size_t i : order) begin[i] = std::exchange(size, size + arrays[i].bytes.size());

    std::string header = "{";
    try {
        if (!metadata.empty()) header += "\"__metadata__\":" + nlohmann::json(metadata).dump();
        for (std::size_t i = 0; i < arrays.size(); ++i)
            header += (header.size() > 1 ? "," : "") + nlohmann::json(arrays[i].name).dump() + ":{\"dtype\":\"" +
                      arrays[i].dtype + "\",\"shape\":" + detail::extents_text(arrays[i].extents) +
                      ",\"data_offsets\":[" + std::to_string(begin[i]) + "," +
                      std::to_string(begin[i] + arrays[i].bytes.size()) + "]}";
    } catch (const nlohmann::json::exception&) {
        throw argument_error(std::string(operation) + ": a name or the metadata are not UTF-8");
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    require(header.size() <= detail::max_header, operation,
            [&] { return "the header has " + std::to_string(header.size()) + " bytes, at most 100000000 are read"; });

    const std::uint64_t length = header.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    file.reserve(file.size() + header.size() + size);
    file += header;
    for (const std::size_t i : order) file += arrays[i].bytes;
    return file;
}

/// The arrays of a file's bytes. std::runtime_error "source: what is wrong" for everything that the format
/// does not allow (docs/files.md lists the checks); memory is bounded by a small multiple of the bytes that
/// are there.
inline safetensors_content decode_safetensors(std::string bytes, std::string_view source) {
    const auto refuse = [&](const std::string& what) { throw std::runtime_error(std::string(source) + ": " + what); };
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length)
        refuse("too short for the 8 bytes of a header's length, got " + std::to_string(bytes.size()));
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > detail::max_header)
        refuse("a header of " + std::to_string(length) + " bytes, at most 100000000 are allowed");
    if (length > bytes.size() - sizeof length)
        refuse("truncated: expected at least " + std::to_string(sizeof length + length) +
               " bytes, which the header alone takes, got " + std::to_string(bytes.size()));

    safetensors_content content;
    content.storage = std::move(bytes);
    const std::string_view all = content.storage, data = all.substr(sizeof length + length);
    detail::safetensors_header header(source);
    header.parse(all.substr(sizeof length, length));
    content.metadata = std::move(header.metadata);

    const auto size = static_cast<index>(data.size());
    std::uint64_t needed = 0;
    for (const auto& e : header.entries) needed = std::max(needed, static_cast<std::uint64_t>(e.offsets[1]));
    for (auto& [array, offsets, fields] : header.entries) {
        const auto where = "array " + detail::shown(array.name) + ": ";
        const auto [begin, end] = offsets;
        const std::string range = "data_offsets " + detail::extents_text({begin, end});
        const index width = detail::element_size(array.dtype);
        if (width == 0) refuse(where + detail::unknown_dtype(array.dtype));
        if (begin > end) refuse(where + range + " end before they begin");
        if (end > size)
            refuse("truncated: expected " + std::to_string(sizeof length + length + needed) + " bytes, got " +
                   std::to_string(all.size()) + "; " + where + range + " reach beyond the file");
        const std::string kind = array.dtype + " " + detail::extents_text(array.extents);
        index count = 1;
        for (const index e : array.extents) {
            if (e > 0 && count > std::numeric_limits<index>::max() / e)
                refuse(where + kind + " has more elements than 64 bits can count");
            count *= e;
        }
        if ((end - begin) % width != 0 || (end - begin) / width != count)
            refuse(where + kind + " has " + std::to_string(count) + " elements of " + std::to_string(width) +
                   " bytes, but " + range + " hold " + std::to_string(end - begin) + " bytes");
        array.bytes = data.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    }

    std::vector<const detail::safetensors_header::entry*> order;
    for (const auto& e : header.entries) order.push_back(&e);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offsets < b->offsets; });
    index at = 0;
    for (const auto* e : order) {
        const index begin = e->offsets[0];
        if (begin < at) refuse("array " + detail::shown(e->array.name) + " overlaps the array before it");
        if (begin > at) refuse("bytes " + detail::extents_text({at, begin}) + " of the data belong to no array");
        at = e->offsets[1];
    }
    if (at < size) refuse("bytes " + detail::extents_text({at, size}) + " of the data belong to no array");

    for (auto& e : header.entries) content.arrays.push_back(std::move(e.array));
    return content;
}

}  // namespace fprnn
