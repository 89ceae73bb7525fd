#pragma once

#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/tasks/babi.hpp>
#include <fprnn/tasks/modular_arithmetic.hpp>
#include <fprnn/tasks/split.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fprnn {

/// What rows of catbabi ask for.
struct catbabi_options {
    bool language_model = false;  ///< every next word; else answers alone
    bool whole_stories = false;   ///< only what is in stories that a row has from their beginning to their end
};

namespace detail {

/// The stories of a part as ids, one behind the other, each with `<eos>` before it.
struct catbabi_part {
    std::vector<std::int32_t> tokens{};
    std::vector<index> begins{0};                    // of the stories, and the end of the last one
    index questions = 0, shortest = 0, longest = 0;  // the latter in tokens of a story

    index stories() const { return static_cast<index>(begins.size()) - 1; }
    index begin(index story) const { return begins[static_cast<std::size_t>(story)]; }
    index length(index story) const { return begin(story + 1) - begin(story); }
    index size() const { return begins.back(); }
    std::int32_t operator[](index i) const { return tokens[static_cast<std::size_t>(i)]; }
};

struct catbabi_data {
    static constexpr std::int32_t padding = 0, end = 1;

    std::string name;
    std::vector<std::string> words{"<pad>", "<eos>"};
    std::int32_t question_mark = -1;
    std::array<catbabi_part, 3> parts{};

    const catbabi_part& of(split part) const { return parts[static_cast<std::size_t>(part)]; }
};

/// A part with stories and how it is asked, which samplers share.
struct catbabi_rows {
    std::shared_ptr<const catbabi_data> data;
    split part;
    catbabi_options options;

    const catbabi_part& stories() const { return data->of(part); }

    /// Writes of a story, which stands at position `at` of a text, what is in the rows of T tokens from
    /// position `first` on.
    void write(index story, std::uint64_t at, std::uint64_t first, view<std::int32_t> tokens,
               view<std::int32_t> targets) const {
        const catbabi_part& all = stories();
        const auto size = static_cast<std::uint64_t>(tokens.size()), T = static_cast<std::uint64_t>(tokens.shape()[1]);
        const auto n = static_cast<std::uint64_t>(all.length(story));
        const bool counts = !options.whole_stories || at / T == (at + n - 1) / T;
        for (std::uint64_t p = std::max(at, first); p < std::min(at + n, first + size); ++p) {
            const index word = all.begin(story) + static_cast<index>(p - at), to = static_cast<index>(p - first);
            const bool asks = counts && (options.language_model || all[word] == data->question_mark);
            const std::int32_t next = p + 1 < at + n ? all[word + 1] : catbabi_data::end;
            tokens[to] = all[word];
            targets[to] = asks ? next : ignored_target;
        }
    }

    /// T is at least `needed`, that of the stories which is meant by `which`.
    static void require_length(index T, index needed, const char* which) {
        require(T >= needed, "catbabi", [&] {
            return "rows of whole stories need T of at least " + std::to_string(needed) + ", the " + which +
                   " story and its <eos>, got T = " + std::to_string(T);
        });
    }
};

}  // namespace detail

/// catbAbI: the stories of bAbI's tasks one behind the other in one text, whose questions are to be answered.
///
///     tokens     <eos> w_1 … w_n of each story, words as babi_story has them; <pad> behind the last one of a
///                test
///     targets    the answer where the input is "?", ignored_target elsewhere; with language_model the next
///                token everywhere but at <pad>, <eos> behind w_n
///
/// Classes are the whole vocabulary: `<pad>` = 0, `<eos>` = 1, then words in the order in which they first
/// come in the stories, training's, validation's and test's. Accuracy is that of measure_accuracy's tokens
/// without language_model: right answers among all questions of all tasks together. Source: Schlag,
/// Munkhdalai and Schmidhuber 2021, and the paper's app. evaluation; rows of T = 200 are
/// those of the authors' code.
///
/// A model starts each row from nothing. Of a story that a row begins within it cannot know what came before,
/// so that some of its questions have no answer: it is so in the authors' program, and keeps their accuracies
/// below 1. With whole_stories, such a story and one that a row ends within stay to be read, and none of
/// their words is a target.
class catbabi {
public:
    class training_sampler;
    class test_sampler;

