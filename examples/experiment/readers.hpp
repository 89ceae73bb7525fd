#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/shape.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Values of options from their texts. What refuses one names the option, what was expected and what it got.
namespace experiment {

namespace fp = fprnn;

inline constexpr fp::index most_tokens = 1 << 20;

[[noreturn]] inline void refuse(const std::string& option, const std::string& expected, const std::string& got) {
    throw fp::argument_error(option + ": expected " + expected + ", got '" + got + "'");
}

/// The whole text as a number, or nothing.
template <class N>
std::optional<N> number(std::string_view text) {
    N value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

struct whole {
    fp::index least = 1, most = fp::index{1} << 40;
    const char* besides = "";  ///< " or gamma", which the caller reads

    fp::index operator()(const std::string& option, const std::string& text) const {
        const auto value = number<fp::index>(text);
        if (!value || *value < least || *value > most)
            refuse(option, "a whole number from " + std::to_string(least) + " to " + std::to_string(most) + besides,
                   text);
        return *value;
    }
};

/// Numbers are float where they are used.
inline double positive(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !(*value >= std::numeric_limits<float>::min() && *value <= std::numeric_limits<float>::max()))
        refuse(option, "a positive number", text);
    return *value;
}

/// Of a sigmoid, which is 0 or 1 beyond.
inline double bias(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !(*value >= -20 && *value <= 20)) refuse(option, "a number from -20 to 20", text);
    return *value;
}

inline double not_negative(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !std::isfinite(*value) || !(*value >= 0)) refuse(option, "a number of at least 0", text);
    return *value;
}

inline double share(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !(*value >= 0 && *value <= 1)) refuse(option, "a number from 0 to 1", text);
    return *value;
}

inline double share_below_one(const std::string& option, const std::string& text) {
    const auto value = number<double>(text);
    if (!value || !(*value >= 0 && *value < 1)) refuse(option, "a number of at least 0 and below 1", text);
    return *value;
}

/// A norm that nothing is longer than is "none".
inline double norm_or_none(const std::string& option, const std::string& text) {
    if (text == "none") return std::numeric_limits<double>::infinity();
    const auto value = number<double>(text);
    if (!value || !std::isfinite(*value) || !(*value > 0)) refuse(option, "a positive number or none", text);
    return *value;
}

/// "16,32,50-60": lengths and ranges of them, sorted.
inline std::vector<fp::index> lengths(const std::string& option, const std::string& text) {
    constexpr std::size_t most = 10000;
    const std::string expected = "at most " + std::to_string(most) + " lengths from 1 to " +
                                 std::to_string(most_tokens) + " such as 16,32,64 or ranges such as 2-50";
    std::set<fp::index> all;
    std::string_view rest = text;
    for (bool more = true; more;) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) rest.remove_prefix(comma + 1);
        const std::size_t dash = part.find('-');
        const auto first = number<fp::index>(part.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : number<fp::index>(part.substr(dash + 1));
        if (!first || !last || *first < 1 || *last < *first || *last > most_tokens) refuse(option, expected, text);
        for (fp::index n = *first; n <= *last; ++n)
            if (all.insert(n); all.size() > most) refuse(option, expected, text);
    }
    return {all.begin(), all.end()};
}

template <class V, std::size_t N>
V one_of(const std::string& option, const std::string& text, const std::pair<const char*, V> (&choices)[N]) {
    std::string expected;
    for (const auto& [name, value] : choices) {
        if (text == name) return value;
        expected += (expected.empty() ? "" : ", ") + std::string(name);
    }
    refuse(option, "one of " + expected, text);
}

template <class V, std::size_t N>
std::string name_in(const std::pair<const char*, V> (&choices)[N], V value) {
    for (const auto& [name, other] : choices)
        if (other == value) return name;
    return {};
}
template <class V, std::size_t N>
std::string names_in(const std::pair<const char*, V> (&choices)[N]) {
    std::string all;
    for (std::size_t i = 0; i < N; ++i)
        all += (i == 0 ? "" : i + 1 < N ? ", " : " or ") + std::string(choices[i].first);
    return all;
}

}  // namespace experiment
