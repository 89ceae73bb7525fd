#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fprnn::testing {

/// A folder of its own that is gone afterwards.
struct scratch_folder {
    std::filesystem::path path;
    scratch_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "fprnn_test_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~scratch_folder() { std::filesystem::remove_all(path); }
    scratch_folder(const scratch_folder&) = delete;
};

}  // namespace fprnn::testing
