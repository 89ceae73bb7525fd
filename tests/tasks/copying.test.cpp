#include "rows.hpp"

#include <fprnn/models/lstm.hpp>
#include <fprnn/tasks/copying.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::copying;
using fprnn::copying_test;
using fprnn::ignored_target;
using fprnn::index;
using fprnn::tensor;
using split = fprnn::split;
using ids = std::vector<std::int32_t>;
using rows::batch;
using rows::draw;
using rows::row;

static_assert(fprnn::sampler<const copying&>);
static_assert(fprnn::sampler<const copying_test&>);

batch draw(const copying_test& problem, index rows, std::uint64_t first = 0) {
    return draw(problem, rows, problem.tokens(), first);
}

index counted(const ids& targets) {
    return static_cast<index>(targets.size()) - std::count(targets.begin(), targets.end(), ignored_target);
}

// A second description of a row, from its tokens alone: the strings between a begin and a separator, each
// written as an example.
struct parsed {
    std::vector<ids> strings;  // the last one may be truncated
    ids text, targets;         // of the whole row
};

parsed parse(const ids& tokens, std::int32_t letters) {
    const std::int32_t begin = letters, separator = letters + 1, end = letters + 2;
    parsed result;
    const std::size_t T = tokens.size();
    std::size_t at = 0;
    while (at < T) {
        REQUIRE(tokens[at] == begin);
        ids example{begin}, string;
        while (at + example.size() < T && tokens[at + example.size()] < letters) {
            string.push_back(tokens[at + example.size()]);
            example.push_back(string.back());
        }
        ids targets(example.size(), ignored_target);
        if (at + example.size() < T) {  // the string is whole
            example.push_back(separator);
            for (const auto& part : {string, ids{end}}) example.insert(example.end(), part.begin(), part.end());
            if (at + example.size() <= T + 1) {
                for (const auto& part : {string, ids{end}}) targets.insert(targets.end(), part.begin(), part.end());
                targets.push_back(ignored_target);
            } else {
                targets.assign(example.size(), ignored_target);
            }
        }
        result.strings.push_back(string);
        result.text.insert(result.text.end(), example.begin(), example.end());
        result.targets.insert(result.targets.end(), targets.begin(), targets.end());
        at += example.size();
    }
    result.text.resize(T);
    result.targets.resize(T);
    return result;
}

// Pearson's statistic of equal expected counts.
double chi_square(const std::vector<index>& values, index classes) {
    std::vector<double> count(static_cast<std::size_t>(classes));
    for (const index v : values) ++count.at(static_cast<std::size_t>(v));
    const double expected = static_cast<double>(values.size()) / static_cast<double>(classes);
    double sum = 0;
    for (const double c : count) sum += (c - expected) * (c - expected) / expected;
    return sum;
}
// The statistic has mean `degrees` and deviation √(2·degrees).
void check_uniform(const std::vector<index>& values, index classes) {
    const auto degrees = static_cast<double>(classes - 1);
    const double statistic = chi_square(values, classes);
    CHECK(statistic < degrees + 4 * std::sqrt(2 * degrees));
    CHECK(statistic > degrees - 4 * std::sqrt(2 * degrees));
}

TEST_CASE("copying: rows of an alphabet of one letter, written by hand") {
    // a is 0, begin 1, separator 2, end 3.
    const copying problem{.letters = 1, .shortest = 2, .longest = 2};
    const auto two = draw(problem, 1, 13);  // the second end is a target alone
    CHECK(row(two.tokens, 0) == ids{1, 0, 0, 2, 0, 0, 3, 1, 0, 0, 2, 0, 0});
    CHECK(row(two.targets, 0) == ids{-1, -1, -1, 0, 0, 3, -1, -1, -1, -1, 0, 0, 3});
    const auto truncated = draw(problem, 1, 12);
    CHECK(row(truncated.tokens, 0) == ids{1, 0, 0, 2, 0, 0, 3, 1, 0, 0, 2, 0});
    CHECK(row(truncated.targets, 0) == ids{-1, -1, -1, 0, 0, 3, -1, -1, -1, -1, -1, -1});
    const auto least = draw(problem, 1, 6);
    CHECK(row(least.tokens, 0) == ids{1, 0, 0, 2, 0, 0});
    CHECK(row(least.targets, 0) == ids{-1, -1, -1, 0, 0, 3});
    const auto test = draw(problem.test(2), 1);
    CHECK(row(test.tokens, 0) == ids{1, 0, 0, 2, 0});
    CHECK(row(test.targets, 0) == ids{-1, -1, -1, 0, 0});
    const auto single = draw(problem.test(1), 1);
    CHECK(row(single.tokens, 0) == ids{1, 0, 2});
    CHECK(row(single.targets, 0) == ids{-1, -1, 0});
}

