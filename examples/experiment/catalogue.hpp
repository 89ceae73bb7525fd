#pragma once

#include "exhibits.hpp"

/// The exhibits by name, for exhibits(), which has them in the order of the paper.
namespace experiment::catalogue {

extern const exhibit comparison, interpolation, parameters_of_a5, parameters_of_copying, fp_rnn_variants,
    fp_rnn_iterations, a5_and_s5, dependence, copying, train_time, language_iterations, complexity, language,
    length_128, catbabi, arithmetic, capped_iterations, iterations_in_training, two_solutions;

}  // namespace experiment::catalogue
