#pragma once

#include <fprnn/tasks/split.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fprnn {

/// A finite group whose elements are the numbers 0 … order−1, element 0 being the identity.
///
/// Its name is one of S1 … S7 (symmetric), A1 … A7 (alternating), Z1 … Z1000 (cyclic), or a direct product of
/// these such as "A4xZ5", of at most 10,000 elements; any other text is an argument_error.
///
/// Order of the elements: a permutation p is the word p(0) p(1) … p(n−1), and words are in lexicographic
/// order, in A_n those of the even permutations alone; Z_n counts up; the first factor of a product is its
/// most significant digit, so (i,j,k) is (i·|G₂| + j)·|G₃| + k.
class finite_group {
public:
    static constexpr index max_order = 10000;

    explicit finite_group(std::string_view name) : name_(name) {
        std::string_view rest = name;
        for (;;) {
            const std::size_t cut = rest.find('x');
            append(rest.substr(0, cut));
            if (cut == std::string_view::npos) break;
            rest.remove_prefix(cut + 1);
        }
    }

    const std::string& name() const { return name_; }
    index order() const { return order_; }
    index identity() const { return 0; }

    /// a·b: in Z_n the sum, in S_n and A_n the permutation i ↦ b(a(i)), that is a first and b after it.
    index compose(index a, index b) const {
        require_element(a);
        require_element(b);
        index product = 0;
        for (const factor& f : factors_) product += f.stride * f.compose(f.digit(a), f.digit(b));
        return product;
    }

    /// The element with inverse(a)·a = a·inverse(a) = identity.
    index inverse(index a) const {
        require_element(a);
        index result = 0;
        for (const factor& f : factors_) result += f.stride * f.inverse(f.digit(a));
        return result;
    }

private:
    static constexpr int max_degree = 7;
    static constexpr int max_modulus = 1000;
    using word = std::array<std::uint8_t, max_degree>;

    struct factor {
        char family;  // 'S', 'A' or 'Z'
        int n;
        index order;
        index stride;             // product of the orders of the factors after this one
        std::vector<word> words;  // the permutations in order; empty for Z_n

        index digit(index element) const { return element / stride % order; }

        index compose(index i, index j) const {
            if (family == 'Z') return (i + j) % order;
            const word& p = words[static_cast<std::size_t>(i)];
            const word& q = words[static_cast<std::size_t>(j)];
            word product{};
            for (std::size_t k = 0; k < degree(); ++k) product[k] = q[p[k]];
            return position(product);
        }

        index inverse(index i) const {
            if (family == 'Z') return (order - i) % order;
            const word& p = words[static_cast<std::size_t>(i)];
            word result{};
            for (std::size_t k = 0; k < degree(); ++k) result[p[k]] = static_cast<std::uint8_t>(k);
            return position(result);
        }

        // The lexicographic rank by the Lehmer code. Words 2k and 2k+1 differ by exchanging the last two
        // letters, so one of them is even: the even permutations' own rank is half of it.
        index position(const word& p) const {
            index rank = 0;
            for (std::size_t k = 0; k < degree(); ++k) {
                index smaller = 0;
                for (std::size_t later = k + 1; later < degree(); ++later) smaller += p[later] < p[k];
                rank = rank * static_cast<index>(degree() - k) + smaller;
            }
            return family == 'A' ? rank / 2 : rank;
        }

        std::size_t degree() const { return static_cast<std::size_t>(n); }
    };

    void append(std::string_view text) {
        factor f = parse(text);
        if (f.family == 'Z') {
            f.order = f.n;
        } else {
            std::string letters(f.degree(), '\0');
            std::iota(letters.begin(), letters.end(), '\0');
            do {
                word p{};
                for (std::size_t k = 0; k < letters.size(); ++k) p[k] = static_cast<std::uint8_t>(letters[k]);
                if (f.family == 'S' || even(p, f.degree())) f.words.push_back(p);
            } while (std::next_permutation(letters.begin(), letters.end()));
            f.order = static_cast<index>(f.words.size());
        }
        for (factor& before : factors_) before.stride *= f.order;
        order_ *= f.order;
        require(order_ <= max_order, "finite_group", [&] {
            return "'" + name_ + "' has more than the " + std::to_string(max_order) + " elements that are accepted";
        });
        factors_.push_back(std::move(f));
    }

