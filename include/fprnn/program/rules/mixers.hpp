#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/program/frame.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <string>
#include <tuple>

namespace fprnn {

template <class M, class... Maps>
struct rule<prepared_node<mixer_node<M, Maps...>>> : plain_rule {
    using node = prepared_node<mixer_node<M, Maps...>>;
    template <class T>
    struct memory {
        T* ignored = nullptr;  ///< takes the cotangents of maps that the pass does not reach
    };
    /// Every row begins a cache line: registers that lie across two of them are dear to load, and all that mixes loads these.
    static index width(const dims& d) {
        constexpr index line = 16;
        return (M::size(d.d_inner) + line - 1) / line * line;
    }
    static void check(const dims& d) {
        if constexpr (requires { M::check(d.d_inner); }) M::check(d.d_inner);
        const auto expected = M::raw_sizes(d.d_inner);
        const index got[] = {rule<Maps>::width(d)...};
        static_assert(std::tuple_size_v<decltype(M::raw_sizes(d.d_inner))> == sizeof...(Maps),
                      "mixer_node<M, Maps...>: M::raw_sizes(D) must have one number for each of the maps");
        for (std::size_t k = 0; k < sizeof...(Maps); ++k)
            require(got[k] == expected[k], "mixer", [&] {
                return "map " + std::to_string(k) + " must have width " + std::to_string(expected[k]) + ", got " +
                       std::to_string(got[k]);
            });
    }
    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>&) {
        const index n = std::max({rule<Maps>::width(f.size)...});
        f.template memory_of<node>().ignored = scratch.take(n);
        if (auto* p = f.template memory_of<node>().ignored) std::fill_n(p, n, typename F::scalar(0));
    }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        for (index r = row; r < row + n; ++r) {
            const T* raw[] = {f.template value_at<Maps>(r)...};
            M::template prepare<typename F::team, T>(f.size.d_inner, raw, f.template value_at<node>(r));
        }
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        if constexpr (node::depends >= Reach)
            for (index r = row; r < row + n; ++r) {
                const T* raw[] = {f.template value_at<Maps>(r)...};
                T* raw_bar[] = {Maps::depends >= Reach ? f.template bar_at<Maps>(r)
                                                       : f.template memory_of<node>().ignored...};
                M::template prepare_back<typename F::team, T>(f.size.d_inner, raw, f.template value_at<node>(r),
                                                              f.template bar_at<node>(r), raw_bar);
            }
    }
};

template <class Q, class V, class W>
struct rule<mix_node<Q, V, W>> : plain_rule {
    using node = mix_node<Q, V, W>;
    using prepared = prepared_node<Q>;
    using M = typename Q::mixer_type;
    template <class T>
    struct memory {
        T* scratch = nullptr;
    };
    static index width(const dims& d) { return d.d_inner; }
    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>&) {
        f.template memory_of<node>().scratch = scratch.take(M::scratch(f.size.d_inner));
    }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        for (index r = row; r < row + n; ++r)
            M::template mix<typename F::team, T>(f.size.d_inner, f.template value_at<prepared>(r), at<V>(f, r),
                                                 at<W>(f, r), f.template value_at<node>(r),
                                                 f.template memory_of<node>().scratch);
        f.work.mixer_applications += n;
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        T* scratch = f.template memory_of<node>().scratch;
        for (index r = row; r < row + n; ++r) {
            const T *q = f.template value_at<prepared>(r), *bar = f.template bar_at<node>(r);
            M::template mix_back<typename F::team, T>(f.size.d_inner, q, bar, bar_at<V, Reach>(f, r),
                                                      bar_at<W, Reach>(f, r), scratch);
            if constexpr (prepared::depends >= Reach)
                M::template mix_back_q<typename F::team, T>(f.size.d_inner, q, at<V>(f, r), at<W>(f, r), bar,
                                                            f.template bar_at<prepared>(r), scratch);
        }
    }

private:
    template <class E, class F>
    static const typename F::scalar* at(F& f, index row) {
        if constexpr (std::same_as<E, zero_node>)
            return nullptr;
        else
            return f.template value_at<E>(row);
    }
    template <class E, dependence Reach, class F>
    static typename F::scalar* bar_at(F& f, index row) {
        if constexpr (std::same_as<E, zero_node>)
            return nullptr;
        else
            return f.template bar_within<E, Reach>(row);
    }
};

}  // namespace fprnn
