#include <fprnn/tasks/babi_world.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using fprnn::argument_error;
using fprnn::babi_story;
using fprnn::babi_world;
using fprnn::index;
using fprnn::split;
using words = std::vector<std::string>;

const std::set<std::string> actors{"mary", "john", "daniel", "sandra"};
const std::set<std::string> places{"bathroom", "hallway", "garden", "kitchen", "office", "bedroom"};
const std::set<std::string> objects{"milk", "apple", "football"};

words split_words(const std::string& line) {
    std::istringstream in(line);
    words result;
    for (std::string word; in >> word;) result.push_back(word);
    return result;
}

bool is_question(const std::string& line) { return line.find(" ? ") != std::string::npos; }
std::string answer_of(const std::string& line) { return line.substr(line.find(" ? ") + 3); }

/// Reads sentences and answers questions, from what the sentences say alone: a diary of who and what was
/// where after each statement, in which questions are looked up. It reports what is impossible in the world.
class listener {
public:
    explicit listener(index task) : task_(task) {}

    std::string impossible;  // the first such thing

    void hear(const words& line) {
        if (!diary_.empty()) diary_.push_back(diary_.back());
        if (diary_.empty()) diary_.emplace_back();
        moment& now = diary_.back();
        expect(line.back() == ".", "no end", line);
        words rest(line.begin(), line.end() - 1);
        words who = subjects(rest);
        expect(rest.size() >= 2, "no verb", line);
        const std::string verb =
            rest[0] + (rest[1] == "up" || rest[1] == "down" || rest[1] == "back" ? " " + rest[1] : "");
        const bool there = rest.back() == "there";
        if (there) rest.pop_back();
        static const std::map<std::string, char> kinds{
            {"went", 'm'},      {"went back", 'm'}, {"moved", 'm'},     {"journeyed", 'm'},
            {"travelled", 'm'}, {"got", 'g'},       {"took", 'g'},      {"grabbed", 'g'},
            {"picked up", 'g'}, {"dropped", 'd'},   {"discarded", 'd'}, {"left", 'd'},
            {"put down", 'd'},  {"gave", 'h'},      {"handed", 'h'},    {"passed", 'h'}};
        if (!kinds.contains(verb)) return complain("verb", line);
        verbs.insert(verb);
        const char kind = kinds.at(verb);
        expect(!there || kind == 'g' || kind == 'd', "there", line);
        const std::string last = rest.back();
        if (kind == 'm') {
            expect(places.contains(last) && rest[rest.size() - 2] == "the" && rest[rest.size() - 3] == "to", "move",
                   line);
            for (const auto& a : who) {
                expect(now.where[a] != last, "moves to where it is", line);
                now.where[a] = last;
                for (const auto& o : objects)
                    if (now.holder[o] == a) now.where[o] = last;
            }
            return;
        }
        expect(who.size() == 1 && now.where.contains(who[0]), "acts where nothing says that it is", line);
        const std::string& a = who[0];
        const std::string& o = kind == 'h' ? rest[rest.size() - 3] : last;
        expect(objects.contains(o), "object", line);
        if (kind == 'g') {
            expect(now.holder[o].empty(), "gets what someone holds", line);
            expect(now.where[o].empty() || now.where[o] == now.where[a], "gets what is elsewhere", line);
            now.holder[o] = a;
            now.where[o] = now.where[a];
            now.since[o] = static_cast<int>(diary_.size());
        } else {
            expect(now.holder[o] == a, "gives away what it has not", line);
            now.holder[o] = kind == 'h' ? last : "";
            if (kind == 'h') {
                expect(task_ == 7 || task_ == 8, "gives", line);
                expect(actors.contains(last) && last != a && now.where[last] == now.where[a], "gives afar", line);
                now.since[o] = static_cast<int>(diary_.size());
            }
        }
    }