    /// argument_error when a line is not as babi_story has it, or when training asks no question.
    explicit catbabi(const babi_stories& stories) {
        auto data = std::make_shared<detail::catbabi_data>();
        data->name = "catbabi-" + stories.name;
        std::unordered_map<std::string, std::int32_t> ids{{data->words[0], 0}, {data->words[1], 1}};
        for (const split part : {split::train, split::validation, split::test}) {
            auto& all = data->parts[static_cast<std::size_t>(part)];
            for (const babi_story& story : stories.of(part)) {
                all.tokens.push_back(detail::catbabi_data::end);
                for (const std::string& line : story.lines) all.questions += append(line, *data, ids, all.tokens);
                all.begins.push_back(static_cast<index>(all.tokens.size()));
                const index n = all.length(all.stories() - 1);
                all.longest = std::max(all.longest, n);
                all.shortest = all.stories() == 1 ? n : std::min(all.shortest, n);
            }
        }
        require(data->of(split::train).questions > 0, "catbabi",
                [&] { return "expected a question for training in '" + stories.name + "', got none"; });
        data->question_mark = ids.at("?");
        data_ = std::move(data);
    }

    /// "catbabi-" and the name of the stories.
    const std::string& name() const { return data_->name; }
    index vocabulary() const { return static_cast<index>(data_->words.size()); }
    index classes() const { return vocabulary(); }

    /// A word for each token.
    const std::vector<std::string>& words() const { return data_->words; }

    index stories(split part) const { return data_->of(part).stories(); }
    index questions(split part) const { return data_->of(part).questions; }

    /// The tokens of the longest story with its `<eos>`: the least T for a test of whole stories. 0 of none.
    index longest_story(split part) const { return data_->of(part).longest; }

    /// The answer that is right most often in a part, the least of equal ones, and the share of the
    /// questions: what a model reaches that does not read. A share of 0 where nothing is asked.
    constant_answer constant_answer_share(split part) const {
        const auto& all = data_->of(part);
        std::vector<index> count(data_->words.size());
        for (index i = 0; i + 1 < all.size(); ++i)
            if (all[i] == data_->question_mark) ++count[static_cast<std::size_t>(all[i + 1])];
        const auto most = std::max_element(count.begin(), count.end());
        const auto share = static_cast<double>(*most) / static_cast<double>(std::max<index>(all.questions, 1));
        return {static_cast<std::int32_t>(most - count.begin()), share};
    }

    /// What train() is given. argument_error when the part has no story.
    training_sampler training_rows(fprnn::seed seed, const catbabi_options& options = {},
                                   split part = split::train) const;

    /// What evaluate() is given, with rows(T) sequences. argument_error when the part has no story.
    test_sampler test_rows(split part, const catbabi_options& options = {}) const;

private:
    // Appends the words of a line and returns whether it is a question.
    static bool append(std::string_view line, detail::catbabi_data& data,
                       std::unordered_map<std::string, std::int32_t>& ids, std::vector<std::int32_t>& tokens) {
        std::vector<std::string> words;
        detail::for_each_word(line, [&](std::string_view word) { words.emplace_back(word); });
        const std::size_t n = words.size();
        const bool question = n >= 3 && words[n - 2] == "?";
        bool well_formed = n >= 2 && (question || words[n - 1] == ".");
        for (std::size_t i = 0; i < n; ++i) {
            const std::string& w = words[i];
            const bool mark = i == n - (question ? 2 : 1);
            well_formed = well_formed && (mark || (w != "." && w != "?" && w != data.words[0] && w != data.words[1]));
            const auto [entry, is_new] = ids.emplace(w, static_cast<std::int32_t>(data.words.size()));
            if (is_new) data.words.push_back(w);
            tokens.push_back(entry->second);
        }
        require(well_formed, "catbabi", [&] {
            return "expected a line as 'mary moved .' or 'where is mary ? kitchen', got '" + std::string(line) + "'";
        });
        return question;
    }

    detail::catbabi_rows rows(split part, const catbabi_options& options) const {
        require(stories(part) > 0, "catbabi", [&] {
            return std::string("expected stories in the ") + detail::name_of(part) + " part of '" + name() +
                   "', got none";
        });
        return {data_, part, options};
    }

    std::shared_ptr<const detail::catbabi_data> data_;
};

/// Rows of an endless text: all stories of the part in an order that is drawn, all in another one, and so on.
/// Row r are its tokens from r·T on, a function of (stories, seed, part, T, r), and consecutive rows show
/// every story once before any comes again. The authors cut as many texts as a batch has rows instead, and a
/// model of theirs forgets between rows, too.
class catbabi::training_sampler {
public:
    training_sampler(detail::catbabi_rows rows, fprnn::seed s) : rows_(std::move(rows)), seed_(s) {}

