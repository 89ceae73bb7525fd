#include "rows.hpp"

#include <fprnn/tasks/word_problem.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::finite_group;
using fprnn::index;
using fprnn::word_problem;

// A second description of the elements, shared with nothing in the header: permutations are enumerated,
// multiplied and looked up as vectors.
using permutation = std::vector<int>;
using rows::row;

permutation then(const permutation& first, const permutation& second) {
    permutation result;
    for (int image : first) result.push_back(second.at(static_cast<std::size_t>(image)));
    return result;
}

bool is_even(permutation p) {
    bool even = true;
    for (std::size_t i = 0; i < p.size(); ++i)
        while (p[i] != static_cast<int>(i)) {
            std::swap(p[i], p[static_cast<std::size_t>(p[i])]);
            even = !even;
        }
    return even;
}

std::vector<permutation> permutations(int n, bool even_only) {
    permutation p(static_cast<std::size_t>(n));
    std::iota(p.begin(), p.end(), 0);
    std::vector<permutation> all;
    do
        if (!even_only || is_even(p)) all.push_back(p);
    while (std::next_permutation(p.begin(), p.end()));
    return all;
}

index find(const std::vector<permutation>& all, const permutation& p) {
    return std::find(all.begin(), all.end(), p) - all.begin();
}

index products_that_differ(const finite_group& group, const std::vector<permutation>& elements) {
    index wrong = 0;
    for (index a = 0; a < group.order(); ++a)
        for (index b = 0; b < group.order(); ++b) {
            const auto& p = elements[static_cast<std::size_t>(a)];
            const auto& q = elements[static_cast<std::size_t>(b)];
            wrong += group.compose(a, b) != find(elements, then(p, q));
        }
    return wrong;
}

struct violations {
    index closure = 0, identity = 0, inverse = 0, associativity = 0, latin = 0;
};

violations broken_axioms(const finite_group& group) {
    const index n = group.order(), e = group.identity();
    violations found;
    std::vector<index> table;
    for (index a = 0; a < n; ++a) {
        std::vector<bool> seen(static_cast<std::size_t>(n));
        for (index b = 0; b < n; ++b) {
            const index c = group.compose(a, b);
            table.push_back(c);
            if (c < 0 || c >= n) {
                ++found.closure;
                continue;
            }
            found.latin += seen[static_cast<std::size_t>(c)];
            seen[static_cast<std::size_t>(c)] = true;
        }
        found.identity += group.compose(e, a) != a || group.compose(a, e) != a;
        found.inverse += group.compose(a, group.inverse(a)) != e || group.compose(group.inverse(a), a) != e;
    }
    if (found.closure != 0) return found;
    const auto at = [&](index a, index b) { return table[static_cast<std::size_t>(a * n + b)]; };
    for (index a = 0; a < n; ++a)
        for (index b = 0; b < n; ++b)
            for (index c = 0; c < n; ++c) found.associativity += at(at(a, b), c) != at(a, at(b, c));
    return found;
}

void check_axioms(const std::string& name, index order) {
    CAPTURE(name);
    const finite_group group(name);
    CHECK(group.order() == order);
    CHECK(group.identity() == 0);
    const violations found = broken_axioms(group);
    CHECK(found.closure == 0);
    CHECK(found.identity == 0);
    CHECK(found.inverse == 0);
    CHECK(found.latin == 0);
    CHECK(found.associativity == 0);
}

std::map<int, int> elements_by_order(const finite_group& group) {
    std::map<int, int> count;
    for (index a = 0; a < group.order(); ++a) {
        int k = 1;
        for (index power = a; power != group.identity(); power = group.compose(power, a)) ++k;
        ++count[k];
    }
    return count;
}

bool is_abelian(const finite_group& group) {
    for (index a = 0; a < group.order(); ++a)
        for (index b = 0; b < a; ++b)
            if (group.compose(a, b) != group.compose(b, a)) return false;
    return true;
}

rows::batch draw(const word_problem& problem, index sequences, index length, std::uint64_t first = 0) {
    return rows::draw(problem, sequences, length, first);
}

