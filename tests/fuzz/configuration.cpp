#include "fuzz/fuzz.hpp"

#include <fprnn/io/configuration.hpp>

namespace {
const nlohmann::ordered_json configuration{{"group", "A5"},    {"d_model", 64},       {"rate", 0.1},
                                           {"limit", nullptr}, {"lengths", {16, 32}}, {"resume", false}};
}

std::vector<std::string> fuzz::seeds() {
    return {configuration.dump(), configuration.dump(4), "{}", "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
            R"({"group":"\ud83d\ude00","d_model":-1e308,"rate":{"a":{"b":[true]}}})"};
}

void fuzz::read(std::string_view bytes) {
    const auto difference = fprnn::first_difference(configuration, bytes);
    if (!difference) {
        const auto got = nlohmann::json::parse(bytes);
        claim(got == nlohmann::json(configuration));
        return;
    }
    const std::string text = difference->to_string();
    claim(text.size() < 300);
    for (const char c : text) claim(static_cast<unsigned char>(c) >= ' ');
}
