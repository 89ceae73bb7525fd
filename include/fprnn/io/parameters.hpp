#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/io/read_file.hpp>
#include <fprnn/io/safetensors.hpp>
#include <fprnn/tape/parameters.hpp>

#include <concepts>
#include <unordered_map>

namespace fprnn {

/// Whether a file may hold its parameters in the other of float and double.
enum class precision {
    same,
    converted,  ///< double to float rounds to nearest; what is finite in the file and not in float is refused
};

namespace detail {
/// The parameters as arrays, their names after `prefix`.
template <class T>
void append_arrays(std::vector<named_array>& arrays, const parameter_tree<T>& theta, std::string_view prefix = "") {
    for (const auto& e : theta.entries()) {
        named_array a{std::string(prefix) + e.name, std::string(dtype_of<T>), {}, {}};
        for (int i = 0; i < e.shape.rank(); ++i) a.extents.push_back(e.shape[i]);
        a.bytes = {reinterpret_cast<const char*>(theta.data() + e.offset),
                   static_cast<std::size_t>(e.shape.count()) * sizeof(T)};
        arrays.push_back(std::move(a));
    }
}

inline bool has_shape(const named_array& a, const shape& s) {
    bool fits = a.extents.size() == static_cast<std::size_t>(s.rank());
    for (int i = 0; fits && i < s.rank(); ++i) fits = a.extents[static_cast<std::size_t>(i)] == s[i];
    return fits;
}
}  // namespace detail

/// The bytes of a safetensors file with the parameters under their names.
template <std::floating_point T>
std::string encode_parameters(const parameter_tree<T>& theta, const safetensors_metadata& metadata = {}) {
    std::vector<named_array> arrays;
    detail::append_arrays(arrays, theta);
    return encode_safetensors(arrays, metadata);
}

/// Writes the parameters to a file, which appears whole or not at all. std::runtime_error when it cannot be
/// written.
template <std::floating_point T>
void save_parameters(const std::filesystem::path& path, const parameter_tree<T>& theta,
                     const safetensors_metadata& metadata = {}) {
    write_file(path, encode_parameters(theta, metadata));
}

namespace detail {
/// Calls take(i, value) for every number of an array that holds numbers of type U.
template <class U, class Take>
void each_number(const named_array& a, Take&& take) {
    for (std::size_t i = 0; i < a.bytes.size() / sizeof(U); ++i) {
        U value;
        std::memcpy(&value, a.bytes.data() + i * sizeof(U), sizeof(U));
        take(i, value);
    }
}
}  // namespace detail

/// Overwrites theta with the parameters in a file's bytes and returns the file's metadata. The file must hold
/// theta's names, each with theta's shape and T, all numbers finite, and nothing else: std::runtime_error
/// "source: …" names the parameter, what was expected and what is there, and theta stays as it was.
template <std::floating_point T>
safetensors_metadata decode_parameters(std::string bytes, std::string_view source, parameter_tree<T>& theta,
                                       precision p = precision::same) {
    using other = std::conditional_t<std::is_same_v<T, float>, double, float>;
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "parameters are float or double");
    safetensors_content file = decode_safetensors(std::move(bytes), source);
    std::unordered_map<std::string_view, const named_array*> arrays;
    for (const named_array& a : file.arrays) arrays[a.name] = &a;

    for (const auto& e : theta.entries()) {
        const auto refuse = [&](const std::string& what) {
            throw std::runtime_error(std::string(source) + ": parameter '" + e.name + "': " + what);
        };
        const auto found = arrays.find(e.name);
        if (found == arrays.end()) refuse("expected " + e.shape.to_string() + ", the file has no array of that name");
        const named_array& a = *found->second;
        if (!detail::has_shape(a, e.shape))
            refuse("expected " + e.shape.to_string() + ", got " + detail::extents_text(a.extents));
        if (a.dtype == dtype_of<other> && p == precision::same)
            refuse("expected " + std::string(dtype_of<T>) + ", got " + a.dtype +
                   " (precision::converted would take it)");
        if (a.dtype != dtype_of<T> && a.dtype != dtype_of<other>)
            refuse("expected " + std::string(dtype_of<T>) + ", got " + a.dtype);
        const auto usable = [&](std::size_t i, auto x) {
            if (!math::is_finite(static_cast<T>(x)))
                refuse(std::string("expected ") +
                       (math::is_finite(x) ? "numbers that a float can hold" : "finite numbers") + ", got " +
                       detail::number_text(static_cast<double>(x)) + " at position " + std::to_string(i));
        };
        if (a.dtype == "F64")
            detail::each_number<double>(a, usable);
        else
            detail::each_number<float>(a, usable);
        arrays.erase(found);
    }
    for (const named_array& a : file.arrays)
        if (arrays.count(a.name) > 0)
            throw std::runtime_error(std::string(source) + ": expected no parameter " + detail::shown(a.name) +
                                     ", got one of " + a.dtype + " " + detail::extents_text(a.extents));

    for (const named_array& a : file.arrays) {
        T* to = theta[a.name].data();
        if (a.dtype == dtype_of<T>)
            detail::each_number<T>(a, [&](std::size_t i, T x) { to[i] = x; });
        else
            detail::each_number<other>(a, [&](std::size_t i, other x) { to[i] = static_cast<T>(x); });
    }
    return std::move(file.metadata);
}

/// The same from a file.
template <std::floating_point T>
safetensors_metadata load_parameters(const std::filesystem::path& path, parameter_tree<T>& theta,
                                     precision p = precision::same) {
    const std::uintmax_t most =
        sizeof(std::uint64_t) + detail::max_header + static_cast<std::uintmax_t>(theta.size()) * sizeof(double);
    return decode_parameters(read_file(path, most), path.string(), theta, p);
}

}  // namespace fprnn
