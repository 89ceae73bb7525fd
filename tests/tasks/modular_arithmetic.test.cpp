#include "rows.hpp"

#include <fprnn/tasks/modular_arithmetic.hpp>
#include <fprnn/train/sampler.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::ignored_target;
using fprnn::index;
using fprnn::modular_arithmetic;
using fprnn::split;
using rows::batch;
using rows::row;

static_assert(fprnn::sampler<const modular_arithmetic>);

batch draw(const modular_arithmetic& task, index sequences, index T, std::uint64_t first = 0) {
    return rows::draw(task, sequences, T, first);
}

// A second description of the task that shares nothing with the header: a row as text, in which a digit is d
// with its value beside it, and a grammar read by recursive descent.
struct text_row {
    std::string letters;
    std::vector<long> digits;
};

text_row read(const std::vector<std::int32_t>& tokens, long modulus) {
    text_row r;
    for (const long x : tokens) {
        r.letters += x < 0 || x >= modulus + 7 ? '?' : x < modulus ? 'd' : "+-*()=_"[x - modulus];
        r.digits.push_back(x);
    }
    return r;
}

// expr → d | -d | (d) | (-d) | (expr op expr). Results are reduced to −m/2 … m/2, unlike those of the header.
struct parser {
    const text_row& text;
    long modulus;
    std::size_t at = 0;
    bool ok = true;
    std::string operators{};
    std::vector<std::pair<long, long>> splits{};  // tokens of an operation, and of its left side
    std::vector<long> numbers{};

    long reduce(long v) const {
        v %= modulus;
        return 2 * v > modulus ? v - modulus : 2 * v < -modulus ? v + modulus : v;
    }
    bool take(char c) {
        if (at >= text.letters.size() || text.letters[at] != c) return false;
        ++at;
        return true;
    }
    long number() {
        if (!take('d')) {
            ok = false;
            return 0;
        }
        numbers.push_back(text.digits[at - 1]);
        return text.digits[at - 1];
    }
    long expression() {
        const std::size_t begin = at;
        if (take('-')) return -number();
        if (!take('(')) return number();
        const long left = expression();
        if (!ok) return 0;
        if (take(')')) {
            // Brackets around one number, with or without its sign; not around brackets.
            if (text.letters[begin + 1] == '(') ok = false;
            return left;
        }
        const auto left_length = static_cast<long>(at - begin - 1);
        const char op = at < text.letters.size() ? text.letters[at++] : '?';
        operators += op;
        const long right = expression();
        if (!take(')')) ok = false;
        if (!ok) return 0;
        splits.emplace_back(static_cast<long>(at - begin), left_length);
        if (op == '+') return reduce(left + right);
        if (op == '-') return reduce(left - right);
        if (op == '*') return reduce(left * right);
        ok = false;
        return 0;
    }
};

// What a row must be, or in `wrong` what is not as it must be.
struct reading {
    std::string wrong{};
    long length = 0;  // of the expression
    long value = 0;
    std::string operators{};
    std::vector<std::pair<long, long>> splits{};
    std::vector<long> numbers{};
};

reading parse(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets, long modulus) {
    const text_row text = read(tokens, modulus);
    parser p{text, modulus};
    const long value = ((p.expression() % modulus) + modulus) % modulus;
    reading r{"", static_cast<long>(p.at), value, p.operators, p.splits, p.numbers};
    if (!p.ok) r.wrong = "grammar: " + text.letters;
    if (!p.take('=')) r.wrong = "no = after the expression: " + text.letters;
    const std::size_t equals = p.at - 1;
    for (std::size_t t = equals + 1; t < tokens.size(); ++t)
        if (tokens[t] != (t == equals + 1 ? 0 : modulus + 6)) r.wrong = "padding: " + text.letters;
    for (std::size_t t = 0; t < targets.size(); ++t)
        if (targets[t] != (t == equals ? value : ignored_target))
            r.wrong = "target " + std::to_string(targets[t]) + " at " + std::to_string(t) + " of " + text.letters;
    return r;
}

