#pragma once

#include <fprnn/program/frame.hpp>
#include <fprnn/program/rules/scan_chains.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace fprnn {

template <template <class...> class G, class... E>
struct rule<elementwise_node<G, E...>> : plain_rule {
    using node = elementwise_node<G, E...>;
    using functor = chain_functor<node>;
    template <class>
    static constexpr bool may_store_to = true;
    static constexpr bool affine = is_affine_chain<node>;
    static index width(const dims& d) { return node::width::of(d); }

    template <class F>
    static void value(F& f, index row, index n) {
        using scan = scan_of_chain<F, node>;
        if constexpr (!std::is_void_v<scan>)
            if (f.phase != pass::replay && !rule<scan>::is_opened(f)) return;
        run(f, row, n, chain_arguments<node>{}, functor{});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (!goes_back_in_scan<F, scan_of_chain<F, node>, node, Reach>())
            run_back<Reach>(f, row, n, chain_arguments<node>{}, functor{});
    }

private:
    /// Without vectors that all tokens share, the rows are one long row.
    template <class F, class... A, class Body>
    static void call(F& f, index n, type_list<A...>, Body body) {
        if constexpr ((rule<A>::broadcast || ...)) {
            f.each_row(n, body);
        } else {
            body.channels *= n;
            f.one_row(body);
        }
    }
    // The functor is taken apart, because nvcc spells a type in its kernels by the alias that named it, here chain_functor<node>
    // with all names of the expression.
    template <class F, class... A, template <class...> class Functor, class... Arguments>
    static void run(F& f, index row, index n, type_list<A...> arguments, Functor<Arguments...>) {
        using T = typename F::scalar;
        call(f, n, arguments,
             body::chain<Functor<Arguments...>, sizeof...(A), T>{
                 f.template width_of<node>(), {f.template values<A>(row)...}, f.template values<node>(row)});
    }
    template <dependence Reach, class F, class... A, template <class...> class Functor, class... Arguments>
    static void run_back(F& f, index row, index n, type_list<A...> arguments, Functor<Arguments...>) {
        using T = typename F::scalar;
        const auto send = [&](auto... to) {
            call(f, n, arguments,
                 body::chain_back<Functor<Arguments...>, sizeof...(A), T, stores<typename F::program, node, A>...>{
                     f.template width_of<node>(),
                     {f.template values<A>(row)...},
                     f.template bars<node>(row),
                     {to.into...}});
            (to.finish(), ...);
        };
        send(f.template bars_within<A, Reach>(row, n)...);
    }
};

}  // namespace fprnn