std::string accepted(const std::string& name) {
    return "finite_group: '" + name +
           "' is not a known group; expected S1 to S7, A1 to A7, Z1 to Z1000 or a direct product of these such as "
           "A4xZ5";
}

// Pearson's statistic of equal expected counts.
double chi_square(const fprnn::tensor<std::int32_t>& values, index classes) {
    std::vector<double> count(static_cast<std::size_t>(classes));
    for (std::int32_t v : values) ++count.at(static_cast<std::size_t>(v));
    const double expected = static_cast<double>(values.size()) / static_cast<double>(classes);
    double sum = 0;
    for (double c : count) sum += (c - expected) * (c - expected) / expected;
    return sum;
}

TEST_CASE("A5 is a group of 60 even permutations, checked against associativity, inverses and parity") {
    check_axioms("A5", 60);
    const auto elements = permutations(5, true);
    REQUIRE(elements.size() == 60);
    CHECK(products_that_differ(finite_group("A5"), elements) == 0);
    CHECK(elements_by_order(finite_group("A5")) == std::map<int, int>{{1, 1}, {2, 15}, {3, 20}, {5, 24}});
}

TEST_CASE("S4 is the group of all 24 permutations of four letters in lexicographic order") {
    check_axioms("S4", 24);
    CHECK(products_that_differ(finite_group("S4"), permutations(4, false)) == 0);
    CHECK(elements_by_order(finite_group("S4")) == std::map<int, int>{{1, 1}, {2, 9}, {3, 8}, {4, 6}});
}

TEST_CASE("A4xZ5 is the direct product, its first factor the most significant digit") {
    check_axioms("A4xZ5", 60);
    const finite_group group("A4xZ5");
    const auto elements = permutations(4, true);
    index wrong = 0;
    for (index a = 0; a < 60; ++a)
        for (index b = 0; b < 60; ++b) {
            const auto& p = elements[static_cast<std::size_t>(a / 5)];
            const auto& q = elements[static_cast<std::size_t>(b / 5)];
            wrong += group.compose(a, b) != find(elements, then(p, q)) * 5 + (a % 5 + b % 5) % 5;
        }
    CHECK(wrong == 0);
}

TEST_CASE("Z60 is addition modulo 60") {
    check_axioms("Z60", 60);
    const finite_group group("Z60");
    index wrong = 0;
    for (index a = 0; a < 60; ++a)
        for (index b = 0; b < 60; ++b) wrong += group.compose(a, b) != (a + b) % 60;
    CHECK(wrong == 0);
    CHECK(group.inverse(0) == 0);
    CHECK(group.inverse(7) == 53);
}

TEST_CASE("a product of three factors multiplies digit by digit") {
    check_axioms("Z2xS3xZ3", 36);
    const finite_group group("Z2xS3xZ3"), s3("S3");
    const auto element = [](index i, index j, index k) { return (i * 6 + j) * 3 + k; };
    for (index j = 0; j < 6; ++j)
        CHECK(group.compose(element(1, j, 2), element(1, 4, 2)) == element(0, s3.compose(j, 4), 1));
}

TEST_CASE("every symmetric and alternating group from 1 to 7 letters has its order and multiplies like permutations") {
    index factorial = 1;
    for (int n = 1; n <= 7; ++n) {
        factorial *= n;
        CAPTURE(n);
        const finite_group s("S" + std::to_string(n)), a("A" + std::to_string(n));
        CHECK(s.order() == factorial);
        CHECK(a.order() == (n == 1 ? 1 : factorial / 2));
        for (const bool even : {false, true}) {
            const finite_group& group = even ? a : s;
            const auto elements = permutations(n, even);
            const index stride = std::max<index>(1, group.order() / 19);
            for (index i = 0; i < group.order(); i += stride)
                for (index j = group.order() - 1; j >= 0; j -= stride) {
                    const auto expected =
                        then(elements[static_cast<std::size_t>(i)], elements[static_cast<std::size_t>(j)]);
                    CHECK(group.compose(i, j) == find(elements, expected));
                }
        }
    }
}

