#pragma once

#include <fprnn/fixed_point/schedule.hpp>
#include <fprnn/fixed_point/token.hpp>
#include <fprnn/fixed_point/token_adjoint.hpp>
#include <fprnn/program/frame.hpp>

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
template <class Function, fixed_string Name, class E>
struct before_norm<norm_node<Function, Name, E>> {
    using function = Function;
    using operand = E;
};

/// Q v + (I − Q) y^{ℓ−1} of a compact mixer, nothing of which changes while a token is iterated but y.
template <class E>
inline constexpr bool is_compact_mix = false;
template <class Q, class V>
inline constexpr bool is_compact_mix<mix_node<Q, V, previous_node>> =
    compact_mixer<typename Q::mixer_type>&& joined<prepared_node<Q>, V> < dependence::current;

template <class List>
struct find_compact_mix {
    using type = void;
};
template <class E, class... Rest>
struct find_compact_mix<type_list<E, Rest...>> {
    using type = std::conditional_t<is_compact_mix<E>, E, typename find_compact_mix<type_list<Rest...>>::type>;
};

/// How the tokens of a program are reduced.
template <class Program>
struct reduction {
    using solved = typename solved_expression<typename Program::fixed_point>::type;
    using mix = typename find_compact_mix<typename Program::nodes>::type;
    using norm = typename before_norm<solved>::function;
    using operand = typename before_norm<solved>::operand;

    /// Between mixer and norm.
    template <class E>
    static constexpr bool inner = E::depends == dependence::current && !std::same_as<E, previous_node> &&
                                  !std::same_as<E, mix> && (std::same_as<solved, operand> || !std::same_as<E, solved>);

    static consteval bool possible() {
        if constexpr (std::same_as<mix, void>)
            return false;
        else
            return []<class... E>(type_list<E...>) {
                return ((!inner<E> || (rule<E>::affine && !contains<typename needs<E>::type, previous_node>)) && ...);
            }(typename Program::nodes{});
    }
};
template <class Program>
inline constexpr bool is_reducible = reduction<Program>::possible();

/// The tokens of a one-token chunk, each in R numbers: the first `sequences` of the tile's rows from `row` on. What is done for
/// all of them at once is done for the whole tile: loops over registers end in the same places for any number of sequences.
template <class F>
class reduced_tokens {
    using T = typename F::scalar;
    using team = typename F::team;
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
    static constexpr int R = mixer::rank;
    using iteration = kernel::token_iteration<team, R, typename parts::norm, T>;
    using backward = kernel::token_adjoint<team, R, typename parts::norm, T>;

public:
    /// Numbers of scratch that they need.
    static index scratch(index D) {
        return (2 * F::tile + R + 1) * D + mixer::scratch(D) +
               F::tile * std::max(iteration::numbers_of_a_token, backward::numbers_of_a_token);
    }

    reduced_tokens(F& f, index row, index sequences, T* scratch)
        : f_(f), row_(row), sequences_(sequences), D_(f.size.d_inner) {
        a_ = scratch;
        g_ = a_ + F::tile * D_;
        V_ = g_ + F::tile * D_;
        x_ = V_ + R * D_;
        mixer_scratch_ = x_ + D_;
        equations_ = mixer_scratch_ + mixer::scratch(D_);
    }