    /// Overwrites row b of tokens [B,T] with row first + b, and targets [B,T]. What it takes beside the rows
    /// grows with the number of stories: their order is drawn again in each call. argument_error when the
    /// shapes are not both [B,T], rows reach beyond 2^62 tokens, or of whole stories not even the shortest
    /// one has T tokens at most.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
        detail::require_rows("catbabi", tokens, targets, first);
        if (tokens.empty()) return;
        const auto& all = rows_.stories();
        const auto B = static_cast<std::uint64_t>(tokens.shape()[0]), T = static_cast<std::uint64_t>(tokens.shape()[1]);
        require(first + B <= detail::sequences_of_a_split / T, "catbabi", [&] {
            return "there are 2^62 tokens, got T = " + std::to_string(T) + " and first = " + std::to_string(first);
        });
        if (rows_.options.whole_stories) rows_.require_length(tokens.shape()[1], all.shortest, "shortest");
        const auto size = static_cast<std::uint64_t>(all.size());
        const std::uint64_t begin = first * T, end = begin + B * T;
        std::vector<index> order(static_cast<std::size_t>(all.stories()));
        for (std::uint64_t round = begin / size; round * size < end; ++round) {
            shuffle(order, round);
            std::uint64_t at = round * size;
            for (std::size_t i = 0; i < order.size() && at < end; ++i) {
                rows_.write(order[i], at, begin, tokens, targets);
                at += static_cast<std::uint64_t>(all.length(order[i]));
            }
        }
    }

private:
    void shuffle(std::vector<index>& order, std::uint64_t round) const {
        std::iota(order.begin(), order.end(), index{0});
        const random_stream random = detail::stream_of(seed_, rows_.part, round);
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i, i))]);
    }

    detail::catbabi_rows rows_;
    fprnn::seed seed_;
};

/// The stories of the part in their order, once. Rows are T tokens each of one text; with whole_stories a
/// story that would not end in its row begins the next one. Either way every question is asked once.
class catbabi::test_sampler {
public:
    explicit test_sampler(detail::catbabi_rows rows) : rows_(std::move(rows)) {}

    /// How many rows of T tokens there are. argument_error unless T is at least 1 and, for whole stories, the
    /// longest one's.
    index rows(index T) const {
        require(T >= 1, "catbabi", [&] { return "T must be at least 1, got " + std::to_string(T); });
        if (rows_.options.whole_stories) rows_.require_length(T, rows_.stories().longest, "longest");
        return for_each_story(T, [](index, index) {}) / T + 1;
    }

    /// Overwrites row b of tokens [B,T] with row first + b, and targets [B,T]. argument_error when the shapes
    /// are not both [B,T], as rows(T), or beyond the last row.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
        detail::require_rows("catbabi", tokens, targets, first);
        const index B = tokens.shape()[0], T = tokens.shape()[1], count = rows(T);
        require(first + static_cast<std::uint64_t>(B) <= static_cast<std::uint64_t>(count), "catbabi", [&] {
            return "there are " + std::to_string(count) + " rows of T = " + std::to_string(T) +
                   ", got first = " + std::to_string(first) + " and B = " + std::to_string(B);
        });
        std::fill(tokens.begin(), tokens.end(), detail::catbabi_data::padding);
        std::fill(targets.begin(), targets.end(), ignored_target);
        const std::uint64_t begin = first * static_cast<std::uint64_t>(T);
        for_each_story(T, [&](index story, index at) {
            rows_.write(story, static_cast<std::uint64_t>(at), begin, tokens, targets);
        });
    }

private:
    // Visits (story, its position in the text) and returns the position of the last token.
    template <class Visit>
    index for_each_story(index T, Visit&& visit) const {
        const auto& all = rows_.stories();
        index at = 0;
        for (index story = 0; story < all.stories(); ++story) {
            const index n = all.length(story);
            if (rows_.options.whole_stories && at / T != (at + n - 1) / T) at = (at / T + 1) * T;
            visit(story, at);
            at += n;
        }
        return at - 1;
    }

    detail::catbabi_rows rows_;
};

inline catbabi::training_sampler catbabi::training_rows(fprnn::seed seed, const catbabi_options& options,
                                                        split part) const {
    return {rows(part, options), seed};
}

inline catbabi::test_sampler catbabi::test_rows(split part, const catbabi_options& options) const {
    return test_sampler(rows(part, options));
}

}  // namespace fprnn
