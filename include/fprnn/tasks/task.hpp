#pragma once

#include <fprnn/tasks/catbabi.hpp>
#include <fprnn/tasks/copying.hpp>
#include <fprnn/tasks/modular_arithmetic.hpp>
#include <fprnn/tasks/text.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/evaluate.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace fprnn {

/// A task as a value, for programs that choose it when they run: what it is trained on, what it is tested on,
/// and what is counted. as_task(word_problem{…}) and others make one.
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
    bool of_sequences = true;     ///< whether the score is the share of sequences that are right, all tokens of them
    /// The score of guessed answers to test data of a length, and its name; empty: it is not known.
    std::function<double(index length)> guess{};
    std::string guess_name = "guessing";
};

/// A task of a sampler with name(), vocabulary(), classes() and a member `part`, whose rows have as many
/// tokens as are asked for.
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

/// A length is that of the strings, in letters. The score is the share of letters that are right while the
/// true ones are read.
inline task as_task(const copying& data) {
    task t;
    t.name = data.name();
    t.vocabulary = data.vocabulary();
    t.classes = data.classes();
    auto train = data, test = data;
    train.part = split::train;
    test.part = split::test;
    t.train = train;
    t.test = [test](index length) {
        const copying_test strings = test.test(length);
        return task::test_set{.data = strings, .tokens = strings.tokens()};
    };
    t.length_unit = "letters";
    t.of_sequences = false;
    t.score_name = "accuracy on letters";
    t.score = [](const evaluation& e) { return e.accuracy.token; };
    t.guess = [share = 1.0 / static_cast<double>(data.letters)](index) { return share; };
    return t;
}

/// Rows of T tokens in training have the expressions that fit: a curriculum begins with short ones. A length
/// of a test is that of the longest rows, as modular_arithmetic counts them; the shortest are of `least` or,
/// where that is more, of the longest's length. The score is scaled: 0 for one answer in
/// `modulus`, 1 for all; the guess is the one constant answer that is right most often in 4096 rows.
inline task as_task(const modular_arithmetic& data, index least = 40) {
    task t;
    t.name = data.name();
    t.vocabulary = data.vocabulary();
    t.classes = data.classes();
    auto train = data, test = data;
    train.part = split::train;
    test.part = split::test;
    t.train = [train](view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) {
        auto rows = train;
        if (tokens.shape().rank() == 2) rows.longest = std::min(rows.longest, tokens.shape()[1] + 2);
        rows.shortest = std::min(rows.shortest, rows.longest);
        rows(tokens, targets, first);
    };
    const auto at = [test, least](index length) {
        auto rows = test;
        rows.longest = length;
        rows.shortest = std::min(least, length);
        return rows;
    };
    t.test = [at](index length) {
        const auto rows = at(length);
        return task::test_set{.data = rows, .tokens = rows.tokens_needed()};
    };
    t.of_sequences = false;
    t.score_name = "scaled accuracy";
    t.score = [m = data.modulus](const evaluation& e) { return scaled_accuracy(e.accuracy.token, m); };
    t.guess = [at](index length) {
        return scaled_accuracy(constant_answer_share(at(length), 4096).share, at(length).modulus);
    };
    t.guess_name = "one answer for all";
    return t;
}

/// A length is that of the windows, in bytes. What is tested on is the part for validation, every byte once;
/// the score is the cross-entropy in bits per byte.
inline task as_task(const text_files& text, seed s) {
    task t;
    t.name = text.name();
    t.vocabulary = t.classes = text_files::vocabulary();
    t.train = text.random_windows(s);
    t.test = [data = text.consecutive_windows(split::validation)](index length) {
        return task::test_set{.data = data, .tokens = length, .sequences = data.windows(length)};
    };
    t.length_unit = "bytes";
    t.of_sequences = false;
    t.score_name = "bits per byte";
    t.score = [](const evaluation& e) { return bits_per_byte(e.loss); };
    t.less_is_better = true;
    return t;
}

/// A length is that of the rows. What is tested on is the part for tests, every question of it once and by
/// itself, whatever `ask` says of a language model; the guess is the one answer that is right most often
/// there. With ask.whole_stories a length is at least that of the longest story.
inline task as_task(const catbabi& data, seed s, const catbabi_options& ask = {}) {
    task t;
    t.name = data.name();
    t.vocabulary = data.vocabulary();
    t.classes = data.classes();
    t.train = data.training_rows(s, ask);
    t.test = [rows = data.test_rows(split::test, {.whole_stories = ask.whole_stories})](index length) {
        return task::test_set{.data = rows, .tokens = length, .sequences = rows.rows(length)};
    };
    t.of_sequences = false;
    t.score_name = "accuracy on questions";
    t.score = [](const evaluation& e) { return e.accuracy.token; };
    t.guess = [share = data.constant_answer_share(split::test).share](index) { return share; };
    t.guess_name = "one answer for all";
    return t;
}

}  // namespace fprnn
