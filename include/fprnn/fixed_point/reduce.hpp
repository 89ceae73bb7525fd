#pragma once

#include <fprnn/fixed_point/token.hpp>
#include <fprnn/fixed_point/token_adjoint.hpp>
#include <fprnn/fixed_point/watch.hpp>
#include <fprnn/graph/lower.hpp>
#include <fprnn/graph/reduce.hpp>
#include <fprnn/program/rules/mixers.hpp>

#include <algorithm>
#include <concepts>

/// From a program to the equation of one of its tokens in R numbers, when it has one: see fixed_point/token_norm.hpp.
namespace fprnn::engine {

template <class>
struct solved_expression {
    using type = void;
};
template <class E>
struct solved_expression<fixed_point_node<E>> {
    using type = E;
};

/// What an expression is before its norm, if it ends with one.
template <class E>
struct before_norm {
    using function = kernel::no_norm;
    using operand = E;
};
template <class Function, auto Name, class E>
struct before_norm<norm_node<Function, Name, E>> {
    using function = Function;
    using operand = E;
};

/// How the tokens of a program are reduced.
template <class Program>
inline constexpr graph::reduction reduction_of = graph::reduce(graph::graph_of<typename Program::root>);
template <class Program>
inline constexpr bool is_reducible = bool(reduction_of<Program>);
/// Of a program whose tokens are.
template <class Program>
struct reduction {
    using solved = typename solved_expression<typename Program::fixed_point>::type;
    using mix = node_at<typename Program::nodes, reduction_of<Program>.mix>;
    using norm = typename before_norm<solved>::function;
    using operand = typename before_norm<solved>::operand;

    /// Between mixer and norm.
    template <class E>
    static constexpr bool inner = graph::is_between(graph::graph_of<typename Program::root>, reduction_of<Program>,
                                                    Program::template slot<E>);
};

}  // namespace fprnn::engine

namespace fprnn::body {

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

namespace fprnn::engine {

/// The tokens of a one-token chunk, each in R numbers: the first `sequences` of the tile's rows from `row` on. What is done for
/// all of them at once is done for the whole tile: loops over registers end in the same places for any number of sequences.
template <class F>
class reduced_tokens {
    using T = typename F::scalar;
    using parts = reduction<typename F::program>;
    template <class>
    struct split;
    template <class Q, class V, class W>
    struct split<mix_node<Q, V, W>> {
        using mixer = typename Q::mixer_type;
        using prepared = prepared_node<Q>;
        using v = V;
    };
    using mix = typename parts::mix;
    using mixer = typename split<mix>::mixer;
    using norm = typename parts::norm;
    static constexpr int R = mixer::rank;
    static constexpr index numbers_of_a_token =
        std::max(kernel::token_iteration<serial_team<T>, R, norm, T>::numbers_of_a_token,
                 kernel::token_adjoint<serial_team<T>, R, norm, T>::numbers_of_a_token);

public:
    /// Numbers of scratch that they need.
    static index scratch(const F& f) {
        const index D = f.size.d_inner;
        return 2 * f.tile * D + f.on.workers(f.tile) * ((R + 1) * D + mixer::scratch(D)) + f.tile * numbers_of_a_token;
    }

    reduced_tokens(F& f, index row, index sequences, T* scratch)
        : f_(f), row_(row), sequences_(sequences), D_(f.size.d_inner) {
        const index workers = f.on.workers(f.tile);
        a_ = {scratch, D_};
        g_ = {a_[f.tile], D_};
        V_ = {g_[f.tile], (R + 1) * D_};
        mixer_scratch_ = {V_[workers], mixer::scratch(D_)};
        equations_ = mixer_scratch_[workers];
    }

