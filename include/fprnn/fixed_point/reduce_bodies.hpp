#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/fixed_point/token.hpp>
#include <fprnn/fixed_point/token_adjoint.hpp>
#include <fprnn/fixed_point/watch.hpp>

#include <cstdint>
#include <limits>

/// Bodies of one-token chunks that are solved in R numbers: see fprnn/fixed_point/token_norm.hpp.
namespace fprnn::body {

/// How far out an affine function is asked for its slope. At the farthest place slopes of up to 2^40 have not
/// overflowed.
template <class T>
struct slope_places {
    static constexpr T far = T(std::uint64_t{1} << 40), farthest = std::numeric_limits<T>::max() / far;
};
/// Where a function that is b at zero is asked: so far out that its value has the slope's digits beside those
/// of b.
template <class T, class W>
FPRNN_BOTH W place_of_slope(W b) {
    using places = slope_places<T>;
    using math::abs, math::maximum, math::select;
    const W size = maximum(abs(b), W(T(1)));
    return select(size < W(places::farthest / places::far), size * W(places::far), W(places::farthest));
}
/// to = where each of a row's functions, which are b at zero, is asked for its slope.
template <class T>
struct places_of_slope {
    index channels;
    const T* b;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(to, place_of_slope<T>(lane.load(b))); });
    }
};
/// to = the slopes of a row's functions, which are b at zero and a at those places.
template <class T>
struct slope {
    index channels;
    const T *a, *b;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        Team::each(channels, [&](auto lane) {
            const auto at_zero = lane.load(b);
            lane.store(to, (lane.load(a) - at_zero) / place_of_slope<T>(at_zero));
        });
    }
};

/// What tokens share while they are solved in R numbers. Row s is token s.
template <class Mixer, class Norm, class T>
struct tokens_in_numbers {
    static constexpr int R = Mixer::rank;

    index channels, tokens;
    strided<const T> q;
    const T *weight, *bias;  ///< of the norm
    strided<T> g, V;         ///< V [workers], R rows and one more
    T* equations;

    template <class Team>
    FPRNN_BOTH kernel::square<T, R> compact(index s) const {
        kernel::square<T, R> S;
        Mixer::template compact<Team>(channels, q[s], S);
        return S;
    }
    template <class Team>
    FPRNN_BOTH auto iteration() const {
        return kernel::token_iteration<Team, R, Norm, T>(tokens, equations);
    }
    template <class Team>
    FPRNN_BOTH auto adjoint() const {
        return kernel::token_adjoint<Team, R, Norm, T>(tokens, equations);
    }
};

template <class Mixer, class Norm, class T>
struct reduce_token {
    tokens_in_numbers<Mixer, Norm, T> all;
    strided<T> a;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        all.template iteration<Team>().reduce(s, all.channels, all.q[s], all.template compact<Team>(s), a[s], all.g[s],
                                              all.V[worker], all.weight, all.bias);
    }
};

/// All tokens side by side, as one row.
template <class Mixer, class Norm, class T>
struct iterate_tokens {
    tokens_in_numbers<Mixer, Norm, T> all;
    double tolerance;
    int ell_max;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        all.template iteration<Team>().iterate(tolerance, ell_max);
    }
};

/// y = y^ℓ, from which its watch goes on.
template <class Mixer, class Norm, class T>
struct expand_token {
    tokens_in_numbers<Mixer, Norm, T> all;
    strided<const T> a;
    strided<T> y;
    engine::watches<T> watches;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        const int ell = all.template iteration<Team>().expand(s, all.channels, all.q[s], a[s], all.g[s], all.weight,
                                                              all.bias, y[s]);
        Team::once([&] { watches.one[s].go_on_from(ell); });
    }
};

/// At the point x that the norm was applied to.
template <class Mixer, class Norm, class T>
struct reduce_adjoint {
    tokens_in_numbers<Mixer, Norm, T> all;
    strided<const T> x, delta, k;

    template <class Team>
    FPRNN_BOTH void row(index s, index worker) const {
        T* V = all.V[worker];
        all.template adjoint<Team>().reduce(s, all.channels, all.q[s], all.template compact<Team>(s), x[s], all.g[s], V,
                                            V + Mixer::rank * all.channels, all.weight, delta[s], k[s]);
    }
};

template <class Mixer, class Norm, class T>
struct solve_adjoints {
    tokens_in_numbers<Mixer, Norm, T> all;

    template <class Team>
    FPRNN_BOTH void row(index, index) const {
        all.template adjoint<Team>().solve();
    }
};

/// w, and the end of its watch where the equations have a solution.
template <class Mixer, class Norm, class T>
struct expand_adjoint {
    tokens_in_numbers<Mixer, Norm, T> all;
    double tolerance;
    strided<const T> delta;
    strided<T> w;
    engine::watches<T> watches;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        const double residual = all.template adjoint<Team>().expand(s, all.channels, all.q[s], delta[s], w[s]);
        Team::once([&] {
            if (!(residual < tolerance)) return;
            watches.one[s].finish(status::converged, 1, residual);
            watches.running[s] = T(0);
        });
    }
};

}  // namespace fprnn::body
