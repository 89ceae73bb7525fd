#pragma once

#include <fprnn/io/c_locale.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fprnn {

/// An option in which two configurations differ. Values are JSON, at most 80 characters of it, and a missing
/// one is "nothing". Without a name they say what is wrong with the text as a whole.
struct configuration_difference {
    std::string name, expected, got;

    /// "d_model: expected 64, got 32"
    std::string to_string() const {
        return (name.empty() ? "" : name + ": ") + "expected " + expected + ", got " + got;
    }
};

/// As a file has it, on one line: what is not finite is null there, and what is not UTF-8 is U+FFFD. No
/// configuration, null, is one without options.
inline std::string configuration_text(const nlohmann::ordered_json& configuration) {
    if (configuration.is_null()) return "{}";
    return configuration.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

/// The first option in which a run's configuration, given as the text of a JSON object, is not that of
/// `configuration`. None when they are equal; numbers are compared, not their digits. A text that is no
/// object, or nested more deeply than configurations are, differs as a whole.
inline std::optional<configuration_difference> first_difference(const nlohmann::ordered_json& configuration,
                                                                std::string_view text) {
    using json = nlohmann::ordered_json;
    constexpr int most_levels = 16;
    json expected, got;
    const detail::c_locale plain;
    const auto read = [](std::string_view of) {
        return json::parse(of, [](int level, json::parse_event_t, json&) {
            // Comparing and printing go down level by level, on the stack.
            if (level > most_levels) throw std::length_error("levels");
            return true;
        });
    };
    try {
        expected = read(configuration_text(configuration));  // as it is when it comes back
        got = read(text);
    } catch (const std::length_error&) {
        return configuration_difference{"", "at most " + std::to_string(most_levels) + " levels of JSON", "more"};
    } catch (const json::exception&) {
        return configuration_difference{"", "an object of JSON", "text that is none"};
    }
    if (!got.is_object()) return configuration_difference{"", "an object of JSON", got.type_name()};

    const auto shown = [](const json& value) {
        constexpr std::size_t most = 80;
        std::string letters = value.dump(-1, ' ', true, json::error_handler_t::replace);
        if (letters.size() > most) letters.replace(most, std::string::npos, "…");
        return letters;
    };
    for (const auto& [name, value] : expected.items()) {
        if (!got.contains(name)) return configuration_difference{name, shown(value), "nothing"};
        if (got[name] != value) return configuration_difference{name, shown(value), shown(got[name])};
    }
    for (const auto& [name, value] : got.items())
        if (!expected.contains(name)) return configuration_difference{shown(name), "nothing", shown(value)};
    return std::nullopt;
}

}  // namespace fprnn
