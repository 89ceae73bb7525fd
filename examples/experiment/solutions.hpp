#pragma once

#include "network.hpp"

#include <fprnn/tasks/task.hpp>

namespace experiment {

/// The fixed points of the same sequences, found token by token (C = 1) and all at once (C = T) to a
/// tolerance of 1e-5, and how far they are apart, seen through the logits. What is relative is so to a
/// token's largest logit. Where two converged solutions that agreed to 0.1 % part by more than 10 % within
/// one token, that token has several fixed points.
struct two_solutions {
    static constexpr double tolerance = 1e-5;

    fp::index sequences = 0;
    double converged_sequential = 0, converged_parallel = 0;  ///< shares of the tokens
    double accuracy_sequential = 0, accuracy_parallel = 0;    ///< shares of sequences
    double largest_difference = 0, mean_difference = 0;       ///< relative, over the tokens
    double other_answers = 0;                                 ///< share of tokens whose answers are others
    double parting = 0;  ///< share of tokens that have several fixed points, of those where it can be seen
};

/// Of the first `sequences` of `data`. A whole sequence has at most `ell_max`, and four times as many
/// iterations as it has tokens.
two_solutions solve_both_ways(const network& model, const network::parameters& theta, const fp::task::test_set& data,
                              fp::index sequences, int ell_max);

}  // namespace experiment
