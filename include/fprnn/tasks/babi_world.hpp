#pragma once

#include <fprnn/tasks/babi.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fprnn {

/// Stories that are made, for nine of bAbI's twenty tasks. They are not the official data: sentences are of
/// the same kinds and words, but how often each kind comes is a choice of this header, so that accuracies on
/// both cannot be compared.
///
/// Four actors move between six places and get, drop and give three objects:
///
///      1  mary moved to the bathroom .                  where is mary ? bathroom
///      2  … mary got the milk there .                   where is the milk ? bathroom
///      3  … mary moved to the garden .                  where was the milk before the garden ? bathroom
///      6  as 1                                          is mary in the kitchen ? no
///      7  … mary gave the milk to john .                how many objects is mary carrying ? none
///      8  as 7                                          what is john carrying ? milk
///     11  … after that she went to the office .         where is mary ? office
///     12  mary and john moved to the kitchen .          where is john ? kitchen
///     13  … then they went to the hallway .             where is mary ? hallway
///
/// A story has five questions. Before each are two statements, in tasks 2, 3, 7, 8 two to four, and more
/// until there is something to ask for. Where an object lies at first is not said before someone gets it;
/// questions are on what has been said. Task 3 asks for the last visit to a place. Task 7 counts none, one,
/// two, three; task 8 lists objects in the order in which they came into the hands, as "milk,apple", or says
/// "nothing". Two of three questions of both are on someone who has held something.
///
/// A story is a pure function of (task, seed, part, number). Source: Weston et al. 2015 for the tasks.
struct babi_world {
    static constexpr std::array<index, 9> tasks{1, 2, 3, 6, 7, 8, 11, 12, 13};
    static constexpr std::uint64_t stories_of_a_part = std::uint64_t{1} << 56;

    fprnn::seed seed{};

    /// argument_error unless `task` is one of `tasks` and `number` below 2^56.
    babi_story story(index task, split part, std::uint64_t number) const;

    /// Stories 0, 1, … of each task, as many as are asked for; the defaults make 9,000, 1,000 and 1,000
    /// questions a task, as the official en-valid-10k has. argument_error as story(), or when a count is
    /// negative.
    babi_stories stories(index train = 1800, index validation = 200, index test = 200,
                         const std::vector<index>& of_tasks = {tasks.begin(), tasks.end()}) const;
};

namespace detail {

/// Tells one story. Random numbers are used in the order of the words.
class babi_narrator {
public:
    babi_narrator(index task, const random_stream& random) : random_(random), story_{task} {
        for (object& o : objects_) o.place = below(places.size());
    }

    babi_story tell() {
        for (int question = 0; question < 5; ++question) {
            switch (story_.task) {
                case 1:
                case 6: repeat(2, [&] { move_one(); }); break;
                case 11: move_and_again(1); break;
                case 12: repeat(2, [&] { move_two(); }); break;
                case 13: move_and_again(2); break;
                default: repeat(2 + below(3), [&] { act(); });
            }
            while (!ask()) act();
        }
        return std::move(story_);
    }

private:
    using number = std::size_t;
    static constexpr number none = 99;
    static constexpr std::array<std::string_view, 4> actors{"mary", "john", "daniel", "sandra"};
    static constexpr std::array<std::string_view, 6> places{"bathroom", "hallway", "garden",
                                                            "kitchen",  "office",  "bedroom"};
    static constexpr std::array<std::string_view, 3> objects{"milk", "apple", "football"};
    static constexpr std::array<std::string_view, 5> moved{"moved", "went", "journeyed", "travelled", "went back"};
    static constexpr std::array<std::string_view, 4> got{"got", "took", "grabbed", "picked up"};
    static constexpr std::array<std::string_view, 4> dropped{"dropped", "discarded", "left", "put down"};
    static constexpr std::array<std::string_view, 3> gave{"gave", "handed", "passed"};
    static constexpr std::array<std::string_view, 4> after{"then", "after that", "afterwards", "following that"};
    static constexpr std::array<std::string_view, 4> counts{"none", "one", "two", "three"};

