#pragma once

#include <fprnn/cuda/look_back.hpp>
#include <fprnn/ops/scan.hpp>

#include <algorithm>

/// The diagonal scan over [B,T,D] in one pass over memory.             (docs/decisions/0011-scan-on-a-gpu.md)
///
/// A column is one channel of one sequence. A tile is `width` neighbouring columns of a chunk of tokens; a
/// team executes it, `items` tokens a thread:
///
///                columns →
///     row 0      0  1  2 …        thread = row · width + lane; each holds tokens row · items … of a column
///     row 1      w  …
///
/// The tokens of a thread compose to one affine map, these to that of the tile, and maps of chunks are what
/// teams tell each other. All compositions are in an order that the shape alone fixes.
namespace fprnn::cuda {

/// How [B,T,D] is cut into tiles.
struct tiling {
    index tokens, channels, columns;
    int width, log_width;  ///< of a tile: a power of two that divides the team's size, and which
    index chunk;           ///< tokens of a tile
    index chunks, bands;   ///< tiles along time and across columns
    index tiles;

    /// For teams of `threads`, a power of two. Errors: sizes that do not fit 64 bits.
    tiling(index B, index T, index D, int threads, int items)
        : tokens(T), channels(D), columns(checked_product(B, D, "scan")), width(1), log_width(0) {
        // A warp reads a whole line of a row where there are as many columns. Threads that a short sequence
        // leaves without tokens take further columns.
        while (width < std::min(threads, 32) && width < columns) width *= 2;
        while (width < threads && width < columns && items * (threads / width / 2) >= T) width *= 2;
        while (1 << log_width < width) ++log_width;
        chunk = index(items) * (threads / width);
        chunks = std::max<index>(1, T / chunk + (T % chunk != 0));
        bands = columns / width + (columns % width != 0);
        tiles = checked_product(chunks, bands, "scan");
    }
};

/// The order in which a scan goes over the tokens of [B,T,D].
struct scan_order {
    index tokens, channels;
    bool reversed;

    /// Where token t of a column stands, and how far the next one is.
    FPRNN_BOTH index at(index column, index t) const {
        return (column / channels * tokens + (reversed ? tokens - 1 - t : t)) * channels + column % channels;
    }
    FPRNN_BOTH index stride() const { return reversed ? -channels : channels; }
};

/// A token as a scan finds it: number t of its order, which stands at `at`.
struct spot {
    index column, t, at;
};

namespace detail {

struct later_after_earlier {
    template <class S>
    FPRNN_BOTH affine<S> operator()(const affine<S>& earlier, const affine<S>& later) const {
        return later * earlier;
    }
};

/// The maps of a tile's threads, column by column, in shared memory, where after each line one place stays
/// free: so maps of 8 bytes, and of 16 where a tile has 32 columns, are read and written by rows and by
/// columns without waiting for a bank.
template <class S>
struct column_maps {
    static constexpr int line = sizeof(affine<S>) < 128 ? 128 / sizeof(affine<S>) : 1;
    FPRNN_BOTH static constexpr std::size_t places(std::size_t threads) { return threads + threads / line; }

    affine<S>* memory;
    int rows;

    FPRNN_BOTH affine<S>& at(int i) const { return memory[i + i / line]; }
    FPRNN_BOTH affine<S>& at(int column, int row) const { return at(column * rows + row); }

