#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fprnn {

/// The first option in which a run's configuration, given as the text of a JSON object, is not `expected`:
/// "d_model: expected 64, got 32", where a missing one is "nothing". None when they are equal; numbers are compared, not
/// their digits. Of a text that is no object, or nested more deeply than configurations are, it says that.
inline std::optional<std::string> first_difference(const nlohmann::ordered_json& expected, std::string_view text) {
    using json = nlohmann::ordered_json;
    constexpr int most_levels = 16;
    json got;
    try {
        got = json::parse(text, [](int level, json::parse_event_t, json&) {
            // Comparing and printing go down level by level, on the stack.
            if (level > most_levels) throw std::length_error("levels");
            return true;
        });
    } catch (const std::length_error&) {
        return "expected at most " + std::to_string(most_levels) + " levels of JSON, got more";
    } catch (const json::exception&) {
        return "expected an object of JSON, got text that is none";
    }
    if (!got.is_object()) return "expected an object of JSON, got " + std::string(got.type_name());

    const auto shown = [](const json& value) {
        constexpr std::size_t most = 80;
        std::string letters = value.dump(-1, ' ', true, json::error_handler_t::replace);
        if (letters.size() > most) letters.replace(most, std::string::npos, "…");
        return letters;
    };
    for (const auto& [name, value] : expected.items()) {
        if (!got.contains(name)) return name + ": expected " + shown(value) + ", got nothing";
        if (got[name] != value) return name + ": expected " + shown(value) + ", got " + shown(got[name]);
    }
    for (const auto& [name, value] : got.items())
        if (!expected.contains(name)) return shown(name) + ": expected nothing, got " + shown(value);
    return std::nullopt;
}

}  // namespace fprnn
