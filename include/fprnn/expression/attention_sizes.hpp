#pragma once

#include <fprnn/expression/width.hpp>

#include <algorithm>
#include <string>

namespace fprnn {

/// What attention works with: H heads, K channels of a head of q and k, V of one of v, and room for `context`
/// tokens.
///
/// The carry of a sequence is the number of its tokens so far, their keys and their values, each as [blocks
/// of 64 tokens, H, channels of a head, tokens of the block], where the last block has as many tokens as the
/// context leaves it.
struct attention_sizes {
    static constexpr index block = 64;

    index heads, K, V, context;

    index carry() const {
        return checked_sum(1, checked_product(context, checked_product(heads, K + V, "carry"), "carry"), "carry");
    }
    /// Tokens that the block beginning with token `first` has room for.
    index tokens_of_block(index first) const { return std::min(block, context - first); }
    /// Tokens of the whole blocks in which so many tokens stand.
    index tokens_of_blocks(index tokens) const { return std::min(context, (tokens + block - 1) / block * block); }

    /// Errors: heads that do not divide q or v, channels that cannot be turned in pairs, a context that a
    /// carry in float cannot count.
    static void check(const dims& size, index q, index v, bool is_rotary) {
        const auto parted = [&](const char* name, index width) {
            require(width % size.heads == 0, "attention", [&] {
                return std::string(name) + " must have a multiple of " + std::to_string(size.heads) +
                       " channels, the heads, got " + std::to_string(width);
            });
        };
        parted("q", q);
        parted("v", v);
        const index K = q / size.heads;
        require(!is_rotary || K % 2 == 0, "attention", [&] {
            return "q must have an even number of channels for each head where positions are rotary, got " +
                   std::to_string(K);
        });
        constexpr index most = index(1) << 24;
        require(size.context <= most, "attention", [&] {
            return "context must be at most " + std::to_string(most) + ", got " + std::to_string(size.context);
        });
    }
    /// Errors: a carry that counts what cannot be, no room for so many more tokens in sequence b.
    void check_room(index b, double count, index tokens) const {
        const double room = static_cast<double>(context) - count;
        require(count >= 0 && room >= 0 && count == static_cast<double>(static_cast<index>(count)), "attention", [&] {
            return "carry must begin with a number of tokens in [0," + std::to_string(context) + "] in sequence " +
                   std::to_string(b) + ", got " + detail::number_text(count);
        });
        require(static_cast<double>(tokens) <= room, "attention", [&] {
            return "x must have at most " + std::to_string(static_cast<index>(room)) + " tokens in sequence " +
                   std::to_string(b) + ", behind " + std::to_string(static_cast<index>(count)) + " in a context of " +
                   std::to_string(context) + ", got " + std::to_string(tokens);
        });
    }
};

}  // namespace fprnn