    std::string answer(const words& question) {
        moment now = diary_.back();
        const auto at = [&](std::size_t i) { return i < question.size() ? question[i] : std::string(); };
        std::string pattern, key;
        for (const auto& word : question) {
            const bool a = actors.contains(word), p = places.contains(word), o = objects.contains(word);
            pattern += (pattern.empty() ? "" : " ") + (a ? "A" : p ? "P" : o ? "O" : word);
        }
        const std::map<index, std::string> patterns{{1, "where is A ?"},
                                                    {2, "where is the O ?"},
                                                    {3, "where was the O before the P ?"},
                                                    {6, "is A in the P ?"},
                                                    {7, "how many objects is A carrying ?"},
                                                    {8, "what is A carrying ?"},
                                                    {11, "where is A ?"},
                                                    {12, "where is A ?"},
                                                    {13, "where is A ?"}};
        expect(pattern == patterns.at(task_), "question", question);
        if (task_ == 2) return now.where[at(3)];
        if (task_ == 3) {
            const std::string &o = at(3), p = at(6);
            std::size_t t = diary_.size();
            while (t > 0 && diary_[t - 1].where[o] != p) --t;
            while (t > 0 && diary_[t - 1].where[o] == p) --t;
            return t == 0 ? "never" : diary_[t - 1].where[o];
        }
        if (task_ == 6) {
            expect(now.where.contains(at(1)), "asks for what is not said", question);
            return now.where[at(1)] == at(4) ? "yes" : "no";
        }
        if (task_ == 7 || task_ == 8) {
            const std::string a = at(task_ == 7 ? 4 : 2);
            expect(now.where.contains(a), "asks for what is not said", question);
            std::vector<std::pair<int, std::string>> in_hand;
            for (const auto& o : objects)
                if (now.holder[o] == a) in_hand.emplace_back(now.since[o], o);
            std::sort(in_hand.begin(), in_hand.end());
            if (task_ == 7) return words{"none", "one", "two", "three"}[in_hand.size()];
            std::string list;
            for (const auto& item : in_hand) list += (list.empty() ? "" : ",") + item.second;
            return list.empty() ? "nothing" : list;
        }
        return now.where[at(2)];
    }

    std::string last_place() const {  // that was named
        return said_place_;
    }
    std::set<std::string> verbs;

private:
    struct moment {
        std::map<std::string, std::string> where, holder;
        std::map<std::string, int> since;
    };

    void complain(const std::string& what, const words& line) {
        if (!impossible.empty()) return;
        impossible = what + ":";
        for (const auto& word : line) impossible += " " + word;
    }
    void expect(bool ok, const std::string& what, const words& line) {
        if (!ok) complain(what, line);
    }

    // Takes them off the line.
    words subjects(words& line) {
        for (const auto& word : line)
            if (places.contains(word)) said_place_ = word;
        const words whole = line;
        const auto drop = [&](std::size_t n) { line.erase(line.begin(), line.begin() + static_cast<long>(n)); };
        if (line[0] == "then" || line[0] == "afterwards") return drop(1), pronoun(line, whole);
        if ((line[0] == "after" || line[0] == "following") && line[1] == "that") return drop(2), pronoun(line, whole);
        before_ = {line[0]};
        drop(1);
        if (line[0] == "and") {
            before_.push_back(line[1]);
            drop(2);
        }
        for (const auto& a : before_) expect(actors.contains(a), "actor", whole);
        const bool two = task_ == 12 || task_ == 13;
        expect(before_.size() == (two ? 2 : 1) && (before_.front() != before_.back()) == two, "actors", whole);
        return before_;
    }
    words pronoun(words& line, const words& whole) {
        const std::string expected = before_.size() == 2                              ? "they"
                                     : before_[0] == "mary" || before_[0] == "sandra" ? "she"
                                                                                      : "he";
        expect((task_ == 11 || task_ == 13) && line[0] == expected, "pronoun", whole);
        line.erase(line.begin());
        return before_;
    }

    index task_;
    std::vector<moment> diary_;
    words before_;
    std::string said_place_;
};

