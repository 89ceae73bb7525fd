#include "locales.hpp"

#include <fprnn/io/configuration.hpp>

#include <doctest/doctest.h>

namespace {

using json = nlohmann::ordered_json;

std::optional<std::string> first_difference(const json& expected, std::string_view text) {
    const auto difference = fprnn::first_difference(expected, text);
    return difference ? std::optional(difference->to_string()) : std::nullopt;
}

TEST_CASE("configuration: equal ones differ in nothing, whatever their order and digits") {
    const json c{{"group", "A5"}, {"d_model", 64}, {"rate", 0.1}, {"limit", nullptr}, {"lengths", {16, 32}}};
    CHECK_FALSE(first_difference(c, c.dump()).has_value());
    CHECK_FALSE(first_difference(c, c.dump(4)).has_value());
    CHECK_FALSE(first_difference(c, R"({"limit":null,"lengths":[16,32.0],"rate":1e-1,"d_model":64.0,"group":"A5"})")
                    .has_value());
    CHECK_FALSE(first_difference(json::object(), "{}").has_value());
}

TEST_CASE("configuration: the first option that differs is named, with what was expected and what is there") {
    const json c{{"group", "A5"}, {"d_model", 64}, {"limit", nullptr}};
    CHECK(first_difference(c, R"({"group":"S3","d_model":32,"limit":null})") == "group: expected \"A5\", got \"S3\"");
    CHECK(first_difference(c, R"({"group":"A5","d_model":32,"limit":60})") == "d_model: expected 64, got 32");
    CHECK(first_difference(c, R"({"group":"A5","d_model":64,"limit":60})") == "limit: expected null, got 60");
    CHECK(first_difference(c, R"({"group":"A5","limit":null})") == "d_model: expected 64, got nothing");
    CHECK(first_difference(c, R"({"group":"A5","d_model":64,"limit":null,"x\n":[1]})") ==
          "\"x\\n\": expected nothing, got [1]");
    CHECK(first_difference(c, R"({"group":")" + std::string(200, 'x') + "\"}") ==
          "group: expected \"A5\", got \"" + std::string(79, 'x') + "…");
}

TEST_CASE("configuration: text that is none is said to be") {
    const json c{{"group", "A5"}};
    for (const char* text : {"", "{", "{\"group\":}", "nonsense", "{\"group\":\"\xff\"}", "{\"group\":1e999}"})
        CHECK(first_difference(c, text) == "expected an object of JSON, got text that is none");
    CHECK(first_difference(c, "[1]") == "expected an object of JSON, got array");
    CHECK(first_difference(c, "7") == "expected an object of JSON, got number");
    // So deep that going down would run out of stack.
    const std::string deep = "{\"group\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
    CHECK(first_difference(c, deep) == "expected at most 16 levels of JSON, got more");
    CHECK(first_difference(c, "{\"group\":" + std::string(14, '[') + std::string(14, ']') + "}")
              ->find("group: expected \"A5\", got [[") == 0);
}

TEST_CASE("configuration: numbers are those of JSON in any locale") {
    fprnn::testing::with_decimal_commas([] {
        CHECK_FALSE(fprnn::first_difference({{"rate", 1234.5}}, R"({"rate":1234.5})"));
        const auto difference = fprnn::first_difference({{"rate", 1234.5}}, R"({"rate":0.25})");
        REQUIRE(difference);
        CHECK(difference->to_string() == "rate: expected 1234.5, got 0.25");
    });
}

}  // namespace