    struct object {
        number place = none;
        std::vector<number> told{};  // where it was since someone got it
    };
    struct actor {
        number place = none;  // where statements have said
        std::vector<number> holds{};
        bool has_held = false;
    };

    number below(number n) { return static_cast<number>(random_.below(used_++, n)); }
    template <class Words>
    const auto& pick(const Words& words) {
        return words[below(words.size())];
    }
    template <class Do>
    static void repeat(number times, Do&& what) {
        for (number i = 0; i < times; ++i) what();
    }
    void say(const std::vector<std::string_view>& words) {
        std::string line;
        for (const std::string_view word : words) line.append(line.empty() ? "" : " ").append(word);
        story_.lines.push_back(std::move(line));
    }

    // A place where none of them is known to be.
    number elsewhere(const std::vector<number>& who) {
        for (;;) {
            const number place = below(places.size());
            if (std::none_of(who.begin(), who.end(), [&](number a) { return actors_[a].place == place; })) return place;
        }
    }
    void arrive(const std::vector<number>& who, number place) {
        for (const number a : who) {
            actors_[a].place = place;
            for (const number o : actors_[a].holds) {
                objects_[o].place = place;
                objects_[o].told.push_back(place);
            }
        }
    }
    std::vector<number> some(number count) {
        const number first = below(actors.size());
        if (count == 1) return {first};
        const number second = (first + 1 + below(actors.size() - 1)) % actors.size();
        return {first, second};
    }

    void move(const std::vector<number>& who) {
        const number place = elsewhere(who);
        if (who.size() == 1)
            say({actors[who[0]], pick(moved), "to the", places[place], "."});
        else
            say({actors[who[0]], "and", actors[who[1]], pick(moved), "to the", places[place], "."});
        arrive(who, place);
    }
    void move_one() { move(some(1)); }
    void move_two() { move(some(2)); }
    void move_and_again(number count) {
        const auto who = some(count);
        move(who);
        const number place = elsewhere(who);
        const bool she = who[0] == 0 || who[0] == 3;
        const std::string_view pronoun = count == 2 ? "they" : she ? "she" : "he";
        const std::string_view when = pick(after);
        say({when, pronoun, pick(moved), "to the", places[place], "."});
        arrive(who, place);
    }

    // An actor moves, gets, drops or, in tasks 7 and 8, gives something. The weights of what is possible:
    // 4 to move, 12 to get each object that lies there, 3 to drop one (1 in tasks 7 and 8), 4 to give one to
    // each actor there.
    void act() {
        const number who = below(actors.size());
        actor& a = actors_[who];
        std::vector<number> here, company;
        for (number o = 0; o < objects.size(); ++o)
            if (objects_[o].place == a.place && !held(o)) here.push_back(o);
        for (number b = 0; b < actors.size(); ++b)
            if (b != who && actors_[b].place == a.place) company.push_back(b);
        const bool hands = story_.task == 7 || story_.task == 8;
        std::string kinds(4, 'm');
        if (a.place != none) kinds.append(12 * here.size(), 'g');
        if (!a.holds.empty()) kinds.append(hands ? 1 : 3, 'd');
        if (!a.holds.empty() && hands) kinds.append(4 * company.size(), 'h');
        switch (pick(kinds)) {
            case 'm': return move({who});
            case 'g': return get(who, pick(here));
            case 'd': return drop(who);
            default: return give(who, pick(company));
        }
    }
    bool held(number o) const {
        return std::any_of(actors_.begin(), actors_.end(), [&](const actor& a) {
            return std::find(a.holds.begin(), a.holds.end(), o) != a.holds.end();
        });
    }
    std::string_view end() { return below(2) == 0 ? "there ." : "."; }
    void get(number who, number o) {
        const std::string_view verb = pick(got);
        say({actors[who], verb, "the", objects[o], end()});
        take(who, o);
        if (objects_[o].told.empty()) objects_[o].told.push_back(objects_[o].place);
    }
    number release(number who) {
        auto& holds = actors_[who].holds;
        const number position = below(holds.size());
        const number o = holds[position];
        holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(position));
        return o;
    }
    void drop(number who) {
        const number o = release(who);
        const std::string_view verb = pick(dropped);
        say({actors[who], verb, "the", objects[o], end()});
    }
    void give(number who, number to) {
        const number o = release(who);
        say({actors[who], pick(gave), "the", objects[o], "to", actors[to], "."});
        take(to, o);
    }
    void take(number who, number o) {
        actors_[who].holds.push_back(o);
        actors_[who].has_held = true;
    }

