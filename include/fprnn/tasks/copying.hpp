#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/split.hpp>
#include <fprnn/train/evaluate.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fprnn {

struct copying_test;

/// The copying task: a string of n letters is read, and after a separator it is written once more. An example
/// is `$ s | s .`, 2n + 3 tokens,
///
///     s        n letters, independent and uniform on the tokens 0 … letters − 1
///     $ | .    begin, separator, end: the tokens letters, letters + 1, letters + 2
///
/// and from the separator on each next token is asked for, n letters and the end: n + 1 targets. The authors'
/// code has a token for padding, too, but never emits it; here it is none, and 26 letters make the paper's
/// vocabulary of 29. Source: the paper's app. evaluation; Jelassi et al. 2024.
///
/// A row for training is examples one after the other, n uniform on shortest … longest, until it is full. Its
/// T tokens and the target of the last one are T + 1 tokens of that text, the authors' context. An example
/// whose end is not among them is truncated, and none of its targets count: one of n letters needs 2n + 2
/// tokens. The state of a model is not reset between examples.
///
/// Data are made as they are asked for, and row s is a pure function of (letters, shortest, longest, seed,
/// part, s): the batch it comes in and the order of calls do not change it. A shorter T gives a prefix of its
/// tokens, and the targets of the examples that it has whole.
struct copying {
    using split = fprnn::split;

    static constexpr index max_length = index{1} << 60;  ///< letters of an example

    index letters = 26;  ///< of the alphabet
    index shortest = 5;  ///< example of a row for training, in letters
    index longest = 50;  ///< example of a row for training, in letters
    fprnn::seed seed{};
    split part = split::train;

    static std::string name() { return "copy"; }
    index vocabulary() const { return letters + 3; }
    index classes() const { return vocabulary(); }

    std::int32_t begin_token() const { return static_cast<std::int32_t>(letters); }
    std::int32_t separator_token() const { return static_cast<std::int32_t>(letters + 1); }
    std::int32_t end_token() const { return static_cast<std::int32_t>(letters + 2); }

    /// Single examples of n letters, of this alphabet, seed and part. argument_error unless n is in [1,2^60].
    copying_test test(index n) const;

    /// Overwrites row b of tokens [B,T] with row first + b of examples, and of targets [B,T] with the next
    /// token where it counts, with ignored_target elsewhere. Rows are numbered from 0 to 2^62 − 1.
    /// argument_error when the shapes are not both [B,T], letters, shortest or longest are out of range, or T
    /// is below 2·shortest + 2, where no target counts. This is what train() and evaluate() call.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const;
};

/// The test of the copying task, one example of exactly n letters a sequence: the inputs `$ s |` and all
/// letters of s but the last, which is the last target. The model reads the true letters whatever it answers
/// (teacher forcing). n letters are asked for, the end is not: in measure_accuracy the share of tokens is the
/// paper's character accuracy, that of sequences its string accuracy.
///
///     const copying data{.seed = {1}, .part = split::test};
///     const auto test = data.test(100);
///     const auto e = evaluate(model, theta, test.tokens(), 512, test);
///
/// Sequence s is a pure function of (letters, seed, part, n, s). Its letters are the first n of a stream of
/// its own: those of a shorter n are a prefix. Row s for training begins with letters of the same stream
/// where part and seed are equal, so a test set needs a part of its own.
struct copying_test {
    copying problem;
    index n = 0;  ///< letters of an example

    static std::string name() { return copying::name(); }
    index vocabulary() const { return problem.vocabulary(); }
    index classes() const { return problem.classes(); }
    /// The length of a sequence, 2n + 1. argument_error unless n is in [1, 2^60].
    index tokens() const;
    /// What is read before the first letter is written, `$ s |`: n + 2 tokens.
    index prompt() const { return tokens() - n + 1; }