    /// Finds p and g of p + g ⊙ m, which stands between mixer and norm, by trying m = 0 and m = 1; a = p + g ⊙ Q v.
    void open() {
        T* m = f_.template value_at<mix>(row_);
        const T* x = f_.template value_at<typename parts::operand>(row_);
        try_inner(m, T(0));
        std::copy_n(x, F::tile * D_, a_);
        try_inner(m, T(1));
        team::each(F::tile * D_, [&](auto lane) { lane.store(g_, lane.load(x) - lane.load(a_)); });
        for (index s = 0; s < sequences_; ++s)
            mixer::template mix<team, T>(D_, q(s), v(s), nullptr, m + s * D_, mixer_scratch_);
        f_.work.mixer_applications += sequences_;
        team::each(F::tile * D_, [&](auto lane) { lane.add(a_, lane.load(g_) * lane.load(m)); });
    }
    /// y = y^ℓ, Picard's iterates. begun[s] = ℓ, or 0 where they did not settle in ell_max iterations.
    void iterate(double tolerance, int ell_max, int* begun) {
        iteration tokens(F::tile, equations_);
        for (index s = 0; s < sequences_; ++s) {
            mixer::template compact<team>(D_, q(s), S_);
            tokens.reduce(s, D_, q(s), S_, a_ + s * D_, g_ + s * D_, V_, weight(s), weight(s) + D_);
        }
        tokens.iterate(tolerance, ell_max);
        for (index s = 0; s < sequences_; ++s)
            begun[s] = tokens.expand(s, D_, q(s), a_ + s * D_, g_ + s * D_, weight(s), weight(s) + D_,
                                     f_.template value_at<previous_node>(row_ + s));
    }

    /// The way back through p + g ⊙ m is affine, too: k + g ⊙ x̄, found by trying x̄ = 0 and x̄ = 1.
    void open_adjoint() {
        back_inner(T(0), a_);
        back_inner(T(1), g_);
        team::each(F::tile * D_, [&](auto lane) { lane.store(g_, lane.load(g_) - lane.load(a_)); });
    }
    /// w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ at the point that the rows hold; residual[s] is relative, NaN where there is no w.
    void solve_adjoint(const T* delta, T* w, double* residual) {
        backward tokens(F::tile, equations_);
        for (index s = 0; s < sequences_; ++s) {
            mixer::template compact<team>(D_, q(s), S_);
            tokens.reduce(s, D_, q(s), S_, f_.template value_at<typename parts::operand>(row_ + s), g_ + s * D_, V_, x_,
                          weight(s), delta + s * D_, a_ + s * D_);
        }
        tokens.solve();
        for (index s = 0; s < sequences_; ++s) residual[s] = tokens.expand(s, D_, q(s), delta + s * D_, w + s * D_);
    }

private:
    /// The mixer of a token, its U first.
    const T* q(index s) const { return f_.template value_at<typename split<mix>::prepared>(row_ + s); }
    const T* weight([[maybe_unused]] index s) const {
        if constexpr (std::same_as<typename parts::norm, kernel::no_norm>)
            return q(s);  // not read
        else
            return f_.template parameters_of<typename parts::solved>();
    }
    const T* v([[maybe_unused]] index s) const {
        if constexpr (std::same_as<typename split<mix>::v, zero_node>)
            return nullptr;
        else
            return f_.template value_at<typename split<mix>::v>(row_ + s);
    }
    void try_inner(T* m, T value) {
        std::fill_n(m, F::tile * D_, value);
        for_each_node(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E>) rule<E>::value(f_, row_, F::tile);
        });
    }
    void back_inner(T value, T* m_bar) {
        for_each_node(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (std::same_as<E, typename parts::operand>)
                std::fill_n(f_.template bar_at<E>(row_), F::tile * D_, value);
            else if constexpr (parts::template inner<E> || std::same_as<E, mix>)
                std::fill_n(f_.template bar_at<E>(row_), F::tile * f_.template width_of<E>(), T(0));
        });
        for_each_node_reversed(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E>) rule<E>::template back<dependence::current>(f_, row_, F::tile);
        });
        std::copy_n(f_.template bar_at<mix>(row_), F::tile * D_, m_bar);
    }

    F& f_;
    index row_, sequences_, D_;
    kernel::square<T, R> S_;
    T *a_, *g_;  ///< [tile,D]; on the way back k in place of a
    T *V_, *x_, *mixer_scratch_;
    T* equations_;
};

/// Numbers of scratch that tokens of the program need to be reduced.
template <class F>
index token_scratch(index D) {
    if constexpr (is_reducible<typename F::program>)
        return reduced_tokens<F>::scratch(D);
    else
        return 0;
}

}  // namespace fprnn::engine
