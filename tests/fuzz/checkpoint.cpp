#include "fuzz/fuzz.hpp"

#include <fprnn/io/checkpoint_format.hpp>

namespace {

const nlohmann::ordered_json configuration{{"group", "A5"}, {"d_model", 64}};

fprnn::training_state<float> state(fprnn::index steps) {
    fprnn::parameter_tree<float> theta;
    theta.add({"a", {2, 2}, {fprnn::initialiser::rule::normal, 1}});
    theta.add({"b.bias", {}, {fprnn::initialiser::rule::normal, 1}});
    fprnn::training_state<float> s(theta, {});
    s.optimiser.restore(steps, theta, theta);
    s.steps = steps;
    s.seconds = static_cast<double>(steps) / 3;
    return s;
}

/// Reads the bytes into a state, which becomes the one that they hold or stays as it was.
void decode(const std::string& bytes) {
    auto read = state(7);
    const std::string before = encode_checkpoint(read, configuration);
    try {
        fprnn::decode_checkpoint(bytes, "file", read, configuration);
    } catch (const std::runtime_error&) {
        fuzz::claim(encode_checkpoint(read, configuration) == before);
        return;
    }
    const std::string after = encode_checkpoint(read, configuration);
    auto again = state(7);
    fprnn::decode_checkpoint(after, "again", again, configuration);
    fuzz::claim(encode_checkpoint(again, configuration) == after);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    std::vector<std::string> files;
    for (const fprnn::index steps : {0, 5, 1200}) files.push_back(encode_checkpoint(state(steps), configuration));
    files.push_back(encode_checkpoint(state(5), {{"group", "S3"}}));
    files.push_back(files[1].substr(0, files[1].size() / 2));
    files.push_back(fprnn::encode_parameters(state(5).theta));
    return files;
}

void fuzz::read(std::string_view bytes) {
    std::string file(bytes);
    decode(file);
    // The fuzzer does not find checksums, so what lies behind them gets one that fits.
    const std::string field = "\"checksum\":\"";
    const auto at = file.find(field);
    if (at == file.npos || file.size() - at - field.size() < fprnn::detail::checksum_zeros.size()) return;
    const auto digits = at + field.size();
    file.replace(digits, fprnn::detail::checksum_zeros.size(), fprnn::detail::checksum_of(file, digits));
    decode(file);
}
