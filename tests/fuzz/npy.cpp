#include "fuzz/fuzz.hpp"
#include "io/broken_npy.hpp"

#include <fprnn/io/npy.hpp>

namespace {

template <class T>
void read_as(std::string_view bytes) {
    try {
        const auto x = fprnn::decode_npy<T>(bytes, "file");
        const auto again = fprnn::decode_npy<T>(fprnn::encode_npy(x), "again");
        fuzz::claim(again.shape() == x.shape());
        fuzz::claim(x.empty() ||
                    std::memcmp(again.data(), x.data(), static_cast<std::size_t>(x.size()) * sizeof(T)) == 0);
    } catch (const std::runtime_error&) {
    }
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    std::vector<std::string> files;
    for (auto& broken : fprnn::testing::broken_npy()) files.push_back(std::move(broken.bytes));
    files.push_back(fprnn::encode_npy(fprnn::tensor<float>({2, 3})));
    files.push_back(fprnn::encode_npy(fprnn::tensor<double>(fprnn::shape{})));
    files.push_back(fprnn::encode_npy(fprnn::tensor<std::int32_t>({1, 0, 2, 1})));
    files.push_back(fprnn::encode_npy(fprnn::tensor<std::int64_t>({3})));
    files.push_back(
        fprnn::testing::npy_file("{'shape': (1,), 'descr': \"<f8\", 'fortran_order': False}\n", "12345678", 2));
    return files;
}

void fuzz::read(std::string_view bytes) {
    read_as<float>(bytes);
    read_as<double>(bytes);
    read_as<std::int32_t>(bytes);
    read_as<std::int64_t>(bytes);
}