std::vector<reading> parse_all(const batch& b, long modulus) {
    std::vector<reading> all;
    for (index s = 0; s < b.tokens.shape()[0]; ++s) all.push_back(parse(row(b.tokens, s), row(b.targets, s), modulus));
    return all;
}

void check_all_right(const std::vector<reading>& all) {
    std::vector<std::string> wrong;
    for (const reading& r : all)
        if (!r.wrong.empty()) wrong.push_back(r.wrong);
    CHECK_MESSAGE(wrong.empty(), wrong.size(), " rows are wrong, the first: ", wrong.empty() ? "" : wrong.front());
}

// Pearson's statistic: with k degrees of freedom its mean is k, its variance 2k.
double chi_square(const std::vector<double>& count, const std::vector<double>& share) {
    double all = 0, sum = 0;
    for (const double c : count) all += c;
    for (std::size_t i = 0; i < count.size(); ++i) {
        const double expected = all * share[i];
        sum += (count[i] - expected) * (count[i] - expected) / expected;
    }
    return sum;
}
void check_shares(const std::vector<double>& count, const std::vector<double>& share) {
    const auto k = static_cast<double>(count.size() - 1);
    CHECK(chi_square(count, share) < k + 4.5 * std::sqrt(2 * k));
}
void check_uniform(const std::vector<double>& count) {
    check_shares(count, std::vector<double>(count.size(), 1 / static_cast<double>(count.size())));
}

TEST_CASE("every sequence is an expression of the grammar, its = and one answer, which another evaluator finds, too") {
    for (const long modulus : {2L, 5L, 7L, 11L, 10000L})
        for (const bool multiplication : {true, false}) {
            CAPTURE(modulus);
            CAPTURE(multiplication);
            const modular_arithmetic task{.modulus = modulus, .multiplication = multiplication, .seed = {9}};
            check_all_right(parse_all(draw(task, 1500, 38), modulus));
            check_all_right(parse_all(draw(task, 100, 61), modulus));
        }
    const modular_arithmetic test{.shortest = 40, .longest = 256, .part = split::test};
    const auto all = parse_all(draw(test, 1500, 254), 5);
    check_all_right(all);
    for (const reading& r : all) CHECK((r.length >= 37 && r.length <= 253));
}

TEST_CASE("the evaluator of these tests refuses what is not of the grammar and finds known values") {
    const auto of = [](const std::string& text) {
        std::vector<std::int32_t> tokens, targets;
        for (const char c : text)
            tokens.push_back(c >= '0' && c <= '4' ? c - '0'
                                                  : static_cast<std::int32_t>(5 + std::string("+-*()=_").find(c)));
        for (const char c : text) targets.push_back(c == '=' ? 0 : ignored_target);
        return parse(tokens, targets, 5);
    };
    CHECK(of("(3--2)=0").value == 0);
    CHECK(of("(3--2)=0").wrong.empty());
    CHECK(of("((4*3)-(-1))=0").value == 3);
    CHECK(of("-2=0__").value == 3);
    for (const char* text : {"((3))=0", "((3+2))=0", "--3=0", "-(3)=0", "(3+2=0", "3+2=0", "(3+2)0", "()=0", "=0",
                             "(3)_=0", "(3+2)=_", "(3+2)=00", "(3+2)=0_0"})
        CHECK_MESSAGE(!of(text).wrong.empty(), text);
}

TEST_CASE("with tokens of 2 to 37 all lengths are equally frequent, and 2 takes those of the shorter ones, too") {
    const auto all = parse_all(draw({.seed = {4}}, 38000, 38), 5);
    std::vector<double> count(36), share(36, 1.0 / 38);
    share[0] = 3.0 / 38;
    for (const reading& r : all) ++count.at(static_cast<std::size_t>(r.length - 2));
    check_shares(count, share);
    std::vector<double> in_test(217);
    for (const reading& r : parse_all(draw({.shortest = 40, .longest = 256}, 10000, 254), 5))
        ++in_test.at(static_cast<std::size_t>(r.length - 37));
    check_uniform(in_test);
}

