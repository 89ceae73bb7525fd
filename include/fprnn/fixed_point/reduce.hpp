#pragma once

#include <fprnn/fixed_point/schedule.hpp>
#include <fprnn/fixed_point/token.hpp>
#include <fprnn/program/frame.hpp>

#include <algorithm>
#include <concepts>

/// From a program to the equation of one of its tokens in R numbers, when it has one: see fixed_point/token.hpp.
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

/// One token of a frame in R numbers.
template <class F>
class reduced_token {
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

public:
    /// Numbers of scratch that a token needs.
    static index scratch(index D) { return (R + 2) * D + mixer::scratch(D); }

    reduced_token(F& f, index row, T* scratch)
        : f_(f), row_(row), D_(f.size.d_inner), q_(f.template value_at<typename split<mix>::prepared>(row)) {
        a_ = scratch;
        g_ = a_ + D_;
        V_ = g_ + D_;
        mixer_scratch_ = V_ + R * D_;
        mixer::template compact<team>(D_, q_, S_);
    }

    /// y = y^ℓ, Picard's iterate; returns ℓ, or 0 when it did not settle in ell_max iterations.
    int iterate(double tolerance, int ell_max) {
        T* m = f_.template value_at<mix>(row_);
        T* x = f_.template value_at<typename parts::operand>(row_);
        // p and g of p + g ⊙ m are found by trying m = 0 and m = 1.
        try_inner(m, T(0));
        std::copy_n(x, D_, a_);
        try_inner(m, T(1));
        team::each(D_, [&](auto lane) { lane.store(g_, lane.load(x) - lane.load(a_)); });
        mixer::template mix<team, T>(D_, q_, v(), nullptr, m, mixer_scratch_);
        ++f_.work.mixer_applications;
        team::each(D_, [&](auto lane) { lane.add(a_, lane.load(g_) * lane.load(m)); });
        form_V();
        return kernel::iterate_token<team, R, typename parts::norm>(
            D_, q_, S_, a_, V_, weight(), weight() + D_, tolerance, ell_max, f_.template value_at<previous_node>(row_));
    }

    /// w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ at the point that the rows hold; returns the relative residual.
    double solve_adjoint(const T* delta, T* w) {
        // The way back through p + g ⊙ m is affine, too: k + g ⊙ x̄, found by trying x̄ = 0 and x̄ = 1.
        T* k = a_;
        back_inner(T(0), k);
        back_inner(T(1), g_);
        team::each(D_, [&](auto lane) { lane.store(g_, lane.load(g_) - lane.load(k)); });
        form_V();
        return kernel::solve_token_adjoint<team, R, typename parts::norm>(
            D_, q_, S_, f_.template value_at<typename parts::operand>(row_), V_, weight(), delta, k, w);
    }

private:
    void form_V() {
        team::each(D_, [&](auto lane) {
            for (index j = 0; j < R; ++j) lane.store(V_ + j * D_, lane.load(g_) * lane.load(q_ + j * D_));
        });
    }
    const T* weight() const {
        if constexpr (std::same_as<typename parts::norm, kernel::no_norm>)
            return q_;  // not read
        else
            return f_.template parameters_of<typename parts::solved>();
    }
    const T* v() const {
        if constexpr (std::same_as<typename split<mix>::v, zero_node>)
            return nullptr;
        else
            return f_.template value_at<typename split<mix>::v>(row_);
    }
    void try_inner(T* m, T value) {
        std::fill_n(m, D_, value);
        for_each_node(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E>) rule<E>::value(f_, row_, 1);
        });
    }
    void back_inner(T value, T* m_bar) {
        for_each_node(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E> || std::same_as<E, mix>)
                std::fill_n(f_.template bar_at<E>(row_), f_.template width_of<E>(), T(0));
        });
        T* bar = f_.template bar_at<typename parts::operand>(row_);
        team::each(D_, [&](auto lane) { lane.add(bar, decltype(lane.load(bar))(value)); });
        for_each_node_reversed(typename F::program::nodes{}, [&]<class E>() {
            if constexpr (parts::template inner<E>) rule<E>::template back<dependence::current>(f_, row_, 1);
        });
        std::copy_n(f_.template bar_at<mix>(row_), D_, m_bar);
    }

    F& f_;
    index row_, D_;
    const T* q_;  ///< the mixer, its U first
    kernel::square<T, R> S_;
    T *a_, *g_, *V_, *mixer_scratch_;
};

/// Numbers of scratch that a token of the program needs to be reduced.
template <class F>
index token_scratch(index D) {
    if constexpr (is_reducible<typename F::program>)
        return reduced_token<F>::scratch(D);
    else
        return 0;
}

}  // namespace fprnn::engine