    // False where statements have said nothing that the task could ask for.
    bool ask() {
        const index task = story_.task;
        if (task == 2 || task == 3) {
            std::vector<number> known;
            for (number o = 0; o < objects.size(); ++o)
                if (objects_[o].told.size() + 1 >= static_cast<number>(task)) known.push_back(o);
            if (known.empty()) return false;
            const number o = pick(known);
            const auto& told = objects_[o].told;
            if (task == 2) {
                say({"where is the", objects[o], "?", places[told.back()]});
                return true;
            }
            const number place = told[1 + below(told.size() - 1)];
            const auto last = std::find(told.rbegin(), told.rend(), place);
            say({"where was the", objects[o], "before the", places[place], "?", places[*(last + 1)]});
            return true;
        }
        std::vector<number> known;
        const bool held_one = (task == 7 || task == 8) && below(3) != 0;
        for (number a = 0; a < actors.size(); ++a)
            if (held_one ? actors_[a].has_held : actors_[a].place != none) known.push_back(a);
        if (known.empty()) return false;
        const number who = pick(known);
        const actor& a = actors_[who];
        if (task == 6) {
            const bool yes = below(2) == 0;
            say({"is", actors[who], "in the", places[yes ? a.place : elsewhere({who})], yes ? "? yes" : "? no"});
        } else if (task == 7) {
            say({"how many objects is", actors[who], "carrying ?", counts[a.holds.size()]});
        } else if (task == 8) {
            std::string list;
            for (const number o : a.holds) list.append(list.empty() ? "" : ",").append(objects[o]);
            say({"what is", actors[who], "carrying ?", list.empty() ? "nothing" : list});
        } else {
            say({"where is", actors[who], "?", places[a.place]});
        }
        return true;
    }

    random_stream random_;
    std::uint64_t used_ = 0;
    babi_story story_;
    std::array<actor, actors.size()> actors_{};
    std::array<object, objects.size()> objects_{};
};

}  // namespace detail

inline babi_story babi_world::story(index task, split part, std::uint64_t number) const {
    require(std::find(tasks.begin(), tasks.end(), task) != tasks.end(), "babi_world",
            [&] { return "task must be one of 1, 2, 3, 6, 7, 8, 11, 12, 13, got " + std::to_string(task); });
    require(number < stories_of_a_part, "babi_world",
            [&] { return "number must be below 2^56, got " + std::to_string(number); });
    // Tasks are told apart in the bits above a story's number.
    const std::uint64_t of_task = static_cast<std::uint64_t>(task) << 56;
    return detail::babi_narrator(task, detail::stream_of(seed, part, of_task | number)).tell();
}

inline babi_stories babi_world::stories(index train, index validation, index test,
                                        const std::vector<index>& of_tasks) const {
    babi_stories result{"babi-world"};
    const std::array parts{std::pair{split::train, train}, std::pair{split::validation, validation},
                           std::pair{split::test, test}};
    for (const auto& [part, count] : parts) {
        require(count >= 0, "babi_world",
                [n = count] { return "expected a count of stories, got " + std::to_string(n); });
        for (const index task : of_tasks)
            for (index i = 0; i < count; ++i)
                result.of(part).push_back(story(task, part, static_cast<std::uint64_t>(i)));
    }
    return result;
}

}  // namespace fprnn