TEST_CASE("rows of five tokens and fewer are -d=, rows of six (d)=, and of seven (-d)=") {
    for (const index longest : {1, 4, 5}) {
        const modular_arithmetic task{.shortest = 1, .longest = longest};
        CHECK(task.tokens_needed() == 3);
        const auto b = draw(task, 50, 3);
        for (const reading& r : parse_all(b, 5)) CHECK((r.wrong.empty() && r.length == 2));
        CHECK(b.tokens(0, 0) == 6);
        CHECK(b.tokens(0, 2) == 10);
    }
    for (const reading& r : parse_all(draw({.shortest = 6, .longest = 6}, 50, 4), 5))
        CHECK((r.wrong.empty() && r.length == 3 && r.operators.empty()));
    const auto seven = draw({.shortest = 7, .longest = 7}, 50, 5);
    for (const reading& r : parse_all(seven, 5)) CHECK((r.wrong.empty() && r.length == 4 && r.operators.empty()));
    CHECK(seven.tokens(0, 1) == 6);
    for (const reading& r : parse_all(draw({.shortest = 8, .longest = 8}, 50, 6), 5))
        CHECK((r.wrong.empty() && r.operators.size() == 1 && r.splits == std::vector<std::pair<long, long>>{{5, 1}}));
}

TEST_CASE("all values of one number are equally frequent: digits are uniform") {
    std::vector<double> digits(5), last(11);
    for (const reading& r : parse_all(draw({.seed = {2}}, 4000, 38), 5))
        for (const long d : r.numbers) ++digits.at(static_cast<std::size_t>(d));
    check_uniform(digits);
    for (const reading& r : parse_all(draw({.modulus = 11, .shortest = 5, .longest = 5}, 11000, 3), 11))
        ++last.at(static_cast<std::size_t>(r.value));
    check_uniform(last);
}

TEST_CASE("operators are + - * or + - alone, equally frequent") {
    for (const bool multiplication : {true, false}) {
        const std::string set = multiplication ? "+-*" : "+-";
        std::vector<double> count(set.size());
        for (const reading& r : parse_all(draw({.multiplication = multiplication}, 4000, 38), 5))
            for (const char op : r.operators) {
                REQUIRE(set.find(op) != std::string::npos);
                ++count[set.find(op)];
            }
        check_uniform(count);
    }
}

TEST_CASE("the left side of an operation of n tokens has 1 to n - 4, equally frequent") {
    // Of any operation, and of the outermost alone, which is the last one to end.
    std::vector<double> all(10), outermost(33);
    for (const reading& r : parse_all(draw({.shortest = 40, .longest = 40, .seed = {3}}, 9000, 38), 5)) {
        for (const auto& split_of : r.splits)
            if (split_of.first == 14) ++all.at(static_cast<std::size_t>(split_of.second - 1));
        REQUIRE(r.splits.back().first == 37);
        ++outermost.at(static_cast<std::size_t>(r.splits.back().second - 1));
    }
    check_uniform(all);
    check_uniform(outermost);
}

TEST_CASE("sequence 0 of seed 0 begins with Random123's published numbers") {
    // Philox4x32-10 of counter 0 and key 0 is 6627e8d5 e169c58d bc57ac4c 9b00dbd8: the first number is the
    // length, one of 1000, the second that of the left side.
    const auto r = parse_all(draw({.shortest = 1001, .longest = 2000}, 1, 1998), 5).front();
    const auto length = static_cast<long>(1001 + 1000.0 * 0xe169c58d / 4294967296.0) - 3;
    CHECK(r.length == length);
    CHECK(r.splits.back() == std::pair<long, long>(length, 1 + static_cast<long>(static_cast<double>(length - 4) *
                                                                                 0x9b00dbd8 / 4294967296.0)));
}