TEST_CASE("babi_world: one who reads the sentences, and knows nothing else, answers every question as the story does") {
    constexpr int stories = 2000;
    for (const index task : babi_world::tasks) {
        CAPTURE(task);
        std::map<std::string, int> answers;
        std::set<std::string> verbs;
        int questions = 0, by_last_place = 0, wrong = 0;
        for (int i = 0; i < stories; ++i) {
            const split part = i % 3 == 0 ? split::train : i % 3 == 1 ? split::validation : split::test;
            const babi_story story =
                babi_world{{static_cast<std::uint64_t>(i % 7)}}.story(task, part, static_cast<std::uint64_t>(i));
            REQUIRE(story.task == task);
            listener reader(task);
            int asked = 0, statements = 0;
            for (const std::string& line : story.lines) {
                words all = split_words(line);
                if (!is_question(line)) {
                    reader.hear(all);
                    ++statements;
                    continue;
                }
                const bool free = task == 2 || task == 3 || task == 7 || task == 8;
                if (free ? statements < 2 : statements != 2) ++wrong;
                statements = 0;
                ++asked;
                const std::string answer = all.back();
                all.pop_back();
                if (reader.answer(all) != answer) ++wrong;
                ++answers[answer];
                by_last_place += reader.last_place() == answer;
            }
            questions += asked;
            REQUIRE(asked == 5);
            REQUIRE(is_question(story.lines.back()));
            REQUIRE(reader.impossible == "");
            verbs.insert(reader.verbs.begin(), reader.verbs.end());
        }
        CHECK(wrong == 0);
        CHECK(verbs.size() == (task == 2 || task == 3 ? 13 : task == 7 || task == 8 ? 16 : 5));

        std::set<std::string> expected = places;
        if (task == 6) expected = {"yes", "no"};
        if (task == 7) expected = {"none", "one", "two", "three"};
        if (task == 8) {
            expected = {"nothing"};
            for (const auto& a : objects)
                for (const auto& b : objects)
                    for (const auto& c : objects) {
                        expected.insert(a);
                        if (a != b) expected.insert(a + "," + b);
                        if (a != b && a != c && b != c) expected.insert(a + "," + b + "," + c);
                    }
        }
        std::set<std::string> got;
        int most = 0;
        std::string constant;
        for (const auto& [answer, count] : answers) {
            got.insert(answer);
            if (count > most) constant = answer;
            most = std::max(most, count);
        }
        CHECK(got == expected);
        const auto share = [&](int n) { return static_cast<double>(n) / questions; };
        MESSAGE("task ", task, ": '", constant, "' is right for ", share(most), ", the place named last for ",
                share(by_last_place));
        CHECK(share(most) < (task == 6 ? 0.52 : task == 7 ? 0.6 : task == 8 ? 0.43 : 0.19));
        CHECK(share(by_last_place) < 0.76);
        if (got == places)
            for (const auto& [answer, count] : answers) CHECK(share(count) > 0.15);
    }
}

TEST_CASE("babi_world: the one who reads does notice what is wrong") {
    listener reader(7);
    for (const std::string line : {"mary moved to the office .", "john went to the office .",
                                   "mary got the milk there .", "mary passed the milk to john ."})
        reader.hear(split_words(line));
    CHECK(reader.impossible == "");
    CHECK(reader.answer(split_words("how many objects is john carrying ?")) == "one");
    CHECK(reader.answer(split_words("how many objects is mary carrying ?")) == "none");
    reader.hear(split_words("mary dropped the milk ."));
    CHECK(reader.impossible == "gives away what it has not: mary dropped the milk .");
}

TEST_CASE("babi_world: a story is a function of task, seed, part and number") {
    std::set<std::vector<std::string>> all;
    int made = 0;
    for (const index task : babi_world::tasks)
        for (const std::uint64_t seed : {0u, 1u})
            for (const split part : {split::train, split::validation, split::test})
                for (const std::uint64_t number :
                     {std::uint64_t{0}, std::uint64_t{1}, babi_world::stories_of_a_part - 1}) {
                    const auto story = babi_world{{seed}}.story(task, part, number);
                    CHECK(babi_world{{seed}}.story(task, part, number).lines == story.lines);
                    all.insert(story.lines);
                    ++made;
                }
    CHECK(all.size() == static_cast<std::size_t>(made));
}

