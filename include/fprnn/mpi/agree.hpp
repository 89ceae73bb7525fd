#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/train/ranks.hpp>

#include <exception>
#include <span>
#include <string>
#include <vector>

namespace fprnn::mpi::detail {

/// argument_error on all of them where one of them has something to say, with the text of the first.
inline void agree(ranks& all, const char* operation, const std::string& mine) {
    const auto texts = all.gather(std::as_bytes(std::span(mine)));
    for (std::size_t r = 0; r < texts.size(); ++r)
        require(texts[r].empty(), operation, [&] {
            return "rank " + std::to_string(r) + ": " +
                   std::string(reinterpret_cast<const char*>(texts[r].data()), texts[r].size());
        });
}

/// What `check` throws, as a text for agree.
template <class Check>
std::string message_of(Check check) {
    try {
        check();
        return {};
    } catch (const std::exception& e) {
        return e.what();
    }
}

/// That what all have to have alike is what rank 0 has.
inline void agree_on(ranks& all, const char* operation, const std::string& mine) {
    const auto texts = all.gather(std::as_bytes(std::span(mine)));
    const auto text = [&](std::size_t r) {
        return std::string(reinterpret_cast<const char*>(texts[r].data()), texts[r].size());
    };
    for (std::size_t r = 1; r < texts.size(); ++r)
        require(texts[r] == texts[0], operation,
                [&] { return "rank " + std::to_string(r) + ": expected " + text(0) + " of rank 0, got " + text(r); });
}

}  // namespace fprnn::mpi::detail
