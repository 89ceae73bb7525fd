#include <fprnn/tasks/babi_world.hpp>
#include <fprnn/tasks/catbabi.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/sampler.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::babi_stories;
using fprnn::babi_story;
using fprnn::babi_world;
using fprnn::catbabi;
using fprnn::catbabi_options;
using fprnn::ignored_target;
using fprnn::index;
using fprnn::split;
using fprnn::tensor;
using words = std::vector<std::string>;

static_assert(fprnn::sampler<const catbabi::training_sampler>);
static_assert(fprnn::sampler<const catbabi::test_sampler>);

constexpr split parts[] = {split::train, split::validation, split::test};

struct batch {
    tensor<std::int32_t> tokens, targets;
};

template <class Sampler>
batch draw(const Sampler& sampler, index B, index T, std::uint64_t first = 0) {
    batch b{tensor<std::int32_t>({B, T}), tensor<std::int32_t>({B, T})};
    b.tokens.fill(-7);
    b.targets.fill(-7);
    sampler(b.tokens, b.targets, first);
    return b;
}

/// As words: "-" is a target that is ignored.
words text_of(const catbabi& data, const tensor<std::int32_t>& ids, index begin, index end) {
    words text;
    for (index i = begin; i < end; ++i)
        text.push_back(ids[i] == ignored_target ? "-" : data.words().at(static_cast<std::size_t>(ids[i])));
    return text;
}
words text_of(const catbabi& data, const tensor<std::int32_t>& ids) { return text_of(data, ids, 0, ids.size()); }

words split_words(const std::string& line) {
    words result{""};
    for (const char c : line)
        if (c == ' ')
            result.emplace_back();
        else
            result.back() += c;
    return result;
}

/// A story as it stands in the text, from its lines alone.
words sample_of(const babi_story& story) {
    words text{"<eos>"};
    for (const std::string& line : story.lines)
        for (const std::string& word : split_words(line)) text.push_back(word);
    return text;
}

words sum(words a, const words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// What is asked for in a text that <eos> follows.
words targets_of(const words& text, bool language_model) {
    words targets;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string next = i + 1 < text.size() ? text[i + 1] : "<eos>";
        targets.push_back(language_model || text[i] == "?" ? next : "-");
    }
    return targets;
}

const babi_stories small{"small",
                         {{1, {"mary went .", "where is mary ? kitchen"}}, {2, {"who ? john", "john left ."}}},
                         {{1, {"what is left ? milk,apple"}}},
                         {{3, {"mary stays .", "who stays ? mary", "is it ? no"}}, {3, {"yes ."}}}};

TEST_CASE("catbabi: words are numbered behind <pad> and <eos> as they first come in training, validation, test") {
    const catbabi data(small);
    CHECK(data.name() == "catbabi-small");
    CHECK(data.words() == words{"<pad>", "<eos>", "mary", "went", ".", "where", "is", "?", "kitchen", "who", "john",
                                "left", "what", "milk,apple", "stays", "it", "no", "yes"});
    CHECK(data.vocabulary() == 18);
    CHECK(data.classes() == 18);
    CHECK(data.stories(split::train) == 2);
    CHECK(data.stories(split::validation) == 1);
    CHECK(data.stories(split::test) == 2);
    CHECK(data.questions(split::train) == 2);
    CHECK(data.questions(split::validation) == 1);
    CHECK(data.questions(split::test) == 2);
    CHECK(data.longest_story(split::train) == 9);
    CHECK(data.longest_story(split::validation) == 6);
    CHECK(data.longest_story(split::test) == 12);
}

