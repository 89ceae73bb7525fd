#pragma once

#include <fprnn/cuda/affine.hpp>
#include <fprnn/cuda/team.hpp>

/// How a tile learns the map of all tokens before it while other tiles are in work.
///                                                                     (docs/decisions/0011-scan-on-a-gpu.md)
///
/// The chunks of a sequence form a Fenwick tree: block k holds the map of the chunks [k & (k + 1), k],
///
///     chunk     0   1   2   3   4   5   6   7
///     blocks   [0]     [2]     [4]     [6]
///              [ 1   ]         [ 5   ]
///              [ 3           ]
///
/// and the chunks before k are the blocks k − 1, (k & (k − 1)) − 1 …, one for each digit of k that is 1:
/// seven is 6, 5, 3. Which maps are composed, and in which order, k alone says.
namespace fprnn::cuda {

/// What teams tell each other. `taken` and `ready` are zero when the kernel begins.
template <class S>
struct look_back {
    counter* taken;    ///< one: tiles in work
    flag* ready;       ///< [chunks, bands]
    affine<S>* block;  ///< [chunks, columns]
    index chunks, bands, columns;
};

/// The tile of chunk k, and this thread's column in it. One thread a column is its `reader`.
struct tile_place {
    index k, band, column;
    bool reader;
};

namespace detail {

/// The map of the chunks [to, from), where these are whole blocks. Each thread waits for some of them, on
/// behalf of all.
template <team Team, class S>
FPRNN_BOTH affine<S> gather(const Team& team, const look_back<S>& between, const tile_place& p, index from, index to) {
    affine<S> x;
    if (from == to) return x;
    int number = 0;
    for (index i = from; i > to; i &= i - 1, ++number)
        if (number % team.size() == team.rank()) team.wait(between.ready[(i - 1) * between.bands + p.band]);
    team.barrier();
    if (p.reader)
        for (index i = from; i > to; i &= i - 1) x = x * between.block[(i - 1) * between.columns + p.column];
    return x;
}

}  // namespace detail

/// The map of all chunks before a tile, given that of the tile itself, which others learn. Only readers
/// receive it, and only their `own` counts.
template <team Team, class S>
FPRNN_BOTH affine<S> look_back_from(const Team& team, const look_back<S>& between, const tile_place& p, affine<S> own) {
    const index begin = p.k & (p.k + 1);
    const affine<S> near = detail::gather(team, between, p, p.k, begin);
    // Before waiting for what lies further back: so no chain of tiles that wait for each other is longer than
    // log₂ chunks.
    if (p.k + 1 < between.chunks) {
        if (p.reader) between.block[p.k * between.columns + p.column] = own * near;
        team.barrier();
        if (team.rank() == 0) team.publish(between.ready[p.k * between.bands + p.band]);
    }
    return near * detail::gather(team, between, p, begin, index(0));
}

}  // namespace fprnn::cuda
