#pragma once

#include <fprnn/core/hash.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/io/configuration.hpp>
#include <fprnn/io/parameters.hpp>
#include <fprnn/train/training_state.hpp>

#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

/// A checkpoint: a training_state as a safetensors file. Its arrays are the parameters and what is kept
/// beside each, under theta., first_moment., second_moment. and last_good., and where windows go on what is
/// known of them, under ongoing.; its metadata are the rest as text: the numbers, doubles with as many digits
/// as bring back their bits, the run's configuration as JSON, the format's version and a checksum.
namespace fprnn {

namespace detail {

inline constexpr std::string_view checkpoint_format = "fprnn checkpoint", checkpoint_version = "1";

inline constexpr std::string_view checksum_zeros = "0000000000000000";

/// Where the digits of a file's checksum are; npos when it has no such checksum. Only a key of the metadata
/// looks like this: within text of JSON, a quote has a backslash before it.
inline std::size_t find_checksum(std::string_view bytes, std::string_view digits) {
    const std::string field = "\"checksum\":\"";
    const auto at = bytes.find(field + std::string(digits) + "\"");
    return at == bytes.npos || digits.size() != checksum_zeros.size() ? bytes.npos : at + field.size();
}

/// The checksum of a file whose own digits, which are at `at`, count as zeros. It guards against disks and
/// copies that damage a file, not against intent.
inline std::string checksum_of(std::string_view bytes, std::size_t at) {
    const auto hash =
        fnv1a(bytes.substr(at + checksum_zeros.size()), fnv1a(checksum_zeros, fnv1a(bytes.substr(0, at))));
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

template <class N>
std::string digits_of(N value) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// The metadata of a checkpoint; what is missing or out of its range is a std::runtime_error "source: …".
struct checkpoint_metadata {
    const safetensors_metadata& fields;
    std::string_view source;

    [[noreturn]] void refuse(const std::string& what) const {
        throw std::runtime_error(std::string(source) + ": " + what);
    }
    const std::string& text(const char* name) const {
        const auto found = fields.find(name);
        if (found == fields.end()) refuse("not a checkpoint: no " + std::string(name) + " in its metadata");
        return found->second;
    }
    template <class N>
    N number(const char* name, N least, N most) const {
        const std::string& digits = text(name);
        N value{};
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc{} || end != digits.data() + digits.size() || !(value >= least && value <= most))
            refuse(std::string(name) + ": expected a number from " + digits_of(least) + " to " + digits_of(most) +
                   ", got " + shown(digits));
        return value;
    }
};

inline constexpr std::string_view ongoing_sequence = "ongoing.sequence", ongoing_window = "ongoing.window",
                                  ongoing_left = "ongoing.left", ongoing_carry = "ongoing.carry.";

/// The arrays of sequences that go on; none where none do.
template <class T>
void append_ongoing(std::vector<named_array>& arrays, const ongoing_sequences<T>& rows) {
    const auto append = [&](std::string name, const auto& numbers, std::vector<index> extents) {
        using number = std::remove_cvref_t<decltype(*numbers.data())>;
        arrays.push_back({std::move(name),
                          std::string(dtype_of<number>),
                          std::move(extents),
                          {reinterpret_cast<const char*>(numbers.data()),
                           static_cast<std::size_t>(numbers.size()) * sizeof(number)}});
    };
    const auto n = static_cast<index>(rows.window.size());
    if (n == 0) return;
    append(std::string(ongoing_sequence), rows.sequence, {n});
    append(std::string(ongoing_window), rows.window, {n});
    append(std::string(ongoing_left), rows.left, {n});
    for (std::size_t i = 0; i < rows.carry.blocks.size(); ++i)
        append(std::string(ongoing_carry) + std::to_string(i), rows.carry.blocks[i],
               {n, rows.carry.blocks[i].shape()[1]});
}

}  // namespace detail

/// The bytes of a checkpoint. argument_error for a training that ended with numbers that are not finite,
/// whose optimiser has seen a step that was taken back, and for a configuration that is neither an object nor
/// null or has more than 16 levels.
template <std::floating_point T>
std::string encode_checkpoint(const training_state<T>& state, const nlohmann::ordered_json& configuration) {
    require(state.optimiser.steps() == state.steps, "encode_checkpoint", [&] {
        return "expected a state that can go on, got one of " + std::to_string(state.steps) +
               " steps whose optimiser has taken " + std::to_string(state.optimiser.steps());
    });
    const std::string text = configuration_text(configuration);
    const auto refused = first_difference(configuration, text);
    require(!refused, "encode_checkpoint", [&] { return "configuration: " + refused->to_string(); });
    std::vector<named_array> arrays;
    detail::append_arrays(arrays, state.theta, "theta.");
    detail::append_arrays(arrays, state.optimiser.first_moment(), "first_moment.");
    detail::append_arrays(arrays, state.optimiser.second_moment(), "second_moment.");
    detail::append_arrays(arrays, state.last_good, "last_good.");
    detail::append_ongoing(arrays, state.ongoing);
    std::string bytes = encode_safetensors(arrays, {{"format", std::string(detail::checkpoint_format)},
                                                    {"version", std::string(detail::checkpoint_version)},
                                                    {"step", detail::digits_of(state.steps)},
                                                    {"last_good_step", detail::digits_of(state.last_good_steps)},
                                                    {"sequences", detail::digits_of(state.sequences)},
                                                    {"length", detail::digits_of(state.length)},
                                                    {"learnt", detail::digits_of(state.learnt)},
                                                    {"seconds", detail::digits_of(state.seconds)},
                                                    {"configuration", text},
                                                    {"checksum", std::string(detail::checksum_zeros)}});
    const std::size_t at = detail::find_checksum(bytes, detail::checksum_zeros);
    bytes.replace(at, detail::checksum_zeros.size(), detail::checksum_of(bytes, at));
    return bytes;
}

namespace detail {
/// The metadata of a checkpoint whose bytes are as they were written.
inline checkpoint_metadata undamaged(const safetensors_content& content, std::string_view source) {
    const checkpoint_metadata metadata{content.metadata, source};
    if (metadata.text("format") != checkpoint_format)
        metadata.refuse("not a checkpoint: its format is " + shown(metadata.text("format")));
    if (metadata.text("version") != checkpoint_version)
        metadata.refuse("expected version " + std::string(checkpoint_version) + ", got " +
                        shown(metadata.text("version")));
    const std::string& digits = metadata.text("checksum");
    const std::size_t at = find_checksum(content.storage, digits);
    if (at == content.storage.npos) metadata.refuse("its checksum is " + shown(digits));
    if (const std::string sum = checksum_of(content.storage, at); sum != digits)
        metadata.refuse("damaged: its checksum is " + digits + ", that of its bytes " + sum);
    return metadata;
}
}  // namespace detail

namespace detail {
/// Takes the arrays of sequences that go on out of `arrays`.
template <class T>
ongoing_sequences<T> take_ongoing(std::unordered_map<std::string_view, const named_array*>& arrays,
                                  const checkpoint_metadata& metadata) {
    ongoing_sequences<T> rows;
    const auto refuse = [&](const std::string& name, const std::string& expected, const named_array* a) {
        metadata.refuse("array '" + name + "': expected " + expected + ", got " +
                        (a ? a->dtype + " " + extents_text(a->extents) : "nothing"));
    };
    const auto take = [&](const std::string& name) -> const named_array* {
        const auto found = arrays.find(name);
        if (found == arrays.end()) return nullptr;
        const named_array* const a = found->second;
        arrays.erase(found);
        return a;
    };
    for (const auto& [name, numbers] : {std::pair(ongoing_sequence, &rows.sequence),
                                        std::pair(ongoing_window, &rows.window), std::pair(ongoing_left, &rows.left)}) {
        const named_array* const a = take(std::string(name));
        if (!a && rows.sequence.empty()) return rows;
        if (!a || a->dtype != dtype_of<index> || a->extents.size() != 1 || a->extents[0] < 1)
            refuse(std::string(name), std::string(dtype_of<index>) + " of one extent", a);
        if (!rows.sequence.empty() && a->extents[0] != static_cast<index>(rows.sequence.size()))
            refuse(std::string(name), "as many numbers as of " + std::string(ongoing_sequence), a);
        each_number<index>(*a, [&, to = numbers, n = name](std::size_t i, index x) {
            if (x < 0)
                metadata.refuse("array '" + std::string(n) + "': expected numbers from 0 on, got " + digits_of(x) +
                                " at position " + std::to_string(i));
            to->push_back(x);
        });
    }
    const auto n = static_cast<index>(rows.sequence.size());
    for (;;) {
        const std::string name = std::string(ongoing_carry) + std::to_string(rows.carry.blocks.size());
        const named_array* const a = take(name);
        if (!a) return rows;
        if (a->dtype != dtype_of<T> || a->extents.size() != 2 || a->extents[0] != n)
            refuse(name, std::string(dtype_of<T>) + " [" + std::to_string(n) + ",numbers]", a);
        tensor<T>& carry = rows.carry.blocks.emplace_back(shape{n, a->extents[1]});
        each_number<T>(*a, [&](std::size_t i, T x) {
            if (!math::is_finite(x))
                metadata.refuse("array '" + name + "': expected finite numbers, got " +
                                number_text(static_cast<double>(x)) + " at position " + std::to_string(i));
            carry[static_cast<index>(i)] = x;
        });
    }
}
}  // namespace detail

/// The configuration that a checkpoint's bytes were written with, as the text of a JSON object: what a
/// program compares with its own in its own words before it loads anything. std::runtime_error "source: what
/// is wrong" when they are damaged or of another version.
inline std::string checkpoint_configuration(std::string bytes, std::string_view source) {
    const safetensors_content file = decode_safetensors(std::move(bytes), source);
    return detail::undamaged(file, source).text("configuration");
}

/// Overwrites the state, which says what the checkpoint must be of, with the one in a checkpoint's bytes.
/// std::runtime_error "source: what is wrong" when they are damaged, of another version, of another
/// configuration or of other parameters, or when a number is not finite; the state then stays as it was.
template <std::floating_point T>
void decode_checkpoint(std::string bytes, std::string_view source, training_state<T>& state,
                       const nlohmann::ordered_json& configuration) {
    const safetensors_content file = decode_safetensors(std::move(bytes), source);
    const detail::checkpoint_metadata metadata = detail::undamaged(file, source);
    if (const auto difference = first_difference(configuration, metadata.text("configuration")))
        metadata.refuse("of another configuration: " + difference->to_string());

    training_state<T> read = state;
    constexpr index most = std::numeric_limits<index>::max();
    read.steps = metadata.number<index>("step", 0, most);
    read.last_good_steps = metadata.number<index>("last_good_step", 0, read.steps);
    read.sequences = metadata.number<index>("sequences", 0, most);
    read.length = metadata.number<index>("length", 1, most);
    read.learnt = metadata.number<double>("learnt", 0, 1);
    read.seconds = metadata.number<double>("seconds", 0, std::numeric_limits<double>::max());

    parameter_tree<T> first_moment = state.theta, second_moment = state.theta;
    const std::array<std::pair<std::string, parameter_tree<T>*>, 4> trees{{{"theta.", &read.theta},
                                                                           {"first_moment.", &first_moment},
                                                                           {"second_moment.", &second_moment},
                                                                           {"last_good.", &read.last_good}}};
    std::unordered_map<std::string_view, const named_array*> arrays;
    for (const named_array& a : file.arrays) arrays[a.name] = &a;
    for (const auto& [prefix, tree] : trees)
        for (const auto& e : tree->entries()) {
            const std::string name = prefix + e.name;
            const auto found = arrays.find(name);
            const std::string expected =
                "array '" + name + "': expected " + std::string(dtype_of<T>) + " " + e.shape.to_string() + ", got ";
            if (found == arrays.end()) metadata.refuse(expected + "nothing");
            const named_array& a = *found->second;
            if (a.dtype != dtype_of<T> || !detail::has_shape(a, e.shape))
                metadata.refuse(expected + a.dtype + " " + detail::extents_text(a.extents));
            // The square of a gradient that max_norm lets pass can be infinite, and AdamW goes on with it.
            const bool squares = tree == &second_moment;
            detail::each_number<T>(a, [&](std::size_t i, T x) {
                if (!math::is_finite(x) && !(squares && x > 0))
                    metadata.refuse("array '" + name + "': expected finite numbers, got " +
                                    detail::number_text(static_cast<double>(x)) + " at position " + std::to_string(i));
            });
            if (!a.bytes.empty()) std::memcpy(tree->data() + e.offset, a.bytes.data(), a.bytes.size());
            arrays.erase(found);
        }
    read.ongoing = detail::take_ongoing<T>(arrays, metadata);
    if (!arrays.empty()) metadata.refuse("expected no array " + detail::shown(arrays.begin()->first));
    read.optimiser.restore(read.steps, first_moment, second_moment);
    state = std::move(read);
}

}  // namespace fprnn