TEST_CASE("copying: the vocabulary is the authors' without padding") {
    const copying problem;
    CHECK(problem.letters == 26);
    CHECK(problem.shortest == 5);
    CHECK(problem.longest == 50);
    CHECK(problem.vocabulary() == 29);
    CHECK(problem.classes() == 29);
    CHECK(problem.name() == "copy");
    CHECK(problem.begin_token() == 26);
    CHECK(problem.separator_token() == 27);
    CHECK(problem.end_token() == 28);
    const auto test = problem.test(7);
    CHECK(test.vocabulary() == 29);
    CHECK(test.classes() == 29);
    CHECK(test.name() == "copy");
    CHECK(test.tokens() == 15);
    CHECK(test.prompt() == 9);
}

TEST_CASE("copying: rows are those that a plain reading of their tokens writes again") {
    index wrong = 0, exact = 0, truncated = 0;
    for (const index T : {12, 37, 64, 103, 219, 256})
        for (const copying& problem : {copying{.seed = {3}}, copying{.letters = 2, .longest = 9, .seed = {4}}}) {
            const auto b = draw(problem, 60, T);
            for (index r = 0; r < 60; ++r) {
                const auto tokens = row(b.tokens, r), targets = row(b.targets, r);
                const parsed plain = parse(tokens, problem.begin_token());
                wrong += plain.text != tokens || plain.targets != targets;
                // n + 1 of a whole example, whose end may be the row's last target.
                index expected = 0, room = T + 1;
                for (const ids& s : plain.strings) {
                    const auto n = static_cast<index>(s.size());
                    const bool whole = 2 * n + 3 <= room;
                    expected += whole ? n + 1 : 0;
                    exact += whole && room == 2 * n + 3;
                    truncated += !whole;
                    room -= 2 * n + 3;
                    if (whole) wrong += n < problem.shortest || n > problem.longest;
                }
                wrong += counted(targets) != expected;
            }
        }
    CHECK(wrong == 0);
    CHECK(exact > 0);
    CHECK(truncated > 0);
}

TEST_CASE("copying: row 0 of seed 0 begins with Random123's published numbers") {
    // Philox4x32-10 of counter 0 and key 0 is 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
    const auto n = 5 + static_cast<index>(46.0 * 0xe169c58d / 4294967296.0);
    const auto letter = static_cast<std::int32_t>(26.0 * 0x9b00dbd8 / 4294967296.0);
    const auto b = draw(copying{}, 1, 128);
    CHECK(b.tokens(0, 0) == 26);
    CHECK(b.tokens(0, 1) == letter);
    CHECK(b.tokens(0, n + 1) == 27);
    CHECK(b.tokens(0, 2 * n + 2) == 28);
    CHECK(draw(copying{}.test(3), 1).tokens(0, 1) == letter);
}

