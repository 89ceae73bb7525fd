#pragma once

#include <fprnn/tasks/task.hpp>

#include <string>

namespace experiment {

namespace fp = fprnn;

/// What names a task.
struct data_options {
    enum class kind { word_problem, arithmetic, text };

    kind task = kind::word_problem;
    std::string group;                     ///< of the word problem
    bool multiplies = true;                ///< whether arithmetic has products
    fp::index shortest = 3, longest = 40;  ///< rows of arithmetic, see fprnn::modular_arithmetic
    std::string files;                     ///< of text
};

/// Errors: fprnn::argument_error, which begins with the option that is wrong.
fp::task make_task(const data_options& o, fp::seed seed);

}  // namespace experiment
