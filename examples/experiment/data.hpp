#pragma once

#include <fprnn/tasks/task.hpp>

#include <string>

namespace experiment {

namespace fp = fprnn;

/// What names a task.
struct data_options {
    enum class kind { word_problem, copy, arithmetic, catbabi, text };

    kind task = kind::word_problem;
    std::string group;                    ///< of the word problem
    bool begins = false;                  ///< whether a token of its own stands before the word problem's elements
    bool multiplies = true;               ///< whether arithmetic has products
    fp::index shortest = 0, longest = 0;  ///< examples: of arithmetic in tokens, of copy in letters
    fp::index test_shortest = 40;         ///< of arithmetic: shortest rows of a test
    std::string files;                    ///< of text and catbabi, where none are stories of a generated world
    std::string contents;                 ///< of the files, as contents_of has it
};

/// Errors: fprnn::argument_error, which begins with the option that is wrong.
fp::task make_task(const data_options& o, fp::seed seed);

/// The test of task copy with strings of a length, whose data are those of make_task.
fp::copying_test copies_of(const data_options& o, fp::seed seed, fp::index length);

struct options;

/// Refuses what make_task would, as far as it can be said without making data, and windows that a text has
/// not got. Errors: as of make_task.
void require_task(const options& o);

/// What tells the bytes of --files, a file or all files of a folder, from others; empty where they cannot be
/// read.
std::string contents_of(const data_options& o);

/// Tokens of a row of test data of a length, as the task counts it.
fp::index tokens_of_test(const data_options& o, fp::index length);

/// Tokens of a row for training that has room for the longest example, of arithmetic and copy.
fp::index tokens_of_longest(const data_options& o);

/// As it stands above a picture: "State tracking on A5".
std::string title_of(const data_options& o);

}  // namespace experiment
