#pragma once

#include <fprnn/mixers/householder.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/rms_norm.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <array>

/// The kernel bodies of the library as tests call them: `sizes`(D) of arrays x, of random numbers, and
/// run<Team>(D, x), which leaves the same numbers in all of them whatever the team, but for the order of
/// sums.
namespace bodies {

using fprnn::index;
namespace chain = fprnn::chain;
namespace kernel = fprnn::kernel;

/// An elementwise chain and its adjoint.
struct elementwise {
    using gate = chain::multiply<chain::apply<chain::silu_function, chain::argument<0>>,
                                 chain::subtract<chain::argument<1>, chain::constant<1>>>;
    static std::array<index, 6> sizes(index D) { return {D, D, D, D, D, D}; }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        chain::row<gate, Team, 2, T>(D, {x[0], x[1]}, x[2]);
        chain::row_back<gate, Team, 2, T>(D, {x[0], x[1]}, x[3], {x[4], x[5]});
    }
};

struct layer_norm {
    static std::array<index, 8> sizes(index D) { return {D, D, D, D, D, D, D, D}; }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        fprnn::layer_norm_function::value<Team, T>(D, x[0], x[1], x[2], x[3]);
        fprnn::layer_norm_function::back<Team, T>(D, x[0], x[1], x[4], x[5], x[6], x[7]);
    }
};

struct rms_norm {
    static std::array<index, 6> sizes(index D) { return {D, D, D, D, D, D}; }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        fprnn::rms_norm_function::value<Team, T>(D, x[0], x[1], nullptr, x[2]);
        fprnn::rms_norm_function::back<Team, T>(D, x[0], x[1], x[3], x[4], x[5], nullptr);
    }
};

struct l2_normalise {
    static std::array<index, 4> sizes(index D) { return {D, D, D, D}; }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        fprnn::l2_normalise_function::value<Team, T>(D, fprnn::held<Team>(D, static_cast<const T*>(x[0])), x[1]);
        fprnn::l2_normalise_function::back<Team, T>(D, x[0], x[2], x[3]);
    }
};

/// Of a row that is finite, and of one that is not.
struct largest {
    static std::array<index, 3> sizes(index D) { return {D, 1, 1}; }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        const T finite = Team::max(D, [&](auto lane) { return lane.load(x[0]); });
        const T infinite = Team::max(D, [&](auto lane) {
            const T v = lane.load(x[0]);
            return lane.channel == 2 ? T(INFINITY) : v;
        });
        Team::once([&] {
            x[1][0] = finite;
            x[2][0] = infinite != infinite ? T(1) : T(0);
        });
    }
};

/// From raw numbers to their cotangents in one go.
template <class Mixer>
struct mixer {
    static std::array<index, 12> sizes(index D) {
        constexpr index R = Mixer::rank;
        return {R * D, R, Mixer::size(D), D, D, D, Mixer::scratch(D), D, D, Mixer::size(D), R * D, R};
    }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        const T* raw[] = {x[0], x[1]};
        T* raw_bar[] = {x[10], x[11]};
        T *q = x[2], *scratch = x[6], *q_bar = x[9];
        const T *v = x[3], *w = x[4], *out_bar = x[5];
        Mixer::template prepare<Team, T>(D, raw, q);
        Mixer::template mix<Team, T>(D, q, v, w, x[7], scratch);
        Mixer::template mix_back<Team, T>(D, q, out_bar, x[7], x[8], scratch);
        Mixer::template mix_back_q<Team, T>(D, q, v, w, out_bar, q_bar, scratch);
        Mixer::template prepare_back<Team, T>(D, raw, q, q_bar, raw_bar);
        // What has been left there is not said.
        for (index at = 0; at + D <= Mixer::scratch(D); at += D)
            Team::each(D, [&](auto lane) { lane.store(scratch + at, decltype(lane.load(scratch))(T(0))); });
    }
};

struct scan {
    static constexpr index tokens = 7;
    static std::array<index, 8> sizes(index D) {
        const index n = tokens * D;
        return {n, n, D, n, n, D, n, n};
    }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        const T *lambda = x[0], *carry = x[2], *h = x[3], *h_bar = x[4];
        kernel::scan<Team, T>(tokens, D, D, lambda, x[1], carry, x[3]);
        kernel::scan_back<Team>(tokens, D, D, lambda, h, carry, h_bar, x[5], x[6], x[7]);
    }
};

/// A whole sequence, and what iterations need of its adjoint.
struct selective_scan {
    static constexpr index tokens = 3, N = 5;
    static std::array<index, 9> sizes(index D) {
        const index n = tokens * D, m = tokens * N;
        return {N * D, n, m, m, n, N * D, n, N * D, n};
    }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        const kernel::selective_scan_shape s{tokens, N, D, D, N};
        kernel::selective_scan<Team, T>(s, x[0], x[1], x[2], x[3], x[4], x[5], x[6]);
        kernel::selective_scan_back_input<Team, T>(s, x[0], x[1], x[2], x[3], x[6], x[7], x[8]);
    }
};

/// A token that is opened and closed, after one that is still awaited; and the adjoint of a token.
struct selective_scan_token {
    static constexpr index N = 5;
    static std::array<index, 18> sizes(index D) {
        const index ND = N * D;
        return {ND, D, N, N, D, D, N, D, ND, D, D, D, ND, ND, D, N, N, 3 * D};
    }
    template <class Team, class T>
    FPRNN_BOTH static void run(index D, T* const* x) {
        const T *A = x[0], *delta = x[1], *b = x[2], *c = x[3], *u = x[4], *y_bar = x[11];
        T* H = x[8];
        const kernel::open_token<T> before{x[5], x[6], x[7]};
        kernel::selective_scan_open<Team, T>(N, D, A, delta, b, c, H, x[9], x[10], &before);
        kernel::selective_scan_close<Team, T>(N, D, delta, b, u, H);
        kernel::selective_scan_back_token<Team, T>(N, D, A, delta, b, c, u, H, y_bar, x[12], x[13], x[14], x[15], x[16],
                                                   x[17], x[17] + D);
    }
};

}  // namespace bodies

/// For TEST_CASE_TEMPLATE, first those that hold rows.
#define FPRNN_HOLDING_BODIES                                                                                \
    bodies::layer_norm, bodies::rms_norm, bodies::l2_normalise, bodies::mixer<fprnn::householder_mixer<1>>, \
        bodies::mixer<fprnn::householder_mixer<4, 2>>
#define FPRNN_ROW_BODIES                                                                              \
    FPRNN_HOLDING_BODIES, bodies::elementwise, bodies::largest, bodies::scan, bodies::selective_scan, \
        bodies::selective_scan_token
