#pragma once

#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>

/// What is trained in the tests of training: the word problem of Z3 by models that are as small as they get.
namespace fprnn::testing {

inline const word_problem small_data{.group = finite_group("Z3"), .seed = {1}};

template <class Block>
auto small_model(Block block, double tolerance = 1e-6, index d_inner = 6) {
    return models::sequence_model(
        block, {.vocabulary = 3, .classes = 3, .d_model = 5, .d_inner = d_inner, .d_state = 3, .layers = 2},
        chunked{.length = 1, .tolerance = tolerance}, implicit{});
}

}  // namespace fprnn::testing