    /// Of each thread: its tokens and those before them in its column.
    template <team Team>
    FPRNN_BOTH void compose(const Team& team) const {
        affine<S>& x = at(team.rank());
        x = team.scan(x, later_after_earlier{}, rows);
    }
};

}  // namespace detail

/// Bytes of shared memory that a team of `threads` needs.
template <class S>
constexpr std::size_t scan_shared_bytes(int threads) {
    const auto n = static_cast<std::size_t>(threads);
    return 16 + detail::column_maps<S>::places(n) * sizeof(affine<S>) + n * sizeof(S);
}

/// Takes tiles until there are none. A `Recurrence` says what a token is:
///
///     state, token                    S; what a thread loads of one token, by default one that changes
///                                     nothing
///     order                           forward or reversed
///     carry(column)                   the state before the first token
///     load(spot)                      a token
///     step(token)                     its affine map
///     emit(spot, token, before)       writes what belongs to the token, given the state before it
///     finish(column, state)           the state after the last token
template <int Items, team Team, class Recurrence>
FPRNN_BOTH void scan_tiles(const Team& team, const tiling& s, const look_back<typename Recurrence::state>& between,
                           const Recurrence& recurrence) {
    using S = typename Recurrence::state;
    using token = typename Recurrence::token;
    auto* next_tile = static_cast<index*>(team.shared());  // two: others may still read the one of this tile
    const int rows = team.size() >> s.log_width, row = team.rank() >> s.log_width, lane = team.rank() & (s.width - 1);
    const detail::column_maps<S> maps{reinterpret_cast<affine<S>*>(static_cast<unsigned char*>(team.shared()) + 16),
                                      rows};
    auto* carries = reinterpret_cast<S*>(maps.memory + maps.places(static_cast<std::size_t>(team.size())));

    if (team.rank() == 0) next_tile[0] = team.take(*between.taken);
    team.barrier();
    for (int turn = 0;; turn ^= 1) {
        const index tile = next_tile[turn];
        if (tile >= s.tiles) return;
        // All columns of one chunk before the next chunk: what a tile waits for was begun long before.
        const index k = tile / s.bands, band = tile % s.bands;
        const index column = band * s.width + lane, first = k * s.chunk + index(row) * Items;
        const index left = column < s.columns ? s.tokens - first : 0;
        const int mine = left <= 0 ? 0 : left < Items ? static_cast<int>(left) : Items;  // tokens that there are

        // Once a tile: a division of 64 bits costs more than a token.
        const index start = mine > 0 ? recurrence.order.at(column, first) : 0, stride = recurrence.order.stride();
        const auto nth = [&](int i) { return spot{column, first + i, start + i * stride}; };
        token x[Items];
        detail::each_item<Items>(mine, [&](int i) { x[i] = recurrence.load(nth(i)); });
        index taken = 0;
        if (team.rank() == 0) taken = team.take(*between.taken);  // known when it is needed
        affine<S> own;
        FPRNN_UNROLL for (int i = 0; i < Items; ++i) own = recurrence.step(x[i]) * own;

        maps.at(lane, row) = own;
        if (team.rank() == 0) next_tile[turn ^ 1] = taken;
        if (rows > 1) {
            team.barrier();
            maps.compose(team);
            team.barrier();
        }
        const tile_place place{k, band, column, row == 0 && column < s.columns};
        const affine<S> past = look_back_from(team, between, place, maps.at(lane, rows - 1));
        if (place.reader) carries[lane] = past(recurrence.carry(column));
        affine<S> before;
        if (row > 0) before = maps.at(lane, row - 1);
        team.barrier();

        S h = before(carries[lane]);
        detail::each_item<Items>(mine, [&](int i) {
            recurrence.emit(nth(i), x[i], h);
            h = recurrence.step(x[i])(h);
        });
        if (k + 1 == s.chunks && row == rows - 1 && column < s.columns) recurrence.finish(column, h);
    }
}

/// h_t = λ_t ⊙ h_{t−1} + u_t. T is how numbers are stored, S how they are added up. carry_in and carry_out
/// [B,D] may be null; h may be u.
template <class T, class S>
struct scan_recurrence {
    using state = S;
    static constexpr bool is_adjoint = false;
    struct token {
        T lambda = T(1), u = T(0);
    };
    scan_order order;
    const T *lambda, *u, *carry_in;
    T *h, *carry_out;

    FPRNN_BOTH S carry(index column) const { return carry_in ? static_cast<S>(carry_in[column]) : S(0); }
    FPRNN_BOTH token load(const spot& p) const { return {lambda[p.at], u[p.at]}; }
    FPRNN_BOTH affine<S> step(const token& x) const { return {static_cast<S>(x.lambda), static_cast<S>(x.u)}; }
    FPRNN_BOTH void emit(const spot& p, const token& x, S before) const { h[p.at] = static_cast<T>(step(x)(before)); }
    FPRNN_BOTH void finish(index column, S after) const {
        if (carry_out) carry_out[column] = static_cast<T>(after);
    }
};

/// The adjoint, from the last token to the first:
///
///     g_t = ḣ_t + r_{t+1};   ū_t += g_t;   λ̄_t += g_t ⊙ conj(h_{t−1})
///
/// Its state is r_t = conj(λ_t) ⊙ g_t = conj(λ_t) ⊙ (r_{t+1} + ḣ_t), whose map needs nothing of another
/// token; r begins as the cotangent of the carry out and ends as that of the carry in. carry, carry_bar_out
/// and the results may be null.
template <class T, class S, update Update>
struct scan_back_recurrence {
    using state = S;
    static constexpr bool is_adjoint = true;
    struct token {
        T lambda = T(1), h_bar = T(0), h_before = T(0);
    };
    scan_order order;  ///< of the adjoint
    const T *lambda, *h, *carry_in, *h_bar, *carry_bar_out;
    T *lambda_bar, *u_bar, *carry_bar_in;

    FPRNN_BOTH S carry(index column) const { return carry_bar_out ? static_cast<S>(carry_bar_out[column]) : S(0); }
    FPRNN_BOTH token load(const spot& p) const {
        const T* h_before = p.t + 1 < order.tokens ? h + p.at + order.stride()
                            : carry_in             ? carry_in + p.column
                                                   : nullptr;
        return {lambda[p.at], h_bar[p.at], h_before ? *h_before : T(0)};
    }
    FPRNN_BOTH affine<S> step(const token& x) const {
        using kernel::conjugate;
        const S lambda_t = conjugate(static_cast<S>(x.lambda));
        return {lambda_t, lambda_t * static_cast<S>(x.h_bar)};
    }
    FPRNN_BOTH void emit(const spot& p, const token& x, S before) const {
        using kernel::conjugate;
        const S g = static_cast<S>(x.h_bar) + before;
        put(u_bar, p.at, g);
        put(lambda_bar, p.at, g * conjugate(static_cast<S>(x.h_before)));
    }
    FPRNN_BOTH void finish(index column, S after) const { put(carry_bar_in, column, after); }

private:
    FPRNN_BOTH static void put(T* to, index at, S value) {
        if (!to) return;
        if constexpr (Update == update::accumulate) value = static_cast<S>(to[at]) + value;
        to[at] = static_cast<T>(value);
    }
};

}  // namespace fprnn::cuda
