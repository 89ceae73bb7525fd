#pragma once

#include <fprnn/ops/cross_entropy.hpp>
#include <fprnn/tasks/split.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace fprnn {

/// Modular arithmetic with brackets: read an expression such as (3--2)= and answer with its value modulo
/// `modulus`.
///
///     tokens     0 … m−1 the digits, then + - * ( ) = and padding, m being the modulus: m + 7 in all
///     targets    the value where the input is =, ignored_target elsewhere: one answer a sequence
///
/// A row of the authors has L = max(u, 5) tokens, u uniform on {shortest, …, longest}: an expression of
/// exactly L − 3 tokens, =, the answer and one padding. With the answer moved to the targets, tokens are the
/// expression, =, the digit 0 in the answer's place, which nothing asks for, and padding up to T. Expressions
/// of n tokens, with uniform digits d:
///
///     n = 1: d      n = 2: - d      n = 3: ( d )      n = 4: ( - d )
///     n ≥ 5: ( left op right ), the length of left uniform on {1, …, n − 4}, op uniform on the operators
///
/// The operators are + and -, and * where `multiplication` says so. The authors' published program has all
/// three; the published generator of Grazzi et al. 2025, whose numbers are the paper's baselines, has + and -
/// alone. Results with and without * cannot be compared: products are 0 more often, see
/// constant_answer_share.
///
/// Defaults are the authors' training, expressions of 2 to 37 tokens. They validate with shortest = 40 and
/// longest = 256, expressions of 37 to 253, and test in another program with 3 and 256. Source: the paper's
/// app. evaluation and its authors' program.
///
/// Data are made as they are asked for, and sequence s is a pure function of (modulus, multiplication,
/// shortest, longest, seed, part, s): the batch it comes in, the order of calls and other threads do not
/// change it, and a shorter T gives a prefix of it.
struct modular_arithmetic {
    static constexpr index max_modulus = 10000;
    static constexpr index max_row = 1 << 20;

    index modulus = 5;  ///< from 2 to max_modulus
    bool multiplication = true;
    index shortest = 3;  ///< of a row of the authors, 3 more than the expression; at least 1
    index longest = 40;  ///< of the same; from `shortest` to max_row
    fprnn::seed seed{};
    split part = split::train;

    std::string name() const {
        return "arithmetic-mod-" + std::to_string(modulus) + (multiplication ? "" : "-no-multiplication");
    }
    index vocabulary() const { return modulus + 7; }
    index classes() const { return modulus; }

    /// The least T that every sequence fits in: the longest expression and its =. argument_error when an
    /// option is out of its range.
    index tokens_needed() const {
        validate();
        return std::max(longest, least_row) - 2;
    }

    /// Overwrites row b of tokens [B,T] with sequence first + b, and of targets [B,T] with its
    /// answer. Sequences are numbered from 0 to 2^62 − 1. argument_error when the shapes are not both [B,T],
    /// T is below tokens_needed(), or an option is out of its range.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
        detail::require_rows("modular_arithmetic", tokens, targets, first);
        const index T = tokens.shape()[1], needed = tokens_needed();
        require(T >= needed, "modular_arithmetic", [&] {
            return "with longest = " + std::to_string(longest) + " sequences need T of at least " +
                   std::to_string(needed) + ", got T = " + std::to_string(T);
        });
        std::vector<std::int32_t> written;
        for (index b = 0; b < tokens.shape()[0]; ++b) {
            written.clear();
            writer w{*this, detail::stream_of(seed, part, first + static_cast<std::uint64_t>(b)), written};
            const index u = shortest + w.below(longest - shortest + 1);
            const index value = w.expression(std::max(u, least_row) - 3);
            const auto equals = static_cast<index>(written.size());
            w.write(equals_sign);
            w.digit(0);
            std::int32_t* const row = tokens.begin() + b * T;
            std::int32_t* const end = std::copy_n(written.begin(), std::min(equals + 2, T), row);
            std::fill(end, row + T, static_cast<std::int32_t>(modulus + padding));
            std::fill_n(targets.begin() + b * T, T, ignored_target);
            targets(b, equals) = static_cast<std::int32_t>(value);
        }
    }

