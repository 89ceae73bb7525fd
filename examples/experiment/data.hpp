#pragma once

#include <fprnn/tasks/task.hpp>

#include <string>

namespace experiment {

namespace fp = fprnn;

/// What names a task.
struct data_options {
    enum class kind { word_problem };

    kind task = kind::word_problem;
    std::string group;  ///< of the word problem
};

/// Errors: fprnn::argument_error, which begins with the option that is wrong.
fp::task make_task(const data_options& o, fp::seed seed);

}  // namespace experiment
