#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

/// Bodies of operations::selective_scan (see fprnn/ops/bodies.hpp). Row s is sequence s; its tokens are shape.stride apart.
namespace fprnn::body {

/// to = e^from, of one row.
template <class T>
struct exponentials {
    index channels;
    const T* from;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        using math::exp;
        Team::each(channels, [&](auto lane) { lane.store(to, exp(lane.load(from))); });
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

template <class T>
struct selective_scan {
    kernel::selective_scan_shape shape;
    const T* A;
    strided<const T> delta, b, c, u;
    strided<T> H, y;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        kernel::selective_scan<Team, T>(shape, A, delta[s], b[s], c[s], u[s], H[s], y[s]);
    }
};
template <class T>
struct selective_scan_advance {
    kernel::selective_scan_shape shape;
    const T* A;
    strided<const T> delta, b, u, from;
    strided<T> to;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        kernel::selective_scan_advance<Team, T>(shape, A, delta[s], b[s], u[s], from[s], to[s]);
    }
};

/// The token before is awaited where its rows are not null.
template <class T>
struct selective_scan_open {
    index states, channels;
    const T* A;
    strided<const T> delta, b, c;
    strided<T> H, p, g;
    strided<const T> delta_before, b_before, u_before;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        const kernel::open_token<T> before{delta_before[s], b_before[s], u_before[s]};
        kernel::selective_scan_open<Team, T>(states, channels, A, delta[s], b[s], c[s], H[s], p[s], g[s],
                                             before.u ? &before : nullptr);
    }
};

template <class T>
struct selective_scan_close {
    index states, channels;
    strided<const T> delta, b, u;
    strided<T> H;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        kernel::selective_scan_close<Team, T>(states, channels, delta[s], b[s], u[s], H[s]);
    }
};

template <class T>
struct selective_scan_open_back {
    index states, channels;
    strided<const T> delta, b, c, H_bar;
    strided<T> k, g;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        kernel::selective_scan_open_back<Team, T>(states, channels, delta[s], b[s], c[s], H_bar[s], k[s], g[s]);
    }
};

template <class T>
struct selective_scan_back_input {
    kernel::selective_scan_shape shape;
    const T* A;
    strided<const T> delta, b, c, y_bar;
    strided<T> H_bar, u_bar;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        kernel::selective_scan_back_input<Team, T>(shape, A, delta[s], b[s], c[s], y_bar[s], H_bar[s], u_bar[s]);
    }
};

template <class T>
struct selective_scan_back {
    kernel::selective_scan_shape shape;
    const T* A;
    strided<const T> delta, b, c, u, H, y_bar;
    strided<T> H_bar;
    receiver<T> A_bar;
    strided<T> delta_bar, b_bar, c_bar, u_bar, scratch;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        kernel::selective_scan_back<Team, T>(shape, A, delta[s], b[s], c[s], u[s], H[s], y_bar[s], H_bar[s],
                                             A_bar.at(s, worker), delta_bar[s], b_bar[s], c_bar[s], u_bar[s],
                                             scratch[worker]);
    }
};

}  // namespace fprnn::body
