#pragma once

#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/evaluate.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace fprnn {

/// A task as a value, for programs that choose it when they run: what it is trained on, what it is tested on, and what is counted.
/// as_task(word_problem{…}) and others make one.
struct task {
    using sampler = std::function<void(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first)>;
    /// Data of one length, which is what the task counts it in: tokens, letters, bytes.
    struct test_set {
        sampler data;
        index tokens = 0;     ///< of a row
        index sequences = 0;  ///< that there are; 0: as many as are asked for
    };

    std::string name;  ///< such as "A5"
    index vocabulary = 0, classes = 0;
    sampler train;
    std::function<test_set(index length)> test;
    std::string length_unit = "tokens";
    std::string score_name = "accuracy on sequences";
    std::function<double(const evaluation&)> score = [](const evaluation& e) { return e.accuracy.sequence; };
    bool less_is_better = false;  ///< of scores
    /// The score of answers that are guessed, and its name; none: NaN.
    double guess = std::numeric_limits<double>::quiet_NaN();
    std::string guess_name = "guessing";
};

/// A task of a sampler with name(), vocabulary(), classes() and a member `part`, whose rows have as many tokens as are asked for.
template <class Data>
task as_task_of_any_length(Data data) {
    task t;
    t.name = data.name();
    t.vocabulary = data.vocabulary();
    t.classes = data.classes();
    data.part = split::train;
    t.train = data;
    data.part = split::test;
    t.test = [data](index length) { return task::test_set{.data = data, .tokens = length}; };
    return t;
}

/// A length counts the elements; a sequence is right when all its tokens are.
inline task as_task(const word_problem& data) {
    task t = as_task_of_any_length(data);
    if (data.begin_token)
        t.test = [at = t.test](index length) {
            auto set = at(length);
            ++set.tokens;
            return set;
        };
    return t;
}

}  // namespace fprnn
