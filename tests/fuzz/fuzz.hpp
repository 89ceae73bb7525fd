#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

/// What a file of this folder defines to become a fuzz target; cmake/fuzz.cmake finds it by itself.
namespace fuzz {

/// What the fuzzer starts from: whole files, and what is known to break readers.
std::vector<std::string> seeds();

/// Reads the bytes, which stand in memory of exactly their size. Whatever leaves it as an exception is a
/// fault, so it catches what the reader's documentation announces, and nothing else.
void read(std::string_view bytes);

/// A claim about what was read.
inline void claim(bool holds) {
    if (!holds) std::abort();
}

}  // namespace fuzz

/// With FPRNN_FUZZ_SEEDS in the environment, writes the seeds into that folder and ends.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* folder = std::getenv("FPRNN_FUZZ_SEEDS");
    if (folder == nullptr) return 0;
    int i = 0;
    for (const std::string& seed : fuzz::seeds()) {
        std::ofstream file(std::string(folder) + "/" + std::to_string(i++), std::ios::binary);
        if (!file.write(seed.data(), static_cast<std::streamsize>(seed.size())).flush()) std::exit(1);
    }
    std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::read({reinterpret_cast<const char*>(data), size});
    return 0;
}
