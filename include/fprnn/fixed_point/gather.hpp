#pragma once

#include <fprnn/operations/frame.hpp>

#include <algorithm>

/// Between a batch and the rows of a tile.
namespace fprnn::engine {

/// Between the sequences [B,T,D] of a batch, of which the tile's first one begins at `batch`, and the tile's
/// rows.
template <class T>
struct tile_rows {
    index tokens, tile, channels;
    T* batch;

    /// Row t·tile + s.
    FPRNN_BOTH T* operator[](index row) const { return batch + (row % tile * tokens + row / tile) * channels; }
};
/// What rows of a tile hold that belong to no sequence, or lie behind the end of one: zero, of cotangents; of
/// inputs a copy of a real token, so that these rows stay finite wherever the tokens do, and their zero
/// cotangents send nothing. A tile without any token holds zeros, at which values may not be finite.
enum class without_token { zero, repeats };

}  // namespace fprnn::engine

namespace fprnn::body {

/// From [B,T,D], stored as X, to the tile's time-major rows.
template <class T, class X = T>
struct gather {
    engine::tile_rows<const X> from;
    index sequences;
    engine::without_token places;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        T* y = to + r * from.channels;
        const index s = r % from.tile;
        const X* x = s < sequences ? from[r] : places == engine::without_token::repeats ? from[r - s] : nullptr;
        Team::each(from.channels, [&](auto lane) {
            using V = decltype(lane.load(y));
            lane.store(y, x ? lane.load(x) : V(T(0)));
        });
    }
};

/// And back, to be stored or to be added.
template <class T, class X = T>
struct scatter {
    const T* from;
    index sequences;
    bool adds;
    engine::tile_rows<X> to;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        if (r % to.tile >= sequences) return;
        const T* x = from + r * to.channels;
        X* y = to[r];
        Team::each(to.channels, [&](auto lane) {
            if (adds)
                lane.add(y, lane.load(x));
            else
                lane.store(y, lane.load(x));
        });
    }
};

}  // namespace fprnn::body

namespace fprnn::engine {

/// The tile's rows of x [B,T,D], and where they stand there.
template <class T, class Backend, class X>
void gather(frame<T, Backend>& f, view<const X> x, index first, index sequences, without_token places, T* rows) {
    const index tokens = x.shape()[1], D = x.shape()[2];
    f.each_row(f.rows(),
               body::gather<T, X>{{tokens, f.tile, D, x.data() + first * tokens * D}, sequences, places, rows});
    if (!f.lengths) return;
    const index longest = std::max_element(f.lengths, f.lengths + f.tile) - f.lengths;
    if (places == without_token::zero || f.lengths[longest] == 0) return f.clear_behind(0, f.rows(), D, rows);
    for (index r = 0; r < f.rows(); ++r) {
        const index s = r % f.tile, n = f.lengths[s], last = n > 0 ? (n - 1) * f.tile + s : longest;
        if (r / f.tile >= n) f.on.copy(D, rows + last * D, rows + r * D);
    }
}
/// And back: of the tokens that sequences have.
template <class T, class Backend, class X>
void scatter(frame<T, Backend>& f, const T* rows, bool adds, view<X> x, index first, index sequences) {
    const index tokens = x.shape()[1], D = x.shape()[2];
    if constexpr (has_tiles<Backend>) {
        if (f.lengths) {
            const index apart = f.tile * D;
            for (index q = 0; q < sequences; ++q) {
                const strided<const T> from{rows + q * D, apart};
                const strided<T> to{x.data() + (first + q) * tokens * D, D};
                if (adds)
                    f.each_row(f.lengths[q], body::add_rows<T>{D, from, {to}});
                else
                    f.each_row(f.lengths[q], body::copy<T>{D, from, to});
            }
            return;
        }
    }
    f.each_row(f.rows(),
               body::scatter<T, X>{rows, sequences, adds, {tokens, f.tile, D, x.data() + first * tokens * D}});
}

}  // namespace fprnn::engine
