#include "io/scratch_folder.hpp"

#include <fprnn/io/files.hpp>
#include <fprnn/tasks/babi_world.hpp>
#include <fprnn/tasks/task.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::index;
using fprnn::tensor;

TEST_CASE("task: a word problem as a value has its sequences, of both parts, and its sizes") {
    for (const bool begin_token : {false, true}) {
        const fprnn::word_problem data{.group = fprnn::finite_group("S3"),
                                       .seed = {4},
                                       .part = fprnn::split::validation,
                                       .begin_token = begin_token};
        const fprnn::task task = as_task(data);
        CHECK(task.name == "S3");
        CHECK(task.vocabulary == 6 + begin_token);
        CHECK(task.classes == 6 + begin_token);
        const auto set = task.test(5);
        CHECK(set.tokens == 5 + begin_token);
        CHECK(set.sequences == 0);
        for (const auto part : {fprnn::split::train, fprnn::split::test}) {
            auto own = data;
            own.part = part;
            tensor<std::int32_t> x({3, 6}), y({3, 6}), tokens({3, 6}), targets({3, 6});
            own(x.view(), y.view(), 9);
            (part == fprnn::split::train ? task.train : set.data)(tokens.view(), targets.view(), 9);
            for (index i = 0; i < x.size(); ++i) {
                CHECK(tokens[i] == x[i]);
                CHECK(targets[i] == y[i]);
            }
        }
        fprnn::evaluation e;
        e.accuracy = {.token = 0.75, .sequence = 0.5};
        CHECK(task.score(e) == 0.5);
        CHECK_FALSE(task.less_is_better);
        CHECK(task.of_sequences);
    }
}

TEST_CASE("task: arithmetic is tested with rows of 40 to the length, and its score is 0 for one answer in five") {
    const fprnn::task task = as_task(fprnn::modular_arithmetic{.seed = {4}});
    CHECK(task.vocabulary == 12);
    CHECK(task.classes == 5);
    for (const index T : {3, 5, 38, 50}) {  // rows in training are those that fit
        const fprnn::modular_arithmetic own{.longest = std::min<index>(40, T + 2), .seed = {4}};
        tensor<std::int32_t> x({6, T}), y({6, T}), tokens({6, T}), targets({6, T});
        own(x.view(), y.view(), 9);
        task.train(tokens.view(), targets.view(), 9);
        for (index i = 0; i < x.size(); ++i) {
            CHECK(tokens[i] == x[i]);
            CHECK(targets[i] == y[i]);
        }
    }
    tensor<std::int32_t> two({1, 2});
    CHECK_THROWS_WITH_AS(task.train(two.view(), two.view(), 0),
                         "modular_arithmetic: with longest = 4 sequences need T of at least 3, got T = 2",
                         fprnn::argument_error);
    for (const index length : {20, 40, 100}) {
        fprnn::modular_arithmetic own{
            .shortest = std::min<index>(40, length), .longest = length, .seed = {4}, .part = fprnn::split::test};
        const auto set = task.test(length);
        CHECK(set.tokens == length - 2);
        tensor<std::int32_t> x({3, set.tokens}), y({3, set.tokens}), tokens({3, set.tokens}), targets({3, set.tokens});
        own(x.view(), y.view(), 9);
        set.data(tokens.view(), targets.view(), 9);
        for (index i = 0; i < x.size(); ++i) {
            CHECK(tokens[i] == x[i]);
            CHECK(targets[i] == y[i]);
        }
    }
    fprnn::evaluation e;
    e.accuracy.token = 0.2;
    CHECK(task.score(e) == 0);
    e.accuracy.token = 1;
    CHECK(task.score(e) == 1);
    CHECK_FALSE(task.of_sequences);
    for (const bool multiplication : {false, true}) {
        const auto guess = as_task(fprnn::modular_arithmetic{.multiplication = multiplication, .seed = {4}}).guess;
        for (const index longest : {20, 40, 256}) {
            const fprnn::modular_arithmetic rows{.multiplication = multiplication,
                                                 .shortest = std::min<index>(40, longest),
                                                 .longest = longest,
                                                 .seed = {4},
                                                 .part = fprnn::split::test};
            CHECK(guess(longest) == fprnn::scaled_accuracy(fprnn::constant_answer_share(rows, 4096).share, 5));
        }
    }
}