    /// Overwrites row b of tokens [B,T] with sequence first + b, and of targets [B,T] with its letters from
    /// the separator on, with ignored_target before. argument_error when the shapes are not both [B,T], T is
    /// not tokens(), or letters or n are out of range.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const;
};

namespace detail {

inline void require_letters(const char* operation, index letters) {
    constexpr index largest = std::numeric_limits<std::int32_t>::max();
    require(letters >= 1 && letters <= largest - 2, operation, [&] {
        return "letters must be in [1," + std::to_string(largest - 2) + "], got " + std::to_string(letters);
    });
}
inline void require_example(const char* operation, index n) {
    require(n >= 1 && n <= copying::max_length, operation,
            [&] { return "n must be in [1,2^60] letters, got " + std::to_string(n); });
}

/// `$ s | s .`, whose letters are numbers first … first + n − 1 of a stream.
struct copying_example {
    const copying& problem;
    const random_stream& random;
    std::uint64_t first;
    index n;

    index size() const { return 2 * n + 3; }
    std::int32_t letter(index i) const {
        return static_cast<std::int32_t>(
            random.below(first + static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(problem.letters)));
    }
    std::int32_t operator[](index i) const {
        if (i == 0) return problem.begin_token();
        if (i <= n) return letter(i - 1);
        if (i == n + 1) return problem.separator_token();
        return i == 2 * n + 2 ? problem.end_token() : letter(i - n - 2);
    }
};

}  // namespace detail

inline void copying::operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
    detail::require_letters("copying", letters);
    require(shortest >= 1, "copying", [&] { return "shortest must be at least 1, got " + std::to_string(shortest); });
    require(longest >= shortest && longest <= max_length, "copying", [&] {
        return "longest must be in [shortest,2^60], got shortest " + std::to_string(shortest) + " and longest " +
               std::to_string(longest);
    });
    detail::require_rows("copying", tokens, targets, first);
    const index T = tokens.shape()[1];
    require(T >= 2 * shortest + 2, "copying", [&] {
        return "T must be at least " + std::to_string(2 * shortest + 2) +
               ", what an example of shortest = " + std::to_string(shortest) + " letters needs, got " +
               std::to_string(T);
    });
    const auto lengths = static_cast<std::uint64_t>(longest - shortest + 1);
    for (index b = 0; b < tokens.shape()[0]; ++b) {
        const random_stream random = detail::stream_of(seed, part, first + static_cast<std::uint64_t>(b));
        std::uint64_t next = 0;  // of the stream's numbers: an example's length, then its letters
        for (index at = 0; at < T;) {
            const index n = shortest + static_cast<index>(random.below(next, lengths));
            const detail::copying_example example{*this, random, next + 1, n};
            const bool counts = example.size() <= T + 1 - at;
            const index within = std::min(example.size(), T - at);
            for (index i = 0; i < within; ++i) {
                tokens(b, at + i) = example[i];
                const bool asked = counts && i > n && i + 1 < example.size();
                targets(b, at + i) = asked ? example[i + 1] : ignored_target;
            }
            at += within;
            next += 1 + static_cast<std::uint64_t>(n);
        }
    }
}

inline copying_test copying::test(index n) const {
    detail::require_example("copying::test", n);
    return {*this, n};
}

inline index copying_test::tokens() const {
    detail::require_example("copying_test", n);
    return 2 * n + 1;
}

inline void copying_test::operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
    detail::require_letters("copying_test", problem.letters);
    const index length = this->tokens();
    detail::require_rows("copying_test", tokens, targets, first);
    require(tokens.shape()[1] == length, "copying_test", [&] {
        return "T must be " + std::to_string(length) + ", what an example of " + std::to_string(n) +
               " letters needs, got " + std::to_string(tokens.shape()[1]);
    });
    for (index b = 0; b < tokens.shape()[0]; ++b) {
        const random_stream random =
            detail::stream_of(problem.seed, problem.part, first + static_cast<std::uint64_t>(b));
        const detail::copying_example example{problem, random, 1, n};  // number 0 is a length in training
        for (index t = 0; t < length; ++t) {
            tokens(b, t) = example[t];
            targets(b, t) = t > n ? example[t + 1] : ignored_target;
        }
    }
}

