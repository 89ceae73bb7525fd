#include "fuzz/fuzz.hpp"
#include "io/broken_safetensors.hpp"

#include <fprnn/io/parameters.hpp>

#include <algorithm>

namespace {

fprnn::parameter_tree<float> parameters() {
    fprnn::parameter_tree<float> theta;
    theta.add({"a", {2, 2}, {fprnn::initialiser::rule::normal, 1}});
    theta.add({"b.bias", {}, {fprnn::initialiser::rule::normal, 1}});
    return theta;
}

template <class T>
bool same_bits(const fprnn::parameter_tree<T>& a, const fprnn::parameter_tree<T>& b) {
    return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    std::vector<std::string> files;
    for (auto& broken : fprnn::testing::broken_safetensors()) files.push_back(std::move(broken.bytes));
    files.push_back(fprnn::encode_safetensors({}));
    files.push_back(fprnn::encode_safetensors(
        {{"c", "BF16", {1, 1, 1, 1, 1, 2}, "1234"}, {"d", "I64", {}, "12345678"}, {"none", "U8", {0, 3}, ""}},
        {{"key", "value"}}));
    const auto theta = parameters();
    files.push_back(fprnn::encode_parameters(theta, {{"step", "1"}}));
    fprnn::parameter_tree<double> wide;
    for (const auto& e : theta.entries()) wide.add({e.name, e.shape, {}});
    files.push_back(fprnn::encode_parameters(wide));
    return files;
}

void fuzz::read(std::string_view bytes) {
    // What is taken is written again as the same arrays.
    try {
        const auto file = fprnn::decode_safetensors(std::string(bytes), "file");
        const auto again = fprnn::decode_safetensors(fprnn::encode_safetensors(file.arrays, file.metadata), "again");
        claim(again.metadata == file.metadata);
        claim(std::equal(again.arrays.begin(), again.arrays.end(), file.arrays.begin(), file.arrays.end(),
                         [](const fprnn::named_array& a, const fprnn::named_array& b) {
                             return a.name == b.name && a.dtype == b.dtype && a.extents == b.extents &&
                                    a.bytes == b.bytes;
                         }));
    } catch (const std::runtime_error&) {
    }
    // Parameters are replaced or left as they are.
    auto theta = parameters();
    try {
        fprnn::decode_parameters(std::string(bytes), "file", theta, fprnn::precision::converted);
    } catch (const std::runtime_error&) {
        claim(same_bits(theta, parameters()));
    }
}
