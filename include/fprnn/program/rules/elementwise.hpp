#pragma once

#include <fprnn/program/frame.hpp>

#include <algorithm>

namespace fprnn {

namespace detail {

/// The degree of a chain as a polynomial of the arguments whose bits are set in Mask; 2 for everything that is not affine.
template <class F, unsigned Mask>
inline constexpr int degree = 0;
template <int I, unsigned Mask>
inline constexpr int degree<chain::argument<I>, Mask> = static_cast<int>(Mask >> I & 1u);
template <class A, class B, unsigned Mask>
inline constexpr int degree<chain::add<A, B>, Mask> = std::max(degree<A, Mask>, degree<B, Mask>);
template <class A, class B, unsigned Mask>
inline constexpr int degree<chain::subtract<A, B>, Mask> = std::max(degree<A, Mask>, degree<B, Mask>);
template <class A, class B, unsigned Mask>
inline constexpr int degree<chain::multiply<A, B>, Mask> = degree<A, Mask> + degree<B, Mask>;
template <class F, class A, unsigned Mask>
inline constexpr int degree<chain::apply<F, A>, Mask> = degree<A, Mask> == 0 ? 0 : 2;
template <class A, unsigned Mask>
inline constexpr int degree<chain::apply<chain::negate_function, A>, Mask> = degree<A, Mask>;

template <class... A>
consteval unsigned arguments_of_innermost_loop(type_list<A...>) {
    unsigned mask = 0, bit = 1;
    ((mask |= A::depends == dependence::current ? bit : 0u, bit <<= 1), ...);
    return mask;
}

}  // namespace detail

template <template <class...> class G, class... E>
struct rule<elementwise_node<G, E...>> : plain_rule {
    using node = elementwise_node<G, E...>;
    using functor = chain_functor<node>;
    template <class>
    static constexpr bool may_store_to = true;
    static constexpr bool affine =
        length<chain_arguments<node>> <= 32 &&
        detail::degree<functor, detail::arguments_of_innermost_loop(chain_arguments<node>{})> <= 1;
    static index width(const dims& d) { return node::width::of(d); }

    template <class F>
    static void value(F& f, index row, index n) {
        run(f, row, n, chain_arguments<node>{});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        run_back<Reach>(f, row, n, chain_arguments<node>{});
    }

private:
    /// Without vectors that all tokens share, the rows are one long row.
    template <class... A>
    static constexpr bool flat = !(rule<A>::broadcast || ...);

    template <class F, class... A>
    static void run(F& f, index row, index n, type_list<A...>) {
        using T = typename F::scalar;
        const index D = f.template width_of<node>(), length = flat<A...> ? n * D : D;
        for (index r = row; r < row + (flat<A...> ? std::min<index>(n, 1) : n); ++r)
            chain::row<functor, typename F::team, sizeof...(A), T>(length, {f.template value_at<A>(r)...},
                                                                   f.template value_at<node>(r));
    }
    template <dependence Reach, class F, class... A>
    static void run_back(F& f, index row, index n, type_list<A...>) {
        using T = typename F::scalar;
        const index D = f.template width_of<node>(), length = flat<A...> ? n * D : D;
        for (index r = row; r < row + (flat<A...> ? std::min<index>(n, 1) : n); ++r)
            chain::row_back<functor, typename F::team, sizeof...(A), T, F::template stores<node, A>...>(
                length, {f.template value_at<A>(r)...}, f.template bar_at<node>(r),
                {f.template bar_within<A, Reach>(r)...});
    }
};

}  // namespace fprnn
