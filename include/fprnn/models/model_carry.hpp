#pragma once

#include <fprnn/core/tensor.hpp>

#include <vector>

namespace fprnn::models {

/// Where a model's call ended, so that another goes on from there; made empty, the beginning. So are rows of
/// zeros.
template <class T, class Tensor = tensor<T>>
struct model_carry {
    std::vector<Tensor> blocks;  ///< of each block [B, numbers that it hands on]
};

}  // namespace fprnn::models