TEST_CASE("the left factor of a product acts first: (0 1) then (1 2) sends 0 to 2") {
    // S3 in order: 012 021 102 120 201 210.
    const finite_group s3("S3");
    const index swap01 = 2, swap12 = 1;
    CHECK(s3.compose(swap01, swap12) == 4);  // 0 → 1 → 2, 1 → 0, 2 → 1
    CHECK(s3.compose(swap12, swap01) == 3);
}

TEST_CASE("A5, S3 and A4xZ5 do not commute; Z60 and A3 do") {
    for (const char* name : {"A5", "S3", "A4xZ5"}) CHECK_FALSE(is_abelian(finite_group(name)));
    for (const char* name : {"Z60", "A3", "S2", "Z2xZ30"}) CHECK(is_abelian(finite_group(name)));
}

TEST_CASE("groups of one element are groups") {
    for (const char* name : {"S1", "A1", "A2", "Z1", "S1xZ1"}) check_axioms(name, 1);
}

TEST_CASE("a text that names no group is refused with the text and with what is accepted") {
    for (const char* name :
         {"Q8", "A", "Z0", "S9", "", "5", "a5", "A05", "Z1001", "Z99999999999999999999", "A-5", "A5 "})
        CHECK_THROWS_WITH_AS(finite_group{name}, accepted(name).c_str(), argument_error);
    for (const char* name : {"A5x", "xA5", "A5xxZ2", "x"})
        CHECK_THROWS_WITH_AS(finite_group{name}, (accepted(name) + ", got the factor ''").c_str(), argument_error);
    CHECK_THROWS_WITH_AS(finite_group{"A5xD4xZ2"}, (accepted("A5xD4xZ2") + ", got the factor 'D4'").c_str(),
                         argument_error);
    CHECK_THROWS_AS(finite_group{std::string("A5\0", 3)}, argument_error);
}

TEST_CASE("a group of more than 10,000 elements is refused, one of 10,000 is not") {
    CHECK(finite_group("Z100xZ100").order() == 10000);
    for (const char* name : {"S7xZ2", "Z73xZ137", "S7xS7xS7xS7xS7xS7"})
        CHECK_THROWS_WITH_AS(
            finite_group{name},
            ("finite_group: '" + std::string(name) + "' has more than the 10000 elements that are accepted").c_str(),
            argument_error);
}

TEST_CASE("an element outside the group is refused") {
    const finite_group group("A5");
    const char* message = "finite_group: the elements of A5 are 0 to 59, got 60";
    CHECK_THROWS_WITH_AS((void)group.compose(60, 0), message, argument_error);
    CHECK_THROWS_WITH_AS((void)group.compose(0, 60), message, argument_error);
    CHECK_THROWS_WITH_AS((void)group.inverse(60), message, argument_error);
    CHECK_THROWS_AS((void)group.compose(-1, 0), argument_error);
}

TEST_CASE("targets are the running product, re-derived by multiplying permutations") {
    const auto elements = permutations(5, true);
    const auto b = draw({.group = finite_group("A5"), .seed = {3}}, 40, 33);
    index wrong = 0;
    for (index s = 0; s < 40; ++s) {
        permutation state = elements.front();
        for (index t = 0; t < 33; ++t) {
            state = then(state, elements.at(static_cast<std::size_t>(b.tokens(s, t))));
            wrong += b.targets(s, t) != find(elements, state);
        }
    }
    CHECK(wrong == 0);
    CHECK(b.tokens(0, 0) == b.targets(0, 0));
}

TEST_CASE("sequence 0 of seed 0 begins with Random123's published numbers") {
    // Philox4x32-10 of counter 0 and key 0 is 6627e8d5 e169c58d bc57ac4c 9b00dbd8; tokens are ⌊60·u⌋ of
    // 64-bit u.
    const auto b = draw({.group = finite_group("A5")}, 1, 2);
    CHECK(b.tokens(0, 0) == static_cast<int>(60.0 * 0xe169c58d / 4294967296.0));
    CHECK(b.tokens(0, 1) == static_cast<int>(60.0 * 0x9b00dbd8 / 4294967296.0));
}

