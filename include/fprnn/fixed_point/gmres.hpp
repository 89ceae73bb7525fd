#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/fixed_point/watch.hpp>

#include <limits>
#include <new>

/// GMRES for the adjoint equation of one token, w = δ + c + J_hᵀ w, whose map w ↦ c + J_hᵀ w is all that is
/// known: the solver asks for one vector after another. J_h has at most the rank of I − Q, so that rank + 1
/// applications give the solution to rounding, contraction or not.
/// (eq. hyper-grad, docs/decisions/0005-picard-forward-gmres-adjoint.md)
namespace fprnn::engine {

/// Vectors until it begins again.
inline constexpr int krylov_space = 20;

/// Of one equation, between two applications. Numbers alone, so that it may lie among them.
template <class T>
struct gmres_state {
    // The vector that has been asked for: zero, w, and the k-th of the basis.
    static constexpr int of_constant = 0, of_residual = 1, of_basis = 2;

    T question, k, applications, beginning, relative;
    T unit;                               ///< length at which vectors of the basis are asked for
    T H[krylov_space][krylov_space + 1];  ///< column k
    T cosine[krylov_space], sine[krylov_space], g[krylov_space + 1];
};
template <class T>
inline constexpr index gmres_numbers = sizeof(gmres_state<T>) / sizeof(T);

}  // namespace fprnn::engine

namespace fprnn::kernel {

template <class Team, class T>
FPRNN_BOTH T dot(index D, const T* a, const T* b) {
    return Team::template sum<1>(D, [&](auto lane) { return small_array{lane.load(a) * lane.load(b)}; })[0];
}
/// Sums of squares in which none of weight has underflowed, and none has overflowed.
template <class T>
struct exact_squares {
    using limits = std::numeric_limits<T>;
    static constexpr T least = limits::min() / limits::epsilon(), most = limits::max();
};
/// ‖a‖₂, also where squares of its numbers leave the range of T.
template <class Team, class T>
FPRNN_BOTH T length(index D, const T* a) {
    using math::abs, math::sqrt;
    const T squares = dot<Team>(D, a, a);
    if (exact_squares<T>::least <= squares && squares <= exact_squares<T>::most) return sqrt(squares);
    const T largest = Team::max(D, [&](auto lane) { return abs(lane.load(a)); });
    if (!math::is_finite(largest) || largest == T(0)) return largest;
    return largest * sqrt(Team::template sum<1>(D, [&](auto lane) {
               const auto x = lane.load(a) / decltype(lane.load(a))(largest);
               return small_array{x * x};
           })[0]);
}
/// y += by x
template <class Team, class T>
FPRNN_BOTH void add_scaled(index D, T by, const T* x, T* y) {
    Team::each(D, [&](auto lane) { lane.add(y, decltype(lane.load(x))(by) * lane.load(x)); });
}
template <class Team, class T>
FPRNN_BOTH void scale(index D, T by, T* x) {
    Team::each(D, [&](auto lane) { lane.store(x, lane.load(x) * decltype(lane.load(x))(by)); });
}

/// Numbers of an equation of D: its state, the basis, and c.
template <class T>
FPRNN_BOTH constexpr index gmres_size(index D) {
    return engine::gmres_numbers<T> + (engine::krylov_space + 2) * D;
}

/// One equation of D numbers. In `asked` is the vector that the next application is of; `own` has
/// gmres_size(D) numbers.
template <class Team, class T>
struct gmres {
    index D;
    T *asked, *own;
    const T* delta = nullptr;
    T* w = nullptr;
    double tolerance = 0;
    int ell_max = 0;
    engine::watch<T>* result = nullptr;

    FPRNN_BOTH void begin() const {
        T* const zero = asked;
        store(zero, [&](auto lane) { return decltype(lane.load(zero))(T(0)); });
        Team::once([&] {
            ::new (static_cast<void*>(own)) state;
            kept()->question = state::of_constant, kept()->applications = 0;
        });
    }
    /// Goes on when `answer` = c + J_hᵀ asked, until the result's watch ends.
    FPRNN_BOTH void go_on(const T* answer) const {
        const int question = static_cast<int>(kept()->question),
                  applications = static_cast<int>(kept()->applications) + 1;
        if (question == state::of_constant)
            take_constant(answer, applications);
        else if (question == state::of_residual)
            take_residual(answer, applications);
        else
            take_vector(answer, applications);
    }

private:
    using state = engine::gmres_state<T>;
    static constexpr int most = engine::krylov_space;

    FPRNN_BOTH state* kept() const { return reinterpret_cast<state*>(own); }
    FPRNN_BOTH T* basis(int k) const { return own + engine::gmres_numbers<T> + k * D; }
    FPRNN_BOTH T* constant() const { return basis(most + 1); }
    template <class Body>
    FPRNN_BOTH void store(T* to, const Body& body) const {
        Team::each(D, [&](auto lane) { lane.store(to, body(lane)); });
    }
    FPRNN_BOTH void ask(int question, const T* of, int applications, T unit = T(1)) const {
        store(asked, [&](auto lane) { return lane.load(of) * decltype(lane.load(of))(unit); });
        Team::once(
            [&] { kept()->question = static_cast<T>(question), kept()->applications = static_cast<T>(applications); });
    }
    FPRNN_BOTH void finish(status s, int applications, T relative) const {
        Team::once([&] { result->finish(s, applications, static_cast<double>(relative)); });
    }

