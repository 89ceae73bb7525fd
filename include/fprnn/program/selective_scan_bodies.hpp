#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <cstddef>
#include <utility>

/// Bodies of the selective scan's rule (see fprnn/program/bodies.hpp). Row s is sequence s; its tokens are shape.stride apart.
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

/// Where a chain in a scan's body has an argument: it is the scan's value, or its input u, or of a vector that all tokens share, or of rows
/// like u's.
enum class operand { scan, input, vector, rows };

/// to = F(a[0], a[1], …) of a scan's tokens, evaluated where it scans.
template <class F, class T, operand... From>
struct chain_of_scan {
    static constexpr bool is_chain = true;
    static constexpr std::size_t size = sizeof...(From);
    small_array<strided<const T>, size> a;
    strided<T> to;
    bool is_read = true;  ///< by others than the scan

    /// body(k) for the arguments that come from there.
    template <operand Where, class Body>
    FPRNN_BOTH static void each(Body&& body) {
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            ((From == Where ? body(k) : void()), ...);
        };
        unpacked(std::make_index_sequence<size>{});
    }

    /// Of sequence s, token after token in memory.
    template <class Team>
    FPRNN_BOTH void row(const kernel::selective_scan_shape& shape, index s) const {
        for (index t = 0; t < shape.tokens; ++t) {
            small_array<const T*, size> at;
            each<operand::vector>([&](std::size_t k) { at[k] = a[k].data; });
            const auto in_row = [&](std::size_t k) { at[k] = a[k][s] + t * shape.stride; };
            each<operand::scan>(in_row), each<operand::input>(in_row), each<operand::rows>(in_row);
            chain::row<F, Team, size, T>(shape.channels, at, to[s] + t * shape.stride);
        }
    }

    /// In registers: the arguments that are vectors or rows, of a channel.
    FPRNN_BOTH void load_vectors(index channel, T (&x)[size]) const {
        each<operand::vector>([&](std::size_t k) { x[k] = a[k].data[channel]; });
    }
    FPRNN_BOTH void load_rows(index at, T (&x)[size]) const {
        each<operand::rows>([&](std::size_t k) { x[k] = a[k].data[at]; });
    }
    template <class S>
    FPRNN_BOTH static S value(const T (&vectors)[size], const T (&rows)[size], S y, S u) {
        S x[size];
        each<operand::scan>([&](std::size_t k) { x[k] = y; });
        each<operand::input>([&](std::size_t k) { x[k] = u; });
        each<operand::vector>([&](std::size_t k) { x[k] = static_cast<S>(vectors[k]); });
        each<operand::rows>([&](std::size_t k) { x[k] = static_cast<S>(rows[k]); });
        return F::value(static_cast<const S*>(x));
    }
};

template <class T>
struct no_chain {
    static constexpr bool is_chain = false;
    static constexpr std::size_t size = 1;

    template <class Team>
    FPRNN_BOTH void row(const kernel::selective_scan_shape&, index) const {}
    FPRNN_BOTH void load_vectors(index, T (&)[1]) const {}
    FPRNN_BOTH void load_rows(index, T (&)[1]) const {}
};

/// `step` evaluates delta first, `behind` something of y afterwards.
template <class T, class Step, class Behind>
struct selective_scan {
    kernel::selective_scan_shape shape;
    const T* A;
    strided<const T> delta, b, c, u;
    strided<T> H, y;
    Step step;
    Behind behind;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        step.template row<Team>(shape, s);
        kernel::selective_scan<Team, T>(shape, A, delta[s], b[s], c[s], u[s], H[s], y[s]);
        behind.template row<Team>(shape, s);
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
