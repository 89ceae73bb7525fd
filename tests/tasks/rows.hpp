#pragma once

#include <fprnn/core/tensor.hpp>

#include <cstdint>
#include <vector>

/// Rows of a sampler, for the tests of tasks.
namespace rows {

struct batch {
    fprnn::tensor<std::int32_t> tokens, targets;
};

/// Of `count` rows from `first` on; what the sampler leaves out is −7.
template <class Sampler>
batch draw(const Sampler& sample, fprnn::index count, fprnn::index length, std::uint64_t first = 0) {
    batch b{fprnn::tensor<std::int32_t>({count, length}), fprnn::tensor<std::int32_t>({count, length})};
    b.tokens.fill(-7);
    b.targets.fill(-7);
    sample(b.tokens, b.targets, first);
    return b;
}

inline std::vector<std::int32_t> row(const fprnn::tensor<std::int32_t>& t, fprnn::index b) {
    const fprnn::index length = t.shape()[1];
    return {t.begin() + b * length, t.begin() + (b + 1) * length};
}

}  // namespace rows