TEST_CASE("task: copying is tested with strings of a length in letters, and letters are counted") {
    const fprnn::copying data{.letters = 4, .shortest = 2, .longest = 3, .seed = {4}};
    const fprnn::task task = as_task(data);
    CHECK(task.name == "copy");
    CHECK(task.vocabulary == 7);
    CHECK(task.classes == 7);
    CHECK(task.length_unit == "letters");
    CHECK(task.guess(5) == 0.25);
    CHECK_FALSE(task.of_sequences);
    const auto set = task.test(5);
    CHECK(set.tokens == 11);
    CHECK(set.sequences == 0);
    auto own = data;
    own.part = fprnn::split::test;
    tensor<std::int32_t> x({3, 11}), y({3, 11}), tokens({3, 11}), targets({3, 11});
    own.test(5)(x.view(), y.view(), 9);
    set.data(tokens.view(), targets.view(), 9);
    for (index i = 0; i < x.size(); ++i) {
        CHECK(tokens[i] == x[i]);
        CHECK(targets[i] == y[i]);
    }
    data(x.view(), y.view(), 9);
    task.train(tokens.view(), targets.view(), 9);
    for (index i = 0; i < x.size(); ++i) {
        CHECK(tokens[i] == x[i]);
        CHECK(targets[i] == y[i]);
    }
    fprnn::evaluation e;
    e.accuracy = {.token = 0.75, .sequence = 0.5};
    CHECK(task.score(e) == 0.75);
}

TEST_CASE("task: text is trained on windows of one part and tested on all of the other's, in bits") {
    const fprnn::testing::scratch_folder folder;
    std::string text;
    for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 7);
    fprnn::write_file(folder.path / "text", text);
    const fprnn::task task = as_task(fprnn::text_files((folder.path / "text").string()), fprnn::seed{3});
    CHECK(task.name == "text");
    CHECK(task.classes == 256);
    const auto set = task.test(10);
    CHECK(set.tokens == 10);
    CHECK(set.sequences == 10);  // of 100 bytes
    tensor<std::int32_t> tokens({2, 10}), targets({2, 10});
    set.data(tokens.view(), targets.view(), 1);
    for (index i = 0; i < 20; ++i) {
        const auto at = 900 + 10 + i;
        if (at >= 1000) continue;
        CHECK(tokens[i] == 'a' + at % 7);
        CHECK(targets[i] == (at == 999 ? fprnn::ignored_target : 'a' + (at + 1) % 7));
    }
    task.train(tokens.view(), targets.view(), 5);
    for (index b = 0; b < 2; ++b)
        for (index t = 0; t + 1 < 10; ++t) CHECK(tokens(b, t + 1) == targets(b, t));
    CHECK(task.less_is_better);
    fprnn::evaluation e;
    e.loss = std::log(2.0);
    CHECK(task.score(e) == doctest::Approx(1));
}

TEST_CASE("task: catbAbI is tested on every question of its part for tests once, and a language model is, too") {
    const fprnn::catbabi data(fprnn::babi_world{{2}}.stories(20, 5, 10));
    for (const bool language_model : {false, true})
        for (const bool whole_stories : {false, true}) {
            const fprnn::catbabi_options ask{.language_model = language_model, .whole_stories = whole_stories};
            const fprnn::task task = as_task(data, fprnn::seed{3}, ask);
            CHECK(task.name == "catbabi-babi-world");
            CHECK(task.vocabulary == data.vocabulary());
            CHECK(task.classes == data.vocabulary());
            const index T = data.longest_story(fprnn::split::test);
            const auto set = task.test(T);
            CHECK(set.tokens == T);
            CHECK(set.sequences == data.test_rows(fprnn::split::test, {.whole_stories = whole_stories}).rows(T));
            tensor<std::int32_t> tokens({set.sequences, T}), targets({set.sequences, T});
            set.data(tokens.view(), targets.view(), 0);
            index asked = 0;
            for (index i = 0; i < targets.size(); ++i) asked += targets[i] != fprnn::ignored_target;
            CHECK(asked == 9 * 10 * 5);
            tensor<std::int32_t> x({3, 200}), y({3, 200}), own_x({3, 200}), own_y({3, 200});
            task.train(x.view(), y.view(), 9);
            data.training_rows({3}, ask)(own_x.view(), own_y.view(), 9);
            for (index i = 0; i < x.size(); ++i) {
                CHECK(x[i] == own_x[i]);
                CHECK(y[i] == own_y[i]);
            }
            fprnn::evaluation e;
            e.accuracy = {.token = 0.75, .sequence = 0.5};
            CHECK(task.score(e) == 0.75);
            CHECK(task.guess(T) == data.constant_answer_share(fprnn::split::test).share);
        }
}

}  // namespace