private:
    static constexpr index least_row = 5;  // - d = answer padding

    // Tokens after the digits.
    enum symbol : index { plus, minus, times, open, close, equals_sign, padding };

    // Writes one sequence; its random numbers are used in the order of the tokens.
    struct writer {
        const modular_arithmetic& task;
        random_stream random;
        std::vector<std::int32_t>& tokens;
        std::uint64_t used = 0;

        index below(index n) { return static_cast<index>(random.below(used++, static_cast<std::uint64_t>(n))); }
        void write(symbol s) { tokens.push_back(static_cast<std::int32_t>(task.modulus + s)); }
        index digit(index d) {
            tokens.push_back(static_cast<std::int32_t>(d));
            return d;
        }

        // An expression of n tokens and its value in [0, modulus).
        index expression(index n) {
            const index m = task.modulus;
            if (n == 1) return digit(below(m));
            if (n == 2) {
                write(minus);
                return (m - digit(below(m))) % m;
            }
            write(open);
            const index value = n < 5 ? expression(n - 2) : operation(n);
            write(close);
            return value;
        }

        index operation(index n) {
            const index m = task.modulus, left_length = 1 + below(n - 4);
            const index left = expression(left_length);
            const symbol op = static_cast<symbol>(below(task.multiplication ? 3 : 2));
            write(op);
            const index right = expression(n - 3 - left_length);
            return (op == plus ? left + right : op == minus ? left + m - right : left * right) % m;
        }
    };

    void validate() const {
        const auto in = [](const char* option, index value, index least, index most) {
            require(value >= least && value <= most, "modular_arithmetic", [&] {
                return std::string(option) + " must be in [" + std::to_string(least) + "," + std::to_string(most) +
                       "], got " + std::to_string(value);
            });
        };
        in("modulus", modulus, 2, max_modulus);
        in("longest", longest, 1, max_row);
        in("shortest", shortest, 1, longest);
    }
};

/// An accuracy in [0,1] on a scale where guessing one of m = classes answers is 0 and no mistake is 1,
///
///     (a − 1/m) / (1 − 1/m),
///
/// which is negative below chance. argument_error unless accuracy is in [0,1] and classes at least 2.
inline double scaled_accuracy(double accuracy, index classes) {
    require(accuracy >= 0 && accuracy <= 1, "scaled_accuracy",
            [&] { return "accuracy must be in [0,1], got " + detail::number_text(accuracy); });
    require(classes >= 2, "scaled_accuracy",
            [&] { return "classes must be at least 2, got " + std::to_string(classes); });
    const double chance = 1 / static_cast<double>(classes);
    return (accuracy - chance) / (1 - chance);
}

/// An answer and how often it is right.
struct constant_answer {
    std::int32_t answer = 0;
    double share = 0;
};

/// The answer that is right most often, the least of equal ones, counted on sequences 0 … sequences−1 of the
/// task: what a model reaches that does not read its input, to be printed beside every accuracy. With modulus
/// 5 and rows of 40 to 256 the answer 0 is right for 0.306 of the sequences with *. Without * all answers are
/// equally frequent, so that the most frequent of 20,000 sequences is right for 0.204. argument_error unless
/// sequences is at least 1, or when an option of the task is out of its range.
inline constant_answer constant_answer_share(const modular_arithmetic& task, index sequences) {
    require(sequences >= 1, "constant_answer_share",
            [&] { return "sequences must be at least 1, got " + std::to_string(sequences); });
    const index T = task.tokens_needed(), batch = std::clamp<index>((index{1} << 16) / T, 1, sequences);
    tensor<std::int32_t> tokens({batch, T}), targets({batch, T});
    std::vector<index> count(static_cast<std::size_t>(task.classes()));
    for (index first = 0; first < sequences; first += batch) {
        task(tokens.view(), targets.view(), static_cast<std::uint64_t>(first));
        const index rows = std::min(batch, sequences - first);
        for (index i = 0; i < rows * T; ++i)
            if (targets[i] != ignored_target) ++count[static_cast<std::size_t>(targets[i])];
    }
    const auto most = std::max_element(count.begin(), count.end());
    return {static_cast<std::int32_t>(most - count.begin()),
            static_cast<double>(*most) / static_cast<double>(sequences)};
}

}  // namespace fprnn