TEST_CASE("catbabi: a test by hand, as windows and as whole stories, with answers alone and with every word") {
    const catbabi data(small);
    const words text{"<eos>", "mary", "stays", ".",  "who",   "stays", "?", "mary",
                     "is",    "it",   "?",     "no", "<eos>", "yes",   "."};
    const words answers{"-", "-", "-", "-", "-", "-", "mary", "-", "-", "-", "no", "-", "-", "-", "-"};
    const words next{"mary", "stays", ".",  "who",   "stays", "?", "mary", "is",
                     "it",   "?",     "no", "<eos>", "yes",   ".", "<eos>"};
    // T = 7 cuts the text between "?" and "mary"; 12 is the first story's length.
    for (const index T : {1, 2, 7, 12, 14, 15, 16, 40}) {
        CAPTURE(T);
        const index rows = (15 + T - 1) / T;
        const auto ask = data.test_rows(split::test), all = data.test_rows(split::test, {.language_model = true});
        REQUIRE(ask.rows(T) == rows);
        REQUIRE(all.rows(T) == rows);
        const words pads(static_cast<std::size_t>(rows * T - 15), "<pad>"), dashes(pads.size(), "-");
        CHECK(text_of(data, draw(ask, rows, T).tokens) == sum(text, pads));
        CHECK(text_of(data, draw(all, rows, T).tokens) == sum(text, pads));
        CHECK(text_of(data, draw(ask, rows, T).targets) == sum(answers, dashes));
        CHECK(text_of(data, draw(all, rows, T).targets) == sum(next, dashes));
    }
    const words gap(2, "<pad>"), end(11, "<pad>"), no_gap(2, "-"), no_end(11, "-");
    const auto first = [](const words& w) { return words(w.begin(), w.begin() + 12); };
    const auto last = [](const words& w) { return words(w.begin() + 12, w.end()); };
    for (const bool language_model : {false, true}) {
        const auto whole = data.test_rows(split::test, {.language_model = language_model, .whole_stories = true});
        const words& targets = language_model ? next : answers;
        REQUIRE(whole.rows(14) == 2);
        CHECK(text_of(data, draw(whole, 2, 14).tokens) == sum(sum(first(text), gap), sum(last(text), end)));
        CHECK(text_of(data, draw(whole, 2, 14).targets) ==
              sum(sum(first(targets), no_gap), sum(last(targets), no_end)));
        REQUIRE(whole.rows(15) == 1);
        CHECK(text_of(data, draw(whole, 1, 15).tokens) == text);
        CHECK(text_of(data, draw(whole, 1, 15).targets) == targets);
    }
}

const babi_stories& world() {
    static const babi_stories stories = babi_world{{4}}.stories(12, 5, 7);
    return stories;
}
const catbabi& world_data() {
    static const catbabi data(world());
    return data;
}

TEST_CASE("catbabi: tests show every word of a part once, in order, and ask every question once, at every length") {
    const catbabi& data = world_data();
    for (const split part : parts) {
        words text, targets;
        for (const babi_story& story : world().of(part)) {
            text = sum(text, sample_of(story));
            targets = sum(targets, targets_of(sample_of(story), false));
        }
        REQUIRE(std::count_if(targets.begin(), targets.end(), [](const std::string& y) { return y != "-"; }) ==
                data.questions(part));
        REQUIRE(data.questions(part) == 5 * data.stories(part));
        for (const bool whole : {false, true})
            for (const index T : {17, 200, 256, 1000, 100000}) {
                if (whole && T < data.longest_story(part)) continue;
                CAPTURE(whole);
                CAPTURE(T);
                const auto test = data.test_rows(part, {.whole_stories = whole});
                const index rows = test.rows(T);
                const auto b = draw(test, rows, T);
                const words all_tokens = text_of(data, b.tokens), all_targets = text_of(data, b.targets);
                words shown, asked;
                bool pads_are_ignored = true, pads_are_last = true;
                for (std::size_t i = 0; i < all_tokens.size(); ++i) {
                    if (all_tokens[i] == "<pad>") {
                        pads_are_ignored = pads_are_ignored && all_targets[i] == "-";
                        pads_are_last = pads_are_last && i >= text.size();
                        continue;
                    }
                    shown.push_back(all_tokens[i]);
                    asked.push_back(all_targets[i]);
                }
                CHECK(pads_are_ignored);
                if (!whole) CHECK(pads_are_last);
                REQUIRE(shown == text);
                REQUIRE(asked == targets);
                CHECK(b.tokens(rows - 1, 0) != 0);
                // Fewer at a time are the same.
                for (const index s : {index{0}, rows / 2, rows - 1}) {
                    const auto alone = draw(test, 1, T, static_cast<std::uint64_t>(s));
                    CHECK(text_of(data, alone.tokens) == text_of(data, b.tokens, s * T, (s + 1) * T));
                    CHECK(text_of(data, alone.targets) == text_of(data, b.targets, s * T, (s + 1) * T));
                }
                if (!whole) continue;
                // A row begins with a story, which would not have fitted into the row before.
                for (index s = 0; s < rows; ++s) {
                    REQUIRE(b.tokens(s, 0) == 1);
                    if (s == 0) continue;
                    index length = 1, space = 0;
                    while (length < T && b.tokens(s, length) > 1) ++length;
                    while (b.tokens(s - 1, T - 1 - space) == 0) ++space;
                    CHECK(length > space);
                }
            }
    }
}

