#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fprnn {

/// How many tokens the sequences of a batch x [B,T,d_in] have: B numbers of [0,T], or none where each has T.
/// The numbers are the caller's and must last for the call.
///
///     const std::vector<index> n{5, 7, 0};
///     auto sol = layer(theta, x, n);                 // x [3,7,d_in]
///
/// x behind the end of a sequence is ignored, NaN included. Value, carry, convergence and gradients are those
/// of the sequence alone, to the bit but for three cases: the stop is a `share` of the batch; an adjoint of
/// the user's own reads the change of all sequences; the last chunk, with C > 1, has one token, which a call
/// for that sequence alone solves as a one-token chunk, to the same tolerance. The value is zero behind the
/// end. The carry out is the state at the sequence's own end.
class lengths {
public:
    lengths(std::span<const index> n) : of_(n) {}
    lengths(const std::vector<index>& n) : of_(n) {}

    std::span<const index> of_sequences() const { return of_; }
    bool empty() const { return of_.empty(); }

    /// Errors: not a number a sequence of [B,T], numbers out of [0,T].
    void require_of(index B, index T, const char* operation) const {
        if (empty()) return;
        const auto count = static_cast<index>(of_.size());
        require(count == B, operation, [&] {
            return "lengths must be " + std::to_string(B) + " numbers, one a sequence, or none, got " +
                   std::to_string(count);
        });
        for (index b = 0; b < B; ++b) {
            const index n = of_[static_cast<std::size_t>(b)];
            require(n >= 0 && n <= T, operation, [&] {
                return "lengths[" + std::to_string(b) + "] must lie in [0," + std::to_string(T) + "], got " +
                       std::to_string(n);
            });
        }
    }

private:
    std::span<const index> of_;
};

namespace engine {

/// The lengths of a batch, tile by tile. A tile is solved for as many tokens as its longest sequence has.
class tile_lengths {
public:
    /// Where `alike`, all tiles have as many tokens.
    tile_lengths(std::span<const index> lengths, index tokens, index tile, index tiles, index chunk, bool alike)
        : tile_(tile), most_(tokens) {
        if (lengths.empty()) return;
        places_.assign(static_cast<std::size_t>(tile * tiles), 0);
        std::copy(lengths.begin(), lengths.end(), places_.begin());
        for (index i = 0; i < tiles; ++i) {
            const auto first = places_.begin() + i * tile;
            tokens_.push_back(std::max<index>(1, *std::max_element(first, first + tile)));
        }
        if (alike) std::fill(tokens_.begin(), tokens_.end(), *std::max_element(tokens_.begin(), tokens_.end()));
        // Chunks of one token are solved in another way. A neighbour's length shall not make one of what is
        // none in T tokens.
        for (index& n : tokens_)
            if (chunk > 1 && n % chunk == 1 && n < tokens) ++n;
    }
    /// [tile], zero where there is no sequence; null where all have all tokens.
    const index* of(index i) const { return places_.empty() ? nullptr : places_.data() + i * tile_; }
    index tokens(index i) const { return tokens_.empty() ? most_ : tokens_[static_cast<std::size_t>(i)]; }
    /// Tiles that are laid out differently.
    index layouts() const { return std::max<index>(1, static_cast<index>(tokens_.size())); }

private:
    index tile_, most_;
    std::vector<index> places_, tokens_;
};

}  // namespace engine

}  // namespace fprnn
