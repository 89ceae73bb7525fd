#pragma once

#include <fprnn/io/parameters.hpp>
#include <fprnn/io/read_file.hpp>
#include <fprnn/io/safetensors.hpp>
#include <fprnn/tape/parameters.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What `experiment --checkpoint-every N` has left.
class checkpoint {
public:
    explicit checkpoint(std::string path)
        : path_(std::move(path)),
          content_(fprnn::decode_safetensors(fprnn::read_file(path_, std::uintmax_t{1} << 30), path_)) {
        const auto found = content_.metadata.find("configuration");
        if (found != content_.metadata.end()) configuration_ = nlohmann::json::parse(found->second);
    }

    /// What the model was trained with.
    const nlohmann::json& configuration() const { return configuration_; }
    /// std::runtime_error where that is something else.
    void require(const nlohmann::json& expected) const {
        for (const auto& [key, value] : expected.items())
            if (configuration_.value(key, nlohmann::json()) != value)
                throw std::runtime_error(path_ + ": expected a checkpoint of experiment with " + key + " = " +
                                         value.dump() + ", got " + configuration_.value(key, nlohmann::json()).dump());
    }

    /// Overwrites theta with the parameters. std::runtime_error for those of another model.
    void read(fprnn::parameter_tree<float>& theta) const {
        constexpr std::string_view prefix = "theta.";
        std::vector<fprnn::named_array> parameters;
        for (fprnn::named_array a : content_.arrays)
            if (a.name.starts_with(prefix)) {
                a.name.erase(0, prefix.size());
                parameters.push_back(std::move(a));
            }
        (void)fprnn::decode_parameters(fprnn::encode_safetensors(parameters), path_, theta);
    }

private:
    std::string path_;
    fprnn::safetensors_content content_;
    nlohmann::json configuration_ = nlohmann::json::object();
};