/// The stories of an endless text, as numbers of the part's stories, cut at each <eos>; the text begins with
/// one.
std::vector<std::size_t> stories_of(const words& text, const std::vector<babi_story>& stories) {
    std::map<words, std::size_t> numbers;
    for (std::size_t i = 0; i < stories.size(); ++i) numbers[sample_of(stories[i])] = i;
    REQUIRE(numbers.size() == stories.size());
    std::vector<std::size_t> found;
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = static_cast<std::size_t>(
            std::find(text.begin() + static_cast<long>(begin) + 1, text.end(), "<eos>") - text.begin());
        if (end == text.size()) break;  // it may go on
        found.push_back(numbers.at({text.begin() + static_cast<long>(begin), text.begin() + static_cast<long>(end)}));
        begin = end;
    }
    return found;
}

TEST_CASE("catbabi: rows for training are one text, in which all stories come once before any comes again") {
    const catbabi& data = world_data();
    for (const split part : parts) {
        const auto& stories = world().of(part);
        std::size_t size = 0;
        for (const babi_story& story : stories) size += sample_of(story).size();
        std::set<std::vector<std::size_t>> orders;
        for (const index T : {33, 200}) {
            const index B = static_cast<index>(4 * size) / T + 2;
            const auto b = draw(data.training_rows({3}, {.language_model = true}, part), B, T);
            const words text = text_of(data, b.tokens);
            const auto order = stories_of(text, stories);
            const std::size_t n = stories.size();
            REQUIRE(order.size() >= 4 * n);
            for (std::size_t round = 0; round < 4; ++round) {
                const auto begin = order.begin() + static_cast<long>(round * n);
                const std::vector<std::size_t> of_round(begin, begin + static_cast<long>(n));
                CHECK(std::set<std::size_t>(of_round.begin(), of_round.end()).size() == n);
                orders.insert(of_round);
            }
            // The next token is what is asked for, across rows, too.
            words next(text.begin() + 1, text.end());
            const words targets = text_of(data, b.targets);
            CHECK(words(targets.begin(), targets.end() - 1) == next);
            const auto answers = draw(data.training_rows({3}, {}, part), B, T);
            CHECK(text_of(data, answers.tokens) == text);
            words asked = targets;
            for (std::size_t i = 0; i < text.size(); ++i)
                if (text[i] != "?") asked[i] = "-";
            CHECK(text_of(data, answers.targets) == asked);
        }
        CHECK(orders.size() == 4);  // of both T the same
    }
}

TEST_CASE("catbabi: with whole_stories rows are the same text, and what a row has not whole is not asked for") {
    const catbabi& data = world_data();
    for (const bool language_model : {false, true})
        for (const index T : {100, 150, 200, 500}) {
            CAPTURE(T);
            constexpr index B = 60;
            const auto cut = draw(data.training_rows({5}, {.language_model = language_model}), B, T);
            const auto whole =
                draw(data.training_rows({5}, {.language_model = language_model, .whole_stories = true}), B, T);
            CHECK(text_of(data, whole.tokens) == text_of(data, cut.tokens));
            index asked = 0;
            for (index b = 0; b + 1 < B; ++b) {
                // A story is whole where its <eos> is in the row and the next one, which may begin the next
                // row.
                index begin = 0;
                while (begin < T && whole.tokens(b, begin) != 1) ++begin;
                index end = T;
                if (cut.tokens(b + 1, 0) != 1)
                    while (end > begin && whole.tokens(b, --end) != 1) {
                    }
                for (index t = 0; t < T; ++t) {
                    const bool counts = t >= begin && t < end;
                    REQUIRE(whole.targets(b, t) == (counts ? cut.targets(b, t) : ignored_target));
                    asked += whole.targets(b, t) != ignored_target;
                }
            }
            CHECK(asked > 0);
        }
}

TEST_CASE("catbabi: a row for training depends on its number alone, and differs between seeds and rounds") {
    const catbabi& data = world_data();
    const std::uint64_t far = (std::uint64_t{1} << 54) - 40;
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{77}, far}) {
        const auto rows = data.training_rows({1});
        const auto whole = draw(rows, 20, 200, first);
        for (index s = 19; s >= 0; --s) {
            const auto alone = draw(rows, 1, 200, first + static_cast<std::uint64_t>(s));
            CHECK(text_of(data, alone.tokens) == text_of(data, whole.tokens, s * 200, (s + 1) * 200));
            CHECK(text_of(data, alone.targets) == text_of(data, whole.targets, s * 200, (s + 1) * 200));
        }
    }
    std::set<words> all;
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (std::uint64_t s = 0; s < 30; ++s)
            all.insert(text_of(data, draw(data.training_rows({seed}), 1, 200, s).tokens));
    CHECK(all.size() == 90);
}