namespace detail {

/// The token with the largest logit, the first of them, after the last token of row b; `logits`, [B,T,V], as
/// the host sees them. As in cross_entropy there is none, −1, where a logit is not finite.
template <class Seen>
std::int32_t most_likely(const Seen& logits, const shape& extents, index b) {
    const index V = extents[2], row = ((b + 1) * extents[1] - 1) * V;
    index best = 0;
    for (index v = 0; v < V; ++v) {
        if (!math::is_finite(static_cast<double>(logits[row + v]))) return -1;
        if (logits[row + v] > logits[row + best]) best = v;
    }
    return static_cast<std::int32_t>(best);
}

}  // namespace detail

/// Accuracies of what a model writes by itself: it reads `$ s |` in one call, then its own most likely tokens
/// one by one, and these are compared with the n letters. Of the sequences 0 … sequences − 1 of `test`, at
/// most 256 at a time.
///
///     model.evaluate(theta, tokens, carry, nullptr, backend)   logits [B,T,V] from a models::model_carry on,
///                                                              as of sequence_model
///
/// In evaluate() the model reads the true letters. Up to the first mistake of a sequence the inputs are the
/// same: where a model's calls one by one have the logits of one call, the shares of whole sequences are
/// equal, and only those of letters differ. The authors' code measures the latter with the true letters
/// alone. argument_error unless sequences is at least 1, n is in [1,2^60] and V is the vocabulary of `test`.
template <class T, class Model, backend_for<T> Backend = default_backend>
accuracies generated_copies(const Model& model, const parameter_tree<T>& theta, const copying_test& test,
                            index sequences, Backend backend = Backend{}) {
    require(sequences >= 1, "generated_copies",
            [&] { return "sequences must be at least 1, got " + std::to_string(sequences); });
    const index n = test.n, length = test.tokens(), prompt = test.prompt(), V = test.classes();
    (void)checked_product(sequences, length, "generated_copies: sequences * length");
    const index batch = std::clamp<index>((index{1} << 16) / length, 1, 256);
    std::vector<answer> answers;
    for (index first = 0; first < sequences; first += batch) {
        const index B = std::min(batch, sequences - first);
        tensor<std::int32_t> truth({B, length}), targets({B, length}), given({B, prompt}), next({B, 1});
        test(truth.view(), targets.view(), static_cast<std::uint64_t>(first));
        for (index b = 0; b < B; ++b) std::copy_n(&truth(b, 0), prompt, &given(b, 0));
        const std::size_t offset = answers.size();
        answers.resize(offset + static_cast<std::size_t>(B * n));
        models::model_carry<T, array_of<T, Backend>> carry;
        const auto write = [&](const tensor<std::int32_t>& read, index i) {
            const auto logits = model.evaluate(theta, read.view(), carry, nullptr, backend);
            const shape expected{B, read.shape()[1], V};
            require(logits.shape() == expected, "generated_copies", [&] {
                return "the model's logits must be " + expected.to_string() + ", got " + logits.shape().to_string();
            });
            const auto seen = backend.seen(logits.size(), logits.data());
            for (index b = 0; b < B; ++b) {
                const std::int32_t written = detail::most_likely(seen, expected, b);
                const bool right = written == targets(b, prompt - 1 + i);
                answers[offset + static_cast<std::size_t>(b * n + i)] = right ? answer::right : answer::wrong;
                next(b, 0) = std::max(written, 0);
            }
        };
        write(given, 0);
        for (index i = 1; i < n; ++i) write(std::as_const(next), i);
    }
    return measure_accuracy(answers, sequences, n);
}

}  // namespace fprnn