TEST_CASE("a sequence depends on its number alone: not on the batch, its length or the order of calls") {
    const word_problem problem{.group = finite_group("S5"), .seed = {11}};
    const auto whole = draw(problem, 12, 16, 100);
    for (index s = 11; s >= 0; --s) {
        const auto alone = draw(problem, 1, 16, 100 + static_cast<std::uint64_t>(s));
        CHECK(row(alone.tokens, 0) == row(whole.tokens, s));
        CHECK(row(alone.targets, 0) == row(whole.targets, s));
    }
    const auto longer = draw(problem, 12, 50, 100);
    for (index s = 0; s < 12; ++s) {
        auto prefix = row(longer.targets, s);
        prefix.resize(16);
        CHECK(prefix == row(whole.targets, s));
    }
}

TEST_CASE("sequences, seeds and the parts all differ") {
    std::vector<std::vector<std::int32_t>> all;
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (const auto part :
             {word_problem::split::train, word_problem::split::validation, word_problem::split::test}) {
            const auto b = draw({.group = finite_group("A5"), .seed = {seed}, .part = part}, 200, 16);
            for (index s = 0; s < 200; ++s) all.push_back(row(b.tokens, s));
        }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == 1800);
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("the last sequence of a part is followed by an error, not by the first of another") {
    const word_problem problem{.group = finite_group("A5")};
    const std::uint64_t last = (std::uint64_t{1} << 62) - 1;
    CHECK_NOTHROW(draw(problem, 1, 4, last));
    CHECK_THROWS_WITH_AS(draw(problem, 2, 4, last),
                         "word_problem: there are 2^62 sequences, got first = 4611686018427387903", argument_error);
}

TEST_CASE("begin_token: the authors' layout, a token of its own before the same sequence") {
    word_problem problem{.group = finite_group("S4"), .seed = {3}};
    const auto plain = draw(problem, 5, 8, 40);
    problem.begin_token = true;
    const auto with = draw(problem, 5, 9, 40);
    for (index b = 0; b < 5; ++b) {
        CHECK(with.tokens(b, 0) == 24);
        CHECK(with.targets(b, 0) == 24);
        for (index t = 0; t < 8; ++t) {
            CHECK(with.tokens(b, t + 1) == plain.tokens(b, t));
            CHECK(with.targets(b, t + 1) == plain.targets(b, t));
        }
    }
    CHECK(problem.vocabulary() == 25);
    CHECK(problem.classes() == 25);
    CHECK(problem.name() == "S4");
    CHECK_NOTHROW(draw(problem, 4, 0));
}

TEST_CASE("tokens and targets are uniform on the group") {
    // 59 degrees of freedom: the statistic has mean 59 and deviation 10.9.
    const auto b = draw({.group = finite_group("A5"), .seed = {5}}, 4000, 16);
    CHECK(chi_square(b.tokens, 60) < 59 + 4 * 10.9);
    CHECK(chi_square(b.targets, 60) < 59 + 4 * 10.9);
    CHECK(chi_square(b.tokens, 60) > 59 - 4 * 10.9);
    CHECK(chi_square(b.targets, 60) > 59 - 4 * 10.9);
}

TEST_CASE("empty batches and empty sequences are nothing to do") {
    const word_problem problem{.group = finite_group("A5")};
    CHECK_NOTHROW(draw(problem, 0, 16));
    CHECK_NOTHROW(draw(problem, 4, 0));
    CHECK(problem.vocabulary() == 60);
}

TEST_CASE("tokens and targets of different shapes are refused with both shapes") {
    const word_problem problem{.group = finite_group("A5")};
    fprnn::tensor<std::int32_t> tokens({2, 3}), targets({3, 2}), flat(fprnn::shape{6});
    CHECK_THROWS_WITH_AS(problem(tokens, targets, 0),
                         "word_problem: tokens and targets must both be [B,T], got [2,3] and [3,2]", argument_error);
    CHECK_THROWS_WITH_AS(problem(flat, flat, 0), "word_problem: tokens and targets must both be [B,T], got [6] and [6]",
                         argument_error);
}

}  // namespace