TEST_CASE("catbabi: every order of the stories is drawn as often") {
    const babi_stories three{"three", {{1, {"a ? x"}}, {1, {"b ? x"}}, {1, {"c ? x"}}}};
    const catbabi data(three);
    constexpr index rounds = 12000;
    const auto b = draw(data.training_rows({6}), rounds, 12);
    std::map<words, double> count;
    for (index r = 0; r < rounds; ++r) ++count[text_of(data, b.tokens, r * 12, (r + 1) * 12)];
    REQUIRE(count.size() == 6);
    double chi_square = 0;
    for (const auto& [order, n] : count) chi_square += (n - rounds / 6.0) * (n - rounds / 6.0) / (rounds / 6.0);
    CHECK(chi_square < 20.5);  // a thousandth of chances with five degrees of freedom
}

TEST_CASE("catbabi: parts have orders of their own") {
    babi_stories same = babi_world{{4}}.stories(12, 0, 0);
    same.validation = same.test = same.train;
    const catbabi data(same);
    std::set<words> texts;
    for (const split part : parts) texts.insert(text_of(data, draw(data.training_rows({1}, {}, part), 1, 300).tokens));
    CHECK(texts.size() == 3);
}

/// Answers "where is … ?" with the place that the row has named last for that name, of what it has read so
/// far; a constant answer else.
struct reader {
    const catbabi& data;
    std::int32_t otherwise = 0;

    tensor<float> evaluate(const fprnn::parameter_tree<float>&, fprnn::view<const std::int32_t> tokens,
                           std::vector<fprnn::solution<float>>*, const fprnn::eigen&) const {
        const index B = tokens.shape()[0], T = tokens.shape()[1];
        tensor<float> logits({B, T, data.classes()});
        const auto word = [&](index b, index t) { return data.words()[static_cast<std::size_t>(tokens(b, t))]; };
        for (index b = 0; b < B; ++b) {
            std::map<std::string, std::int32_t> place;
            for (index t = 0; t < T; ++t) {
                if (word(b, t) == "<eos>") place.clear();
                if (t >= 4 && word(b, t) == "." && word(b, t - 2) == "the") {
                    const bool back = word(b, t - 4) == "back";
                    if (t >= 5 + back) place[word(b, t - 5 - back)] = tokens(b, t - 1);
                }
                const auto known = t == 0 ? place.end() : place.find(word(b, t - 1));
                logits(b, t, known == place.end() ? otherwise : known->second) = 1;
            }
        }
        return logits;
    }
};

TEST_CASE("catbabi: who reads whole stories can answer every question, and who reads windows cannot") {
    const catbabi data(babi_world{{8}}.stories(1, 0, 300, {1}));
    const fprnn::parameter_tree<float> none;
    const auto accuracy = [&](const reader& model, bool whole_stories, index T) {
        const auto test = data.test_rows(split::test, {.whole_stories = whole_stories});
        return fprnn::evaluate(model, none, T, test.rows(T), test, fprnn::eigen(1)).accuracy.token;
    };
    CHECK(accuracy({data}, true, 200) == 1);
    CHECK(accuracy({data}, false, 100000) == 1);
    const double cut = accuracy({data}, false, 200);
    MESSAGE("of the questions of task 1, ", cut, " can be answered in windows of 200 tokens");
    CHECK(cut > 0.8);
    CHECK(cut < 0.97);
}

TEST_CASE("catbabi: the constant answer is the one that is right most often") {
    const catbabi data(small);
    const auto of_train = data.constant_answer_share(split::train);
    CHECK(of_train.answer == 8);  // kitchen and john are equally frequent
    CHECK(of_train.share == 0.5);
    CHECK(data.constant_answer_share(split::validation).answer == 13);
    CHECK(data.constant_answer_share(split::validation).share == 1);
    babi_stories silent = small;
    silent.test = {{1, {"mary went ."}}};
    CHECK(catbabi(silent).constant_answer_share(split::test).share == 0);
    silent.test.clear();
    CHECK(catbabi(silent).constant_answer_share(split::test).share == 0);

    const catbabi& most = world_data();
    const auto constant = most.constant_answer_share(split::test);
    const babi_stories& stories = world();
    std::map<std::string, int> count;
    for (const auto& story : stories.test)
        for (const auto& line : story.lines)
            if (const auto mark = line.find(" ? "); mark != std::string::npos) ++count[line.substr(mark + 3)];
    int largest = 0;
    for (const auto& [answer, n] : count) largest = std::max(largest, n);
    CHECK(count.at(most.words()[static_cast<std::size_t>(constant.answer)]) == largest);
    CHECK(constant.share ==
          doctest::Approx(static_cast<double>(largest) / static_cast<double>(most.questions(split::test))));
}

