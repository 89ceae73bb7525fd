#pragma once

#include <fprnn/ops/l2_normalise.hpp>
#include <fprnn/program/frame.hpp>

#include <string>
#include <vector>

namespace fprnn {

template <class Function, fixed_string Name, class E>
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
        for (index r = row; r < row + n; ++r)
            Function::template value<typename F::team>(D, constant(f.template value_at<E>(r)), weight, weight + D,
                                                       f.template value_at<node>(r));
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            using T = typename F::scalar;
            const index D = width(f.size);
            const T* weight = f.template parameters_of<node>();
            T* weight_bar = Reach == dependence::input ? f.template gradient_of<node>() : nullptr;
            for (index r = row; r < row + n; ++r)
                Function::template back<typename F::team>(D, constant(f.template value_at<E>(r)), weight,
                                                          constant(f.template bar_at<node>(r)), f.template bar_at<E>(r),
                                                          weight_bar, weight_bar ? weight_bar + D : nullptr);
        }
    }

private:
    template <class T>
    static const T* constant(T* p) {
        return p;
    }
};

template <class E>
struct rule<l2_normalise_node<E>> : plain_rule {
    using node = l2_normalise_node<E>;
    static index width(const dims& d) { return node::width::of(d); }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        for (index r = row; r < row + n; ++r)
            l2_normalise_function::value<typename F::team, T>(width(f.size), f.template value_at<E>(r),
                                                              f.template value_at<node>(r));
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        if constexpr (E::depends >= Reach)
            for (index r = row; r < row + n; ++r)
                l2_normalise_function::back<typename F::team, T>(width(f.size), f.template value_at<E>(r),
                                                                 f.template bar_at<node>(r), f.template bar_at<E>(r));
    }
};

}  // namespace fprnn