TEST_CASE("a sequence depends on its number alone: not on the batch, its length or the order of calls") {
    const modular_arithmetic task{.seed = {11}};
    const auto whole = draw(task, 12, 38, 100);
    for (index s = 11; s >= 0; --s) {
        const auto alone = draw(task, 1, 38, 100 + static_cast<std::uint64_t>(s));
        CHECK(row(alone.tokens, 0) == row(whole.tokens, s));
        CHECK(row(alone.targets, 0) == row(whole.targets, s));
    }
    const auto longer = draw(task, 12, 50, 100);
    for (index s = 0; s < 12; ++s) {
        auto tokens = row(longer.tokens, s), targets = row(longer.targets, s);
        for (index t = 38; t < 50; ++t) CHECK((tokens[static_cast<std::size_t>(t)] >= 0));
        tokens.resize(38);
        targets.resize(38);
        CHECK(tokens == row(whole.tokens, s));
        CHECK(targets == row(whole.targets, s));
    }
}

TEST_CASE("sequences, seeds and the parts all differ") {
    std::vector<std::vector<std::int32_t>> all;
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (const auto part : {split::train, split::validation, split::test}) {
            const auto b = draw({.shortest = 40, .longest = 60, .seed = {seed}, .part = part}, 200, 58);
            for (index s = 0; s < 200; ++s) all.push_back(row(b.tokens, s));
        }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == 1800);
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("a constant answer is right as often as in simulations of the authors' task: 0.306 with *, 1/5 without") {
    constexpr index n = 20000;
    const auto with = fprnn::constant_answer_share({.shortest = 40, .longest = 256, .part = split::test}, n);
    const auto error = [](double p) { return 4 * std::sqrt(p * (1 - p) / n) + 0.0005; };
    CHECK(with.answer == 0);
    CHECK(std::abs(with.share - 0.306) < error(0.306));
    CHECK(std::abs(fprnn::scaled_accuracy(with.share, 5) - 0.1325) < 1.25 * error(0.306));
    // All five answers have the share 0.2, and the largest of five counts is a little more.
    const auto without =
        fprnn::constant_answer_share({.multiplication = false, .shortest = 40, .longest = 256, .part = split::test}, n);
    CHECK(std::abs(without.share - 0.204) < error(0.204));
    CHECK(without.share >= 0.2);
    std::vector<double> values(5);
    const modular_arithmetic plus_minus{.multiplication = false, .shortest = 40, .longest = 256};
    for (const reading& r : parse_all(draw(plus_minus, 10000, 254), 5)) ++values.at(static_cast<std::size_t>(r.value));
    check_uniform(values);
}

TEST_CASE("constant_answer_share counts the sequences that the task gives, whatever the batches") {
    for (const index n : {1, 2, 1724, 1725, 4000}) {  // batches have 2^16 / 38 = 1724 rows
        std::vector<double> count(5);
        const auto b = draw({.seed = {5}}, n, 38);
        for (const std::int32_t y : b.targets)
            if (y != ignored_target) ++count.at(static_cast<std::size_t>(y));
        const auto most = std::max_element(count.begin(), count.end());
        const auto found = fprnn::constant_answer_share({.seed = {5}}, n);
        CHECK(found.answer == most - count.begin());
        CHECK(found.share == *most / static_cast<double>(n));
    }
    CHECK_THROWS_WITH_AS((void)fprnn::constant_answer_share({}, 0),
                         "constant_answer_share: sequences must be at least 1, got 0", argument_error);
    CHECK_THROWS_AS((void)fprnn::constant_answer_share({.modulus = -9}, 10), argument_error);
    CHECK_THROWS_AS((void)fprnn::constant_answer_share({.longest = std::numeric_limits<index>::max()}, 10),
                    argument_error);
}

TEST_CASE("scaled_accuracy is 0 at chance, 1 without a mistake, negative below chance") {
    CHECK(fprnn::scaled_accuracy(0.2, 5) == doctest::Approx(0));
    CHECK(fprnn::scaled_accuracy(1, 5) == 1);
    CHECK(fprnn::scaled_accuracy(0, 5) == doctest::Approx(-0.25));
    CHECK(fprnn::scaled_accuracy(0.75, 2) == 0.5);
    CHECK_THROWS_WITH_AS((void)fprnn::scaled_accuracy(1.5, 5), "scaled_accuracy: accuracy must be in [0,1], got 1.5",
                         argument_error);
    CHECK_THROWS_WITH_AS((void)fprnn::scaled_accuracy(std::nan(""), 5),
                         "scaled_accuracy: accuracy must be in [0,1], got nan", argument_error);
    CHECK_THROWS_WITH_AS((void)fprnn::scaled_accuracy(0.5, 1), "scaled_accuracy: classes must be at least 2, got 1",
                         argument_error);
}

