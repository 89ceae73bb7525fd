#pragma once

#include <fprnn/ops/bodies.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <cstddef>

namespace fprnn {

/// Bodies of operations::recur (see fprnn/ops/bodies.hpp). Row s is sequence s.
namespace body {

template <class M, class T>
struct prepare_recurrence {
    typename M::sizes of;
    const T* raw;
    T* p;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        M::template prepare<Team, T>(of, raw, p);
    }
};
template <class M, class T>
struct prepare_recurrence_back {
    typename M::sizes of;
    const T *p, *p_bar;
    T* raw_bar;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        M::template prepare_back<Team, T>(of, p, p_bar, raw_bar);
    }
};

/// What the bodies of a recurrence's tokens have: rows of its inputs, of which token t's is t·tile rows
/// further.
template <class M, class T>
struct recurrence_rows {
    typename M::sizes of;
    index tokens, tile;
    const T* p;
    small_array<strided<const T>, M::inputs> x;

    FPRNN_BOTH recurring::rows<M, const T> at(index s) const {
        recurring::rows<M, const T> rows;
        for (std::size_t k = 0; k < M::inputs; ++k) rows.data[k] = x[k][s], rows.stride[k] = tile * x[k].stride;
        return rows;
    }
};

/// y of all tokens and the state behind them. Without y, the state alone.
template <class M, class T>
struct recur {
    recurrence_rows<M, T> rows;
    strided<const T> from;
    strided<T> to, y;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        const auto x = rows.at(s);
        const T* S = from[s];
        T* out = y[s];
        for (index t = 0; t < rows.tokens; ++t) {
            M::template step<Team, T>(rows.of, rows.p, x[t], S, to[s], out);
            S = to[s];
            if (out) out += rows.tile * y.stride;
        }
    }
};

/// The same of some channels, with what steps hoist, [tokens, tile] rows, where that is at hand.
template <recurrence_of_channels M, class T>
struct recur_channels {
    recur<M, T> all;
    index first, count;
    strided<const T> hoisted;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        const auto& rows = all.rows;
        const auto x = rows.at(s);
        const T* S = all.from[s];
        T *to = all.to[s], *out = all.y[s];
        for (index t = 0; t < rows.tokens; ++t) {
            if constexpr (hoisting_recurrence<M>)
                if (hoisted.data)
                    M::template step_hoisted<Team, T>(rows.of, first, count, hoisted[t * rows.tile + s], x[t], S, to,
                                                      out);
            if (!hoisted.data) M::template step_of<Team, T>(rows.of, first, count, rows.p, x[t], S, to, out);
            S = to;
            if (out) out += rows.tile * all.y.stride;
        }
    }
};

/// What steps of a token hoist. Row i is a token of a sequence.
template <class M, class T>
struct hoist_recurrence {
    recurrence_rows<M, T> rows;
    strided<T> to;

    template <class Team>
    FPRNN_BOTH void row(index i, index) const {
        small_array<const T*, M::inputs> x;
        for (std::size_t k = 0; k < M::inputs; ++k) x[k] = rows.x[k][i];
        M::template hoist<Team, T>(rows.of, rows.p, x, to[i]);
    }
};

/// The token before has not been added to S where its rows are not null.
template <class M, class T>
struct open_recurrence {
    recurrence_rows<M, T> rows;
    strided<T> S, p, g;
    small_array<strided<const T>, M::inputs> before;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        const auto awaited = at(before, s);
        M::template open<Team, T>(rows.of, rows.p, rows.at(s)[0], S[s], p[s], g[s], awaited[0] ? &awaited : nullptr);
    }
};
template <class M, class T>
struct close_recurrence {
    recurrence_rows<M, T> rows;
    strided<T> S;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        M::template close<Team, T>(rows.of, rows.at(s)[0], S[s]);
    }
};
template <class M, class T>
struct open_recurrence_back {
    recurrence_rows<M, T> rows;
    strided<const T> S_bar;
    strided<T> k, g;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        M::template open_back<Team, T>(rows.of, rows.p, rows.at(s)[0], S_bar[s], k[s], g[s]);
    }
};
/// y = p + g ⊙ u, of one row.
template <class T>
struct open_value {
    index channels;
    const T *p, *g, *u;
    T* y;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(y, lane.load(p) + lane.load(g) * lane.load(u)); });
    }
};
/// ū += g ⊙ ȳ + k, of one row.
template <class T>
struct open_value_back {
    index channels;
    const T *k, *g, *y_bar;
    T* u_bar;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.add(u_bar, lane.load(g) * lane.load(y_bar) + lane.load(k)); });
    }
};

/// ū alone of the adjoint: S_bar enters as the cotangent of the state behind all tokens and leaves as that of
/// the state before.
template <class M, class T>
struct recur_back_input {
    recurrence_rows<M, T> rows;
    strided<const T> y_bar;
    strided<T> S_bar, u_bar;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        if constexpr (opening_recurrence<M>) {
            const auto x = rows.at(s);
            for (index t = rows.tokens - 1; t >= 0; --t) {
                const index r = t * rows.tile + s;
                M::template back_input<Team, T>(rows.of, rows.p, x[t], y_bar[r], S_bar[s], u_bar[r]);
            }
        }
    }
};
template <class M, class T>
struct recur_back {
    recurrence_rows<M, T> rows;
    strided<const T> S, y_bar;
    strided<T> S_bar;
    receiver<T> p_bar;
    small_array<strided<T>, M::inputs> x_bar;
    strided<T> scratch;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        recurring::rows<M, T> to;
        for (std::size_t k = 0; k < M::inputs; ++k)
            to.data[k] = x_bar[k][s], to.stride[k] = rows.tile * x_bar[k].stride;
        recurring::back<M, Team, T>(rows.of, rows.tokens, rows.p, rows.at(s), S[s], y_bar[s], rows.tile * y_bar.stride,
                                    S_bar[s], to, p_bar.at(s, worker), scratch[worker]);
    }
};

}  // namespace body

}  // namespace fprnn