    factor parse(std::string_view text) const {
        const char family = text.empty() ? '\0' : text.front();
        const int limit = family == 'S' || family == 'A' ? max_degree : family == 'Z' ? max_modulus : 0;
        int n = 0;
        for (std::size_t i = 1; i < text.size() && n <= limit; ++i) {
            const bool digit = text[i] >= (i == 1 ? '1' : '0') && text[i] <= '9';
            n = digit ? 10 * n + (text[i] - '0') : limit + 1;
        }
        require(n >= 1 && n <= limit, "finite_group", [&] {
            return "'" + name_ +
                   "' is not a known group; expected S1 to S7, A1 to A7, Z1 to Z1000 or a direct product "
                   "of these such as A4xZ5" +
                   (text == name_ ? "" : ", got the factor '" + std::string(text) + "'");
        });
        return {family, n, 1, 1, {}};
    }

    static bool even(const word& p, std::size_t degree) {
        bool result = true;
        for (std::size_t i = 0; i < degree; ++i)
            for (std::size_t j = i + 1; j < degree; ++j) result ^= p[i] > p[j];
        return result;
    }

    void require_element(index a) const {
        require(a >= 0 && a < order_, "finite_group", [&] {
            return "the elements of " + name_ + " are 0 to " + std::to_string(order_ - 1) + ", got " +
                   std::to_string(a);
        });
    }

    std::string name_;
    std::vector<factor> factors_;
    index order_ = 1;
};

/// The word problem of a group: read x_0 x_1 …, after every token name the product so far,
///
///     acc_0 = x_0,   acc_t = acc_{t−1} · x_t,
///
/// with tokens that are uniform on the group. Tokens and targets are both elements, so vocabulary and classes
/// are the group's order. Source: the paper's state-tracking task, app. evaluation; Merrill et al. 2024.
///
/// Data are made as they are asked for, and sequence s is a pure function of (group, seed, part, s): the
/// batch it comes in, the order of calls and other threads do not change it, and a shorter T gives a prefix
/// of it.
struct word_problem {
    using split = fprnn::split;

    finite_group group;
    fprnn::seed seed{};
    split part = split::train;
    /// The authors' layout: the first token and its target are both the number after the last element, and
    /// elements follow.
    bool begin_token = false;

    std::string name() const { return group.name(); }
    index vocabulary() const { return group.order() + begin_token; }
    index classes() const { return vocabulary(); }

    /// Overwrites row b of tokens [B,T] with sequence first + b, and of targets [B,T] with its
    /// products. Sequences are numbered from 0 to 2^62 − 1. argument_error when the shapes are not both
    /// [B,T]. This is what train() and evaluate() call.
    void operator()(view<std::int32_t> tokens, view<std::int32_t> targets, std::uint64_t first) const {
        detail::require_rows("word_problem", tokens, targets, first);
        const auto order = static_cast<std::uint64_t>(group.order());
        for (index b = 0; b < tokens.shape()[0]; ++b) {
            const random_stream random = detail::stream_of(seed, part, first + static_cast<std::uint64_t>(b));
            if (begin_token && tokens.shape()[1] > 0) tokens(b, 0) = targets(b, 0) = static_cast<std::int32_t>(order);
            index product = group.identity();
            for (index t = begin_token; t < tokens.shape()[1]; ++t) {
                const auto x = static_cast<index>(random.below(t - begin_token, order));
                product = group.compose(product, x);
                tokens(b, t) = static_cast<std::int32_t>(x);
                targets(b, t) = static_cast<std::int32_t>(product);
            }
        }
    }
};

}  // namespace fprnn