TEST_CASE("a task has m + 7 tokens, m classes, and a name that says its modulus and operators") {
    CHECK(modular_arithmetic{}.vocabulary() == 12);
    CHECK(modular_arithmetic{}.classes() == 5);
    CHECK(modular_arithmetic{}.tokens_needed() == 38);
    CHECK(modular_arithmetic{}.name() == "arithmetic-mod-5");
    CHECK(modular_arithmetic{.modulus = 7, .multiplication = false}.name() == "arithmetic-mod-7-no-multiplication");
    CHECK(modular_arithmetic{.modulus = 7}.vocabulary() == 14);
}

TEST_CASE("T that does not hold the longest sequence is refused with what is needed, whatever the batch") {
    const char* message = "modular_arithmetic: with longest = 40 sequences need T of at least 38, got T = 37";
    CHECK_THROWS_WITH_AS(draw({}, 3, 37), message, argument_error);
    CHECK_THROWS_WITH_AS(draw({}, 0, 37), message, argument_error);
    CHECK_THROWS_AS(draw({}, 3, 0), argument_error);
    CHECK_NOTHROW(draw({}, 0, 38));
}

TEST_CASE("options out of their ranges are refused with the range") {
    CHECK_THROWS_WITH_AS(draw({.modulus = 1}, 1, 40), "modular_arithmetic: modulus must be in [2,10000], got 1",
                         argument_error);
    CHECK_THROWS_WITH_AS(draw({.modulus = 10001}, 1, 40), "modular_arithmetic: modulus must be in [2,10000], got 10001",
                         argument_error);
    CHECK_THROWS_WITH_AS(draw({.shortest = 41}, 1, 40), "modular_arithmetic: shortest must be in [1,40], got 41",
                         argument_error);
    CHECK_THROWS_WITH_AS(draw({.shortest = 0}, 1, 40), "modular_arithmetic: shortest must be in [1,40], got 0",
                         argument_error);
    CHECK_THROWS_WITH_AS(draw({.shortest = 0, .longest = 0}, 1, 40),
                         "modular_arithmetic: longest must be in [1,1048576], got 0", argument_error);
    CHECK_THROWS_WITH_AS((void)modular_arithmetic{.longest = 1048577}.tokens_needed(),
                         "modular_arithmetic: longest must be in [1,1048576], got 1048577", argument_error);
}

TEST_CASE("a sequence of the greatest length is written, and is right") {
    const modular_arithmetic task{.shortest = modular_arithmetic::max_row, .longest = modular_arithmetic::max_row};
    const auto all = parse_all(draw(task, 1, task.tokens_needed()), 5);
    check_all_right(all);
    CHECK(all.front().length == modular_arithmetic::max_row - 3);
}

TEST_CASE("tokens and targets of different shapes and numbers beyond the last sequence are refused") {
    const modular_arithmetic task;
    fprnn::tensor<std::int32_t> tokens({2, 40}), targets({40, 2}), flat(fprnn::shape{80});
    CHECK_THROWS_WITH_AS(task(tokens, targets, 0),
                         "modular_arithmetic: tokens and targets must both be [B,T], got [2,40] and [40,2]",
                         argument_error);
    CHECK_THROWS_AS(task(flat, flat, 0), argument_error);
    const std::uint64_t last = (std::uint64_t{1} << 62) - 1;
    CHECK_NOTHROW(draw(task, 1, 38, last));
    CHECK_THROWS_WITH_AS(draw(task, 2, 38, last),
                         "modular_arithmetic: there are 2^62 sequences, got first = 4611686018427387903",
                         argument_error);
}

}  // namespace