TEST_CASE("copying: a test asks for all n letters and nothing else") {
    for (const index n : {1, 2, 5, 50, 100}) {
        CAPTURE(n);
        const auto test = copying{.seed = {6}, .part = split::test}.test(n);
        const auto b = draw(test, 40);
        REQUIRE(b.tokens.shape()[1] == 2 * n + 1);
        index wrong = 0;
        for (index r = 0; r < 40; ++r) {
            const auto tokens = row(b.tokens, r), targets = row(b.targets, r);
            const ids string(tokens.begin() + 1, tokens.begin() + 1 + n);
            ids expected{26};
            for (const auto& part : {string, ids{27}, string})
                expected.insert(expected.end(), part.begin(), part.end());
            const ids next(expected.begin() + n + 2, expected.end());
            expected.pop_back();
            wrong += tokens != expected;
            wrong += counted({targets.begin(), targets.begin() + n + 1}) != 0;
            wrong += ids(targets.begin() + n + 1, targets.end()) != next;
            wrong += *std::min_element(string.begin(), string.end()) < 0;
            wrong += *std::max_element(string.begin(), string.end()) > 25;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("copying: a row depends on its number alone, not on the batch or the order of calls") {
    const copying problem{.seed = {11}};
    const auto test = problem.test(20);
    const auto whole = draw(problem, 12, 150, 100), tests = draw(test, 12, 100);
    for (index r = 11; r >= 0; --r) {
        const std::uint64_t number = 100 + static_cast<std::uint64_t>(r);
        const auto alone = draw(problem, 1, 150, number), alone_test = draw(test, 1, number);
        CHECK(row(alone.tokens, 0) == row(whole.tokens, r));
        CHECK(row(alone.targets, 0) == row(whole.targets, r));
        CHECK(row(alone_test.tokens, 0) == row(tests.tokens, r));
        CHECK(row(alone_test.targets, 0) == row(tests.targets, r));
    }
}

TEST_CASE("copying: a longer row begins with the tokens of a shorter one, and with the targets of its whole examples") {
    const copying problem{.seed = {12}};
    const auto longer = draw(problem, 50, 400);
    index truncated = 0;
    for (const index T : {60, 150, 256}) {
        const auto shorter = draw(problem, 50, T);
        for (index r = 0; r < 50; ++r) {
            ids tokens = row(longer.tokens, r), targets = row(longer.targets, r);
            tokens.resize(static_cast<std::size_t>(T));
            targets.resize(static_cast<std::size_t>(T));
            CHECK(tokens == row(shorter.tokens, r));
            const auto last = std::find(tokens.rbegin(), tokens.rend(), problem.begin_token()).base() - 1;
            const auto place = last - tokens.begin();
            const ids own = row(shorter.targets, r);
            CHECK(std::equal(own.begin(), own.begin() + place, targets.begin()));
            const bool whole = own.back() == problem.end_token() || tokens.back() == problem.end_token();
            if (whole) CHECK(own == targets);
            if (!whole) CHECK(counted({own.begin() + place, own.end()}) == 0);
            truncated += !whole && counted({targets.begin() + place, targets.end()}) > 0;
        }
    }
    CHECK(truncated > 20);  // in most of which the longer row has targets where the shorter one has none
}

TEST_CASE("copying: the test of n letters begins with that of fewer, and is a training row's first example") {
    const copying problem{.seed = {13}};
    const auto longer = draw(problem.test(30), 20), shorter = draw(problem.test(10), 20);
    const auto rows = draw(problem, 20, 128);
    for (index r = 0; r < 20; ++r) {
        const ids a = row(longer.tokens, r), b = row(shorter.tokens, r), c = row(rows.tokens, r);
        CHECK(std::equal(b.begin(), b.begin() + 11, a.begin()));
        const auto n = std::min<index>(30, std::find(c.begin(), c.end(), problem.separator_token()) - c.begin() - 1);
        CHECK(std::equal(a.begin(), a.begin() + n + 1, c.begin()));
    }
}

TEST_CASE("copying: rows, seeds and the parts all differ") {
    std::vector<ids> rows, tests;
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (const auto part : {split::train, split::validation, split::test}) {
            const copying problem{.seed = {seed}, .part = part};
            const auto b = draw(problem, 100, 60), t = draw(problem.test(12), 100);
            for (index r = 0; r < 100; ++r) rows.push_back(row(b.tokens, r)), tests.push_back(row(t.tokens, r));
        }
    for (auto* all : {&rows, &tests}) {
        std::sort(all->begin(), all->end());
        CHECK(all->size() == 900);
        CHECK(std::adjacent_find(all->begin(), all->end()) == all->end());
    }
}

TEST_CASE("copying: lengths are uniform on shortest to longest, letters on the alphabet") {
    const copying problem{.seed = {5}};
    const auto b = draw(problem, 4000, 206);
    std::vector<index> first, second, last, letters;
    for (index r = 0; r < 4000; ++r) {
        const auto plain = parse(row(b.tokens, r), 26);  // of 103 tokens at most: two are whole
        first.push_back(static_cast<index>(plain.strings.at(0).size()) - 5);
        second.push_back(static_cast<index>(plain.strings.at(1).size()) - 5);
        last.push_back(plain.strings[0].back());
        for (std::size_t i = 0; i < 2; ++i)
            letters.insert(letters.end(), plain.strings[i].begin(), plain.strings[i].end());
    }
    check_uniform(first, 46);
    check_uniform(second, 46);
    check_uniform(letters, 26);
    std::vector<index> pairs;
    for (std::size_t r = 0; r < first.size(); ++r) pairs.push_back(first[r] / 23 * 2 + second[r] / 23);
    check_uniform(pairs, 4);
    std::vector<index> joined;  // an example's last letter, and the length of the next
    for (std::size_t r = 0; r < last.size(); ++r) joined.push_back(last[r] / 13 * 2 + second[r] / 23);
    check_uniform(joined, 4);

    const auto t = draw(problem.test(3), 4000);
    std::vector<index> tested, neighbours;
    for (index r = 0; r < 4000; ++r) {
        for (index i = 1; i <= 3; ++i) tested.push_back(t.tokens(r, i));
        neighbours.push_back(t.tokens(r, 1) * 26 + t.tokens(r, 2));
    }
    check_uniform(tested, 26);
    check_uniform(neighbours, 26 * 26);
}

TEST_CASE("copying: letters, shortest or longest out of range are refused with what is accepted") {
    const auto message = [](const copying& problem) {
        try {
            (void)draw(problem, 1, 64);
        } catch (const argument_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message({.letters = 0}) == "copying: letters must be in [1,2147483645], got 0");
    CHECK(message({.letters = -3}) == "copying: letters must be in [1,2147483645], got -3");
    CHECK(message({.letters = 2147483646}) == "copying: letters must be in [1,2147483645], got 2147483646");
    CHECK(message({.letters = 2147483645}).empty());
    CHECK(message({.shortest = 0}) == "copying: shortest must be at least 1, got 0");
    CHECK(message({.shortest = 6, .longest = 5}) ==
          "copying: longest must be in [shortest,2^60], got shortest 6 and longest 5");
    constexpr index most = std::numeric_limits<index>::max();
    CHECK(message({.longest = most}) ==
          "copying: longest must be in [shortest,2^60], got shortest 5 and longest " + std::to_string(most));
    CHECK(message({.longest = copying::max_length}).empty());
    CHECK(message({.shortest = 1, .longest = 1}).empty());
}

TEST_CASE("copying: tokens that the shortest example does not fit into are refused with their number") {
    const copying problem;
    CHECK_THROWS_WITH_AS(draw(problem, 2, 11),
                         "copying: T must be at least 12, what an example of shortest = 5 letters needs, got 11",
                         argument_error);
    CHECK_THROWS_AS(draw(problem, 0, 0), argument_error);
    CHECK_NOTHROW(draw(problem, 0, 12));
    // Of so many rows some have an example of 5 letters.
    const auto b = draw(problem, 400, 12);
    CHECK(std::any_of(b.targets.begin(), b.targets.end(), [](std::int32_t t) { return t == 28; }));
}

TEST_CASE("copying: a test refuses other lengths, lengths below 1 and alphabets below 1") {
    const auto test = copying{}.test(4);
    for (const index T : {8, 10})
        CHECK_THROWS_WITH_AS(
            draw(test, 2, T),
            ("copying_test: T must be 9, what an example of 4 letters needs, got " + std::to_string(T)).c_str(),
            argument_error);
    CHECK_THROWS_WITH_AS((void)copying{}.test(0), "copying::test: n must be in [1,2^60] letters, got 0",
                         argument_error);
    CHECK_THROWS_AS((void)copying{}.test(copying::max_length + 1), argument_error);
    const copying_test none;
    CHECK_THROWS_WITH_AS((void)none.tokens(), "copying_test: n must be in [1,2^60] letters, got 0", argument_error);
    CHECK_THROWS_AS((void)none.prompt(), argument_error);
    CHECK_THROWS_AS(draw(none, 1, 1), argument_error);
    CHECK_THROWS_WITH_AS(draw(copying{.letters = 0}.test(4), 1),
                         "copying_test: letters must be in [1,2147483645], got 0", argument_error);
}

TEST_CASE("copying: shapes and numbers of rows out of range are refused") {
    const copying problem;
    const auto test = problem.test(1);
    tensor<std::int32_t> tokens({2, 12}), targets({12, 2}), flat(fprnn::shape{3});
    CHECK_THROWS_WITH_AS(problem(tokens, targets, 0),
                         "copying: tokens and targets must both be [B,T], got [2,12] and [12,2]", argument_error);
    CHECK_THROWS_WITH_AS(test(flat, flat, 0), "copying_test: tokens and targets must both be [B,T], got [3] and [3]",
                         argument_error);
    const std::uint64_t last = (std::uint64_t{1} << 62) - 1;
    CHECK_NOTHROW(draw(problem, 1, 12, last));
    CHECK_NOTHROW(draw(test, 1, last));
    CHECK_THROWS_AS(draw(problem, 2, 12, last), argument_error);
    CHECK_THROWS_AS(draw(test, 2, last), argument_error);
}

/// Copies by counting: its k-th answer is the k-th letter of the string plus the distance of the letter that
/// it read last from the string's, and one more at `mistake`. Hence all letters that it writes after a wrong
/// one are wrong. Where the string begins with an odd letter it makes no mistake.
struct copyist {
    index letters;
    index mistake = -1;
    float logit_of_end = 0;  ///< where it does not answer with it; that of an answer is 1
    std::vector<fprnn::shape>* calls = nullptr;

    using carry = fprnn::models::model_carry<float>;
    using solutions = std::vector<fprnn::solution<float>>;

    tensor<float> evaluate(const fprnn::parameter_tree<float>&, fprnn::view<const std::int32_t> tokens, carry& from,
                           solutions*, const fprnn::eigen&) const {
        constexpr index most = 400;
        const index B = tokens.shape()[0], T = tokens.shape()[1], V = letters + 3;
        if (calls) calls->push_back(tokens.shape());
        // Tokens so far, and those tokens.
        if (from.blocks.empty()) from.blocks.emplace_back(fprnn::shape{B, most + 1});
        auto& state = from.blocks[0];
        REQUIRE(state.shape()[0] == B);
        tensor<float> logits({B, T, V});
        for (index b = 0; b < B; ++b)
            for (index t = 0; t < T; ++t) {
                const auto read = static_cast<index>(++state(b, 0));
                REQUIRE(read <= most);
                state(b, read) = static_cast<float>(tokens(b, t));
                logits(b, t, V - 1) = logit_of_end;
                logits(b, t, answer(&state(b, 1), read)) = 1;
            }
        return logits;
    }
    tensor<float> evaluate(const fprnn::parameter_tree<float>& theta, fprnn::view<const std::int32_t> tokens,
                           solutions* how, const fprnn::eigen& backend) const {
        carry beginning;
        return evaluate(theta, tokens, beginning, how, backend);
    }

private:
    index answer(const float* text, index read) const {
        const index n = std::find(text, text + read, static_cast<float>(letters + 1)) - text - 1;
        if (n == read - 1) return letters + 2;  // no separator yet
        const index k = read - n - 2;           // letters read since
        if (k >= n) return letters + 2;
        const auto letter = [&](index i) { return static_cast<index>(text[i]); };
        const index off = k == 0 ? 0 : letter(read - 1) - letter(k);
        const bool errs = k == mistake && letter(1) % 2 == 0;
        return (letter(k + 1) + off + errs + letters) % letters;
    }
};

const fprnn::parameter_tree<float> no_parameters;

TEST_CASE("generated_copies: of a model without mistakes all is right, as in evaluate") {
    for (const index n : {1, 2, 17}) {
        CAPTURE(n);
        const auto test = copying{.seed = {1}, .part = split::test}.test(n);
        const copyist model{.letters = 26};
        const auto written = fprnn::generated_copies(model, no_parameters, test, 300, fprnn::eigen(1));
        const auto read = fprnn::evaluate(model, no_parameters, test.tokens(), 300, test, fprnn::eigen(1));
        CHECK(written.token == 1);
        CHECK(written.sequence == 1);
        CHECK(read.accuracy.token == 1);
        CHECK(read.accuracy.sequence == 1);
    }
}

TEST_CASE("generated_copies: a mistake goes on in what the model writes, not in what evaluate lets it read") {
    const index n = 12, sequences = 300;
    const auto test = copying{.seed = {9}, .part = split::test}.test(n);
    const auto b = draw(test, sequences);
    index even = 0, of_first = 0, of_last = 0;  // among 44 sequences, as the second batch has
    for (index s = 0; s < sequences; ++s) {
        const bool is_even = b.tokens(s, 1) % 2 == 0;
        even += is_even;
        of_first += s < 44 && is_even;
        of_last += s >= 256 && is_even;
    }
    REQUIRE(even > 100);
    REQUIRE(even < 200);
    REQUIRE(of_first != of_last);
    for (const index mistake : {0, 4, 11}) {
        CAPTURE(mistake);
        const copyist model{.letters = 26, .mistake = mistake};
        const auto written = fprnn::generated_copies(model, no_parameters, test, sequences, fprnn::eigen(1));
        const auto read = fprnn::evaluate(model, no_parameters, test.tokens(), sequences, test, fprnn::eigen(1));
        const auto all = static_cast<double>(n * sequences);
        CHECK(written.token == static_cast<double>(n * sequences - even * (n - mistake)) / all);
        CHECK(read.accuracy.token == static_cast<double>(n * sequences - even) / all);
        CHECK(written.sequence == static_cast<double>(sequences - even) / static_cast<double>(sequences));
        CHECK(written.sequence == read.accuracy.sequence);
    }
}

TEST_CASE("generated_copies: a prompt and n - 1 letters are read, by at most 256 sequences and 2^16 tokens at once") {
    std::vector<fprnn::shape> calls;
    const copyist model{.letters = 26, .calls = &calls};
    (void)fprnn::generated_copies(model, no_parameters, copying{}.test(3), 300, fprnn::eigen(1));
    CHECK(calls == std::vector<fprnn::shape>{{256, 5}, {256, 1}, {256, 1}, {44, 5}, {44, 1}, {44, 1}});
    calls.clear();
    (void)fprnn::generated_copies(model, no_parameters, copying{}.test(150), 300, fprnn::eigen(1));
    REQUIRE(calls.size() == 300);
    CHECK(calls[0] == fprnn::shape{217, 152});
    CHECK(calls[149] == fprnn::shape{217, 1});
    CHECK(calls[150] == fprnn::shape{83, 152});
}

TEST_CASE("generated_copies: of equal logits the first counts, and one that is not finite is wrong, as in evaluate") {
    const auto test = copying{}.test(4);
    for (const float logit : {1.0f, 2.0f, std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
        CAPTURE(logit);
        const copyist model{.letters = 26, .logit_of_end = logit};
        const auto written = fprnn::generated_copies(model, no_parameters, test, 10, fprnn::eigen(1));
        const auto read = fprnn::evaluate(model, no_parameters, test.tokens(), 10, test, fprnn::eigen(1));
        CHECK(written.token == (logit == 1 ? 1 : 0));
        CHECK(written.sequence == written.token);
        CHECK(read.accuracy.token == written.token);
    }
}

TEST_CASE("generated_copies: no sequences, and logits of another vocabulary, are refused") {
    const auto test = copying{}.test(4);
    CHECK_THROWS_WITH_AS(fprnn::generated_copies(copyist{.letters = 26}, no_parameters, test, 0, fprnn::eigen(1)),
                         "generated_copies: sequences must be at least 1, got 0", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::generated_copies(copyist{.letters = 27}, no_parameters, test, 2, fprnn::eigen(1)),
                         "generated_copies: the model's logits must be [2,6,29], got [2,6,30]", argument_error);
    CHECK_THROWS_AS(fprnn::generated_copies(copyist{.letters = 26}, no_parameters, copying_test{}, 2, fprnn::eigen(1)),
                    argument_error);
}

TEST_CASE("generated_copies: a sequence_model writes letter by letter what it writes reading all again") {
    const auto test = copying{.letters = 2, .seed = {3}, .part = split::test}.test(3);
    const index sequences = 40, n = test.n, V = test.classes();
    const fprnn::models::sequence_model model(
        fprnn::models::lstm(), {.vocabulary = V, .classes = V, .d_model = 8, .d_inner = 8}, {.length = 1});
    const auto theta = model.init<double>(fprnn::seed{4});
    const auto b = draw(test, sequences);
    index right = 0, whole = 0;
    for (index s = 0; s < sequences; ++s) {
        ids text = row(b.tokens, s);
        text.resize(static_cast<std::size_t>(test.prompt()));
        index of_this = 0;
        for (index i = 0; i < n; ++i) {
            const auto logits =
                model.evaluate(theta, tensor<std::int32_t>({1, static_cast<index>(text.size())}, text).view());
            const double* last = logits.end() - V;
            text.push_back(static_cast<std::int32_t>(std::max_element(last, last + V) - last));
            of_this += text.back() == b.tokens(s, i + 1);
        }
        right += of_this;
        whole += of_this == n;
    }
    REQUIRE(whole > 0);
    REQUIRE(right < n * sequences);
    const auto written = fprnn::generated_copies(model, theta, test, sequences);
    CHECK(written.token == static_cast<double>(right) / static_cast<double>(n * sequences));
    CHECK(written.sequence == static_cast<double>(whole) / static_cast<double>(sequences));
    CHECK(written.sequence == fprnn::evaluate(model, theta, test.tokens(), sequences, test).accuracy.sequence);
}

}  // namespace
