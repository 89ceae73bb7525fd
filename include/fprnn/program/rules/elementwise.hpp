#pragma once

#include <fprnn/program/frame.hpp>

#include <algorithm>

namespace fprnn {

template <template <class...> class G, class... E>
struct rule<elementwise_node<G, E...>> : plain_rule {
    using node = elementwise_node<G, E...>;
    using functor = chain_functor<node>;
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
            chain::row_back<functor, typename F::team, sizeof...(A), T>(length, {f.template value_at<A>(r)...},
                                                                        f.template bar_at<node>(r),
                                                                        {f.template bar_within<A, Reach>(r)...});
    }
};

}  // namespace fprnn