    FPRNN_BOTH void take_constant(const T* answer, int applications) const {
        store(constant(), [&](auto lane) { return lane.load(answer); });
        store(w, [&](auto lane) { return lane.load(delta) + lane.load(answer); });
        const T beginning = length<Team>(D, static_cast<const T*>(w));
        // J_hᵀ v of an answer c + J_hᵀ v: beside a large c it keeps its digits where v is as large.
        Team::once([&] { kept()->beginning = beginning, kept()->unit = beginning > T(1) ? beginning : T(1); });
        ask(state::of_residual, w, applications);
    }
    /// v₀ = r/|r| of r = δ + c + J_hᵀ w − w, unless w is near enough.
    FPRNN_BOTH void take_residual(const T* answer, int applications) const {
        T* const v = basis(0);
        store(v, [&](auto lane) { return lane.load(delta) + lane.load(answer) - lane.load(w); });
        const T residual = length<Team>(D, static_cast<const T*>(v));
        const T beginning = kept()->beginning, relative = beginning > 0 ? residual / beginning : T(0);
        if (!math::is_finite(residual)) return finish(status::nonfinite, applications, relative);
        if (static_cast<double>(relative) < tolerance || residual == T(0))
            return finish(status::converged, applications, relative);
        // A vector of the basis and the residual of what it gives are two more.
        if (applications + 2 > ell_max) return finish(status::max_iterations, applications, relative);
        scale<Team>(D, T(1) / residual, v);
        Team::once([&] { kept()->relative = relative, kept()->g[0] = residual, kept()->k = 0; });
        ask(state::of_basis, v, applications, kept()->unit);
    }
    /// The basis grows by v_k − J_hᵀ v_k.
    FPRNN_BOTH void take_vector(const T* answer, int applications) const {
        using math::abs, math::sqrt;
        int k = static_cast<int>(kept()->k);
        T* const next = basis(k + 1);
        const T unit = kept()->unit;
        store(next, [&](auto lane) {
            const auto image = lane.load(answer) - lane.load(constant());
            return lane.load(basis(k)) - image / decltype(lane.load(answer))(unit);
        });
        T column[most + 1];
        for (int i = 0; i <= k; ++i) {
            column[i] = dot<Team>(D, static_cast<const T*>(next), static_cast<const T*>(basis(i)));
            add_scaled<Team>(D, -column[i], static_cast<const T*>(basis(i)), next);
        }
        const T below = sqrt(dot<Team>(D, static_cast<const T*>(next), static_cast<const T*>(next)));
        for (int i = 0; i < k; ++i) {
            const T a = column[i], b = column[i + 1], cosine = kept()->cosine[i], sine = kept()->sine[i];
            column[i] = cosine * a + sine * b;
            column[i + 1] = cosine * b - sine * a;
        }
        const T hypotenuse = sqrt(column[k] * column[k] + below * below);
        bool is_over = !(hypotenuse > T(0));
        if (!is_over) {
            const T cosine = column[k] / hypotenuse, sine = below / hypotenuse, g = kept()->g[k];
            column[k] = hypotenuse;
            Team::once([&] {
                for (int i = 0; i <= k; ++i) kept()->H[k][i] = column[i];
                kept()->cosine[k] = cosine, kept()->sine[k] = sine;
                kept()->g[k] = cosine * g, kept()->g[k + 1] = -sine * g;
                kept()->k = static_cast<T>(k + 1);
            });
            ++k;
            is_over = abs(sine * g) < T(0.5) * static_cast<T>(tolerance) * kept()->beginning || !(below > T(0));
        }
        if (is_over || k == most || applications + 1 >= ell_max) return take_solution(k, applications);
        scale<Team>(D, T(1) / below, next);
        ask(state::of_basis, next, applications, kept()->unit);
    }
    /// w += the smallest residual's Σ g_i v_i.
    FPRNN_BOTH void take_solution(int k, int applications) const {
        if (k == 0) return finish(status::diverged, applications, kept()->relative);  // I − J_hᵀ is singular
        T g[most];
        for (int i = k - 1; i >= 0; --i) {
            T a = kept()->g[i];
            for (int j = i + 1; j < k; ++j) a -= kept()->H[j][i] * g[j];
            g[i] = a / kept()->H[i][i];
        }
        for (int i = 0; i < k; ++i) add_scaled<Team>(D, g[i], static_cast<const T*>(basis(i)), w);
        ask(state::of_residual, w, applications);
    }
};

}  // namespace fprnn::kernel

namespace fprnn::body {

/// The equations of a tile's rows. `own` [n, gmres_size(channels)] is what each has between two applications.
template <class T>
struct begin_gmres {
    index channels;
    T *asked, *own;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        kernel::gmres<Team, T>{channels, asked + s * channels, own + s * kernel::gmres_size<T>(channels)}.begin();
    }
};
template <class T>
struct go_on_gmres {
    index channels;
    T *asked, *own;
    const T *answer, *delta;
    T* w;
    double tolerance;
    int ell_max;
    engine::watches<T> of;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        engine::watch<T>& result = of.one[s];
        if (!result.running()) return;
        const index at = s * channels;
        const kernel::gmres<Team, T> equation{channels,   asked + at, own + s * kernel::gmres_size<T>(channels),
                                              delta + at, w + at,     tolerance,
                                              ell_max,    &result};
        equation.go_on(answer + at);
        Team::once([&] { of.running[s] = result.running() ? T(1) : T(0); });
    }
};

}  // namespace fprnn::body
