#pragma once

#include <fprnn/ops/l2_normalise.hpp>
#include <fprnn/program/frame.hpp>

#include <string>
#include <vector>

namespace fprnn {

template <class Function, auto Name, class E>
struct rule<norm_node<Function, Name, E>> : plain_rule {
    using node = norm_node<Function, Name, E>;
    static index width(const dims& d) { return node::width::of(d); }
    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({std::string(Name.c_str()) + ".weight", {width(d)}, start::constant<1>::value, false});
        if constexpr (Function::has_bias)
            specs.push_back({std::string(Name.c_str()) + ".bias", {width(d)}, start::constant<0>::value, false});
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index D = width(f.size);
        const auto* weight = f.template parameters_of<node>();
        f.each_row(n, body::norm<Function, typename F::scalar>{D, f.template values<E>(row), weight, weight + D,
                                                               f.template values<node>(row)});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            using T = typename F::scalar;
            const index D = width(f.size);
            T* const weight_bar = Reach == dependence::input ? f.template gradient_of<node>() : nullptr;
            auto to = f.template bars_within<E, Reach>(row, n);
            auto sums = f.sums(n, Function::has_bias ? 2 * D : D, weight_bar);
            f.each_row(n, body::norm_back<Function, T>{D, f.template values<E>(row), f.template parameters_of<node>(),
                                                       f.template bars<node>(row), to.into, sums.into});
            sums.finish();
            to.finish();
        }
    }
};

template <class E>
struct rule<l2_normalise_node<E>> : plain_rule {
    using node = l2_normalise_node<E>;
    static index width(const dims& d) { return node::width::of(d); }
    template <class F>
    static void value(F& f, index row, index n) {
        f.each_row(n, body::l2_normalise<typename F::scalar>{width(f.size), f.template values<E>(row),
                                                             f.template values<node>(row)});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            auto to = f.template bars_within<E, Reach>(row, n);
            f.each_row(n, body::l2_normalise_back<typename F::scalar>{width(f.size), f.template values<E>(row),
                                                                      f.template bars<node>(row), to.into});
            to.finish();
        }
    }
};

}  // namespace fprnn