template <class Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const argument_error& e) {
        return e.what();
    }
    return "accepted";
}

TEST_CASE("catbabi: stories without a question, and lines that are no statement or question, are refused") {
    const auto of = [](const std::string& line) {
        return refusal([&] { catbabi({"name", {{1, {"who ? mary", line}}}}); });
    };
    CHECK(of("mary went .") == "accepted");
    CHECK(of("who ? mary") == "accepted");
    for (const std::string line :
         {"", ".", "?", "mary", "mary went", "mary . went .", "who ?", "? mary", "who ? mary .", "who ? mary went",
          "who ? ? mary", "who ? .", "who . is ? mary", "<eos> .", "mary <pad> .", "who ? <pad>", "who ? <eos>"}) {
        CAPTURE(line);
        CHECK(of(line) ==
              "catbabi: expected a line as 'mary moved .' or 'where is mary ? kitchen', got '" + line + "'");
    }
    CHECK(refusal([] {
              catbabi({"name", {{1, {"mary went ."}}}});
          }) == "catbabi: expected a question for training in 'name', got none");
    CHECK(refusal([] { catbabi({"name"}); }) == "catbabi: expected a question for training in 'name', got none");
}

TEST_CASE("catbabi: rows that there are not are refused") {
    const catbabi data(small);
    const auto training = data.training_rows({});
    const auto test = data.test_rows(split::test);
    const auto whole = data.test_rows(split::test, {.whole_stories = true});
    CHECK(refusal([&] { draw(test, 2, 8, 1); }) == "catbabi: there are 2 rows of T = 8, got first = 1 and B = 2");
    CHECK(refusal([&] { (void)test.rows(0); }) == "catbabi: T must be at least 1, got 0");
    CHECK(refusal([&] { (void)whole.rows(11); }) ==
          "catbabi: rows of whole stories need T of at least 12, the longest story and its <eos>, got T = 11");
    CHECK(refusal([&] { draw(whole, 1, 11); }) ==
          "catbabi: rows of whole stories need T of at least 12, the longest story and its <eos>, got T = 11");
    CHECK(whole.rows(12) == 2);
    CHECK(refusal([&] { draw(data.training_rows({}, {.whole_stories = true}), 1, 6); }) ==
          "catbabi: rows of whole stories need T of at least 7, the shortest story and its <eos>, got T = 6");
    CHECK(refusal([&] { draw(data.training_rows({}, {.whole_stories = true}), 1, 7); }) == "accepted");
    CHECK(refusal([&] { draw(training, 1, 1024, (std::uint64_t{1} << 52)); }) ==
          "catbabi: there are 2^62 tokens, got T = 1024 and first = 4503599627370496");
    CHECK(refusal([&] { draw(training, 1, 1024, (std::uint64_t{1} << 52) - 1); }) == "accepted");
    tensor<std::int32_t> tokens({2, 3}), targets({2, 4});
    for (const auto& call :
         {refusal([&] { training(tokens, targets, 0); }), refusal([&] { test(tokens, targets, 0); })})
        CHECK(call == "catbabi: tokens and targets must both be [B,T], got [2,3] and [2,4]");
    babi_stories no_test = small;
    no_test.test.clear();
    CHECK(refusal([&] { (void)catbabi(no_test).test_rows(split::test); }) ==
          "catbabi: expected stories in the test part of 'catbabi-small', got none");
    CHECK(refusal([&] { (void)catbabi(no_test).training_rows({}, {}, split::test); }) ==
          "catbabi: expected stories in the test part of 'catbabi-small', got none");
}

TEST_CASE("catbabi: samplers outlive what made them, and ask for no rows of none") {
    const auto made = [] {
        const catbabi data(small);
        return std::pair{data.training_rows({}), data.test_rows(split::validation)};
    }();
    CHECK(draw(made.first, 1, 9).tokens(0, 0) == 1);
    CHECK(draw(made.second, 1, 6).targets(0, 4) == 13);
    CHECK(draw(made.first, 0, 9).tokens.size() == 0);
    CHECK(draw(made.second, 0, 9).tokens.size() == 0);
}

}  // namespace