TEST_CASE("babi_world: stories do not change with a compiler or a machine") {
    const words story{"daniel went to the hallway .",
                      "sandra travelled to the garden .",
                      "sandra picked up the apple there .",
                      "how many objects is sandra carrying ? one",
                      "mary went to the office .",
                      "sandra left the apple there .",
                      "mary took the football there .",
                      "how many objects is mary carrying ? one",
                      "sandra grabbed the apple .",
                      "daniel picked up the milk .",
                      "mary went back to the bathroom .",
                      "sandra journeyed to the office .",
                      "how many objects is daniel carrying ? one",
                      "john moved to the office .",
                      "john went back to the kitchen .",
                      "how many objects is daniel carrying ? one",
                      "john travelled to the bathroom .",
                      "daniel journeyed to the kitchen .",
                      "sandra put down the apple there .",
                      "how many objects is john carrying ? none"};
    CHECK(babi_world{{1}}.story(7, split::train, 12).lines == story);
    std::uint64_t hash = 14695981039346656037u;
    for (const index task : babi_world::tasks)
        for (std::uint64_t i = 0; i < 200; ++i)
            for (const std::string& line : babi_world{{5}}.story(task, split::validation, i).lines)
                for (const char c : line + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    CHECK(hash == 12341324568987850019u);
}

TEST_CASE("babi_world: stories of several tasks come part by part and task by task") {
    const babi_world world{{9}};
    const auto all = world.stories(3, 2, 1, {7, 1});
    CHECK(all.name == "babi-world");
    const std::pair<split, index> parts[] = {{split::train, 3}, {split::validation, 2}, {split::test, 1}};
    for (const auto& [part, count] : parts) {
        const auto& got = all.of(part);
        REQUIRE(static_cast<index>(got.size()) == 2 * count);
        for (index i = 0; i < 2 * count; ++i) {
            const index task = i < count ? 7 : 1;
            const auto& story = got[static_cast<std::size_t>(i)];
            CHECK(story.task == task);
            CHECK(story.lines == world.story(task, part, static_cast<std::uint64_t>(i % count)).lines);
        }
    }
    const auto whole = world.stories();
    CHECK(whole.train.size() == 9 * 1800);
    CHECK(whole.validation.size() == 9 * 200);
    CHECK(whole.test.size() == 9 * 200);
}

TEST_CASE("babi_world: what is no task, number or count is refused") {
    const babi_world world;
    for (const index task : {-1, 0, 4, 5, 9, 10, 14, 20, 21})
        CHECK_THROWS_WITH_AS(
            world.story(task, split::train, 0),
            ("babi_world: task must be one of 1, 2, 3, 6, 7, 8, 11, 12, 13, got " + std::to_string(task)).c_str(),
            argument_error);
    CHECK_THROWS_WITH_AS(world.story(1, split::train, babi_world::stories_of_a_part),
                         "babi_world: number must be below 2^56, got 72057594037927936", argument_error);
    CHECK_THROWS_WITH_AS(world.stories(1, -1, 1), "babi_world: expected a count of stories, got -1", argument_error);
    CHECK_THROWS_AS(world.stories(1, 1, 1, {4}), argument_error);
}

// What is made is what the reader would have read.
TEST_CASE("babi_world: a story that is written as bAbI's files are is read as it was") {
    for (const index task : babi_world::tasks)
        for (std::uint64_t i = 0; i < 50; ++i) {
            const auto story = babi_world{{2}}.story(task, split::test, i);
            std::string bytes;
            int id = 0;
            for (const std::string& line : story.lines) {
                bytes += std::to_string(++id) + " ";
                bytes += is_question(line) ? line.substr(0, line.find(" ? ")) + "?\t" + answer_of(line) + "\t1"
                                           : line.substr(0, line.size() - 2) + ".";
                bytes += "\n";
            }
            const auto read = fprnn::parse_babi(bytes, "file", task);
            REQUIRE(read.size() == 1);
            CHECK(read[0].lines == story.lines);
        }
}

}  // namespace
