#pragma once

#include <fprnn/program/frame.hpp>

#include <string>
#include <vector>

namespace fprnn {

template <>
struct rule<input_node> : plain_rule {
    static index width(const dims& d) { return d.d_in; }
};

template <>
struct rule<previous_node> : plain_rule {
    static constexpr bool kept = true;
    static index width(const dims& d) { return d.d_inner; }
};

template <auto Name, class W, class Init>
struct rule<parameter_node<Name, W, Init>> : plain_rule {
    using node = parameter_node<Name, W, Init>;
    static constexpr bool broadcast = true;
    static index width(const dims& d) { return W::of(d); }
    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({Name.c_str(), {W::of(d)}, Init::value, false});
    }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        f.value[F::template slot<node>] = const_cast<typename F::scalar*>(f.template parameters_of<node>());
        if (f.phase == pass::backward) f.bar[F::template slot<node>] = f.template gradient_of<node>();
    }
};

/// y* stands where F stood when its last chunk was solved; only its cotangent is its own.
template <class E>
struct rule<fixed_point_node<E>> : plain_rule {
    using node = fixed_point_node<E>;
    static index width(const dims& d) { return d.d_inner; }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        f.value[F::template slot<node>] = f.value[F::template slot<E>];
    }
};

}  // namespace fprnn