    /// Finds p and g of p + g ⊙ m, which stands between mixer and norm, by trying m = 0 and m = 1; a = p + g ⊙ Q v.
    void open() {
        const index n = f_.tile * D_;
        T* m = f_.template value_at<mix>(row_);
        const T* x = f_.template value_at<typename parts::operand>(row_);
        try_inner(m, T(0));
        f_.on.copy(n, x, a_.data);
        try_inner(m, T(1));
        f_.one_row(body::difference<T>{n, x, a_.data, g_.data});
        f_.each_row(sequences_, body::mix<mixer, T>{D_, q(), v(), {}, {m, D_}, mixer_scratch_});
        f_.work.mixer_applications += sequences_;
        f_.one_row(body::add_product<T>{n, g_.data, m, a_.data});
    }
    /// y = y^ℓ, Picard's iterates. The watches go on from ℓ, or from the beginning where it did not settle in ell_max iterations.
    void iterate(double tolerance, int ell_max, const watches<T>& of) {
        const auto all = in_numbers();
        f_.each_row(sequences_, body::reduce_token<mixer, norm, T>{all, a_});
        f_.one_row(body::iterate_tokens<mixer, norm, T>{all, tolerance, ell_max});
        f_.each_row(sequences_,
                    body::expand_token<mixer, norm, T>{all, a_, {f_.template value_at<previous_node>(row_), D_}, of});
    }

    /// The way back through p + g ⊙ m is affine, too: k + g ⊙ x̄, found by trying x̄ = 0 and x̄ = 1.
    void open_adjoint() {
        back_inner(T(0), a_.data);
        back_inner(T(1), g_.data);
        f_.one_row(body::difference<T>{f_.tile * D_, g_.data, a_.data, g_.data});
    }
    /// w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ at the point that the rows hold. The watches end where it has been found.
    void solve_adjoint(double tolerance, const T* delta, T* w, const watches<T>& of) {
        const auto all = in_numbers();
        const strided<const T> x{f_.template value_at<typename parts::operand>(row_), D_};
        f_.each_row(sequences_, body::reduce_adjoint<mixer, norm, T>{all, x, {delta, D_}, a_});
        f_.one_row(body::solve_adjoints<mixer, norm, T>{all});
        f_.each_row(sequences_, body::expand_adjoint<mixer, norm, T>{all, tolerance, {delta, D_}, {w, D_}, of});
    }

private:
    body::tokens_in_numbers<mixer, norm, T> in_numbers() {
        if (sequences_ < f_.tile) f_.on.fill(f_.tile * numbers_of_a_token, equations_, 0);
        const T *weight = nullptr, *bias = nullptr;
        if constexpr (!std::same_as<norm, kernel::no_norm>) {
            weight = f_.template parameters_of<typename parts::solved>();
            bias = weight + D_;
        }
        return {D_, f_.tile, q(), weight, bias, g_, V_, equations_};
    }
    /// The mixers of the tokens, U first.
    strided<const T> q() const { return f_.template values<typename split<mix>::prepared>(row_); }
    strided<const T> v() const {
        if constexpr (std::same_as<typename split<mix>::v, zero_node>)
            return {};
        else
            return f_.template values<typename split<mix>::v>(row_);
    }
    void try_inner(T* m, T value) {
        f_.on.fill(f_.tile * D_, m, value);
        for_each_node(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E>) rule<E>::value(f_, row_, f_.tile);
        });
    }
    void back_inner(T value, T* m_bar) {
        for_each_node(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (std::same_as<E, typename parts::operand>)
                f_.on.fill(f_.tile * D_, f_.template bar_at<E>(row_), value);
            else if constexpr (parts::template inner<E> || std::same_as<E, mix>)
                f_.on.fill(f_.tile * f_.template width_of<E>(), f_.template bar_at<E>(row_), 0);
        });
        for_each_node_reversed(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E>) rule<E>::template back<dependence::current>(f_, row_, f_.tile);
        });
        f_.on.copy(f_.tile * D_, f_.template bar_at<mix>(row_), m_bar);
    }

    F& f_;
    index row_, sequences_, D_;
    strided<T> a_, g_;  ///< [tile,D]; on the way back k in place of a
    strided<T> V_, mixer_scratch_;
    T* equations_;
};

/// Numbers of scratch that tokens of the program need to be reduced.
template <class F>
index token_scratch(const F& f) {
    if constexpr (is_reducible<typename F::program>)
        return reduced_tokens<F>::scratch(f);
    else
        return 0;
}

}  // namespace fprnn::engine
