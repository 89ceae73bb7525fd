#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/program/frame.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

namespace fprnn {

namespace body {

template <class M, std::size_t K, class T>
struct prepare {
    static constexpr bool holds = mixer_holds_rows<M>;
    index channels;
    small_array<strided<const T>, K> raw;
    strided<T> q, scratch;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        const auto from = at(raw, r);
        mixing::prepare<M, Team, T>(channels, from.values, q[r], scratch[worker]);
    }
};

template <class M, std::size_t K, class T>
struct prepare_back {
    static constexpr bool holds = mixer_holds_rows<M>;
    index channels;
    small_array<strided<const T>, K> raw;
    strided<const T> q, q_bar;
    small_array<receiver<T>, K> raw_bar;
    strided<T> scratch;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        const auto from = at(raw, r);
        const auto to = at(raw_bar, r, worker);
        mixing::prepare_back<M, Team, T>(channels, from.values, q[r], q_bar[r], to.values, scratch[worker]);
    }
};

template <class M, class T>
struct mix {
    static constexpr bool holds = mixer_holds_rows<M>;
    index channels;
    strided<const T> q, v, w;
    strided<T> out, scratch;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        M::template mix<Team, T>(channels, q[r], v[r], w[r], out[r], scratch[worker]);
    }
};

/// q̄ as well, where it is asked for.
template <class M, class T>
struct mix_back {
    static constexpr bool holds = mixer_holds_rows<M>;
    index channels;
    strided<const T> q, v, w, out_bar;
    receiver<T> v_bar, w_bar, q_bar;
    strided<T> scratch;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        M::template mix_back<Team, T>(channels, q[r], out_bar[r], v_bar.at(r, worker), w_bar.at(r, worker),
                                      scratch[worker]);
        if (q_bar.rows.data)
            M::template mix_back_q<Team, T>(channels, q[r], v[r], w[r], out_bar[r], q_bar.at(r, worker),
                                            scratch[worker]);
    }
};

}  // namespace body

template <class M, class... Maps>
struct rule<prepared_node<mixer_node<M, Maps...>>> : plain_rule {
    using node = prepared_node<mixer_node<M, Maps...>>;
    template <class T>
    struct memory {
        strided<T> scratch;    ///< [workers]
        T *one_row, *one_bar;  ///< where one row serves all tokens
        strided<T> ignored;    ///< [workers], takes the cotangents of maps that the pass does not reach
    };
    /// Every row begins a cache line: registers that lie across two of them are dear to load, and all that mixes loads these.
    static constexpr bool broadcast = (rule<Maps>::broadcast && ...);
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
        auto& [in_prepare, one_row, one_bar, ignored] = f.template memory_of<node>();
        in_prepare = f.take_per_worker(scratch, mixing::prepare_scratch<M>(f.size.d_inner), f.rows());
        if constexpr (broadcast) {
            one_row = scratch.take(width(f.size));
            if (f.phase != pass::forward) one_bar = scratch.take(width(f.size));
            return;
        }
        ignored = f.take_per_worker(scratch, std::max({rule<Maps>::width(f.size)...}), f.rows());
        if (ignored.data) f.on.fill(f.on.workers(f.rows()) * ignored.stride, ignored.data, 0);
    }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        if constexpr (broadcast) {
            auto& memory = f.template memory_of<node>();
            f.value[F::template slot<node>] = memory.one_row;
            if (f.phase == pass::forward) return;
            f.bar[F::template slot<node>] = memory.one_bar;
            f.on.fill(width(f.size), memory.one_bar, 0);
        }
    }
    template <class F>
    static void value(F& f, index row, index n) {
        if constexpr (broadcast) n = 1;
        f.each_row(n, body::prepare<M, sizeof...(Maps), typename F::scalar>{f.size.d_inner,
                                                                            {f.template values<Maps>(row)...},
                                                                            f.template values<node>(row),
                                                                            f.template memory_of<node>().scratch});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (broadcast) n = 1;
        if constexpr (node::depends >= Reach) {
            const auto send = [&](auto... to) {
                f.each_row(n, body::prepare_back<M, sizeof...(Maps), typename F::scalar>{
                                  f.size.d_inner,
                                  {f.template values<Maps>(row)...},
                                  f.template values<node>(row),
                                  f.template bars<node>(row),
                                  {to.into...},
                                  f.template memory_of<node>().scratch});
                (to.finish(), ...);
            };
            send(bar_or_ignored<Maps, Reach>(f, row, n)...);
        }
    }

private:
    template <class Map, dependence Reach, class F>
    static auto bar_or_ignored(F& f, index row, index n) {
        if constexpr (Map::depends >= Reach)
            return f.template bars_within<Map, Reach>(row, n);
        else
            return rows_of_their_own<typename F::scalar>{{f.template memory_of<node>().ignored, true}};
    }
};

template <class Q, class V, class W>
struct rule<mix_node<Q, V, W>> : plain_rule {
    using node = mix_node<Q, V, W>;
    using prepared = prepared_node<Q>;
    using M = typename Q::mixer_type;
    template <class T>
    struct memory {
        strided<T> scratch;  ///< [workers]
    };
    static index width(const dims& d) { return d.d_inner; }
    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>&) {
        f.template memory_of<node>().scratch = f.take_per_worker(scratch, M::scratch(f.size.d_inner), f.rows());
    }
    template <class F>
    static void value(F& f, index row, index n) {
        f.each_row(n, body::mix<M, typename F::scalar>{f.size.d_inner, f.template values<prepared>(row), at<V>(f, row),
                                                       at<W>(f, row), f.template values<node>(row),
                                                       f.template memory_of<node>().scratch});
        f.work.mixer_applications += n;
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        auto v_bar = bars_of<V, Reach>(f, row, n);
        auto w_bar = bars_of<W, Reach>(f, row, n);
        auto q_bar = q_bars<Reach>(f, row, n);
        f.each_row(n, body::mix_back<M, T>{f.size.d_inner, f.template values<prepared>(row), at<V>(f, row),
                                           at<W>(f, row), f.template bars<node>(row), v_bar.into, w_bar.into,
                                           q_bar.into, f.template memory_of<node>().scratch});
        v_bar.finish();
        w_bar.finish();
        q_bar.finish();
    }

private:
    /// Nowhere where the pass does not reach Q, whose numbers then need no product.
    template <dependence Reach, class F>
    static auto q_bars(F& f, index row, index n) {
        if constexpr (prepared::depends < Reach)
            return rows_of_their_own<typename F::scalar>{};
        else
            return f.template bars_within<prepared, Reach>(row, n);
    }
    template <class E, class F>
    static strided<const typename F::scalar> at(F& f, index row) {
        if constexpr (std::same_as<E, zero_node>)
            return {};
        else
            return f.template values<E>(row);
    }
    template <class E, dependence Reach, class F>
    static auto bars_of(F& f, index row, index n) {
        if constexpr (std::same_as<E, zero_node>)
            return rows_of_their_own<typename F::scalar>{};
        else
            return f.template bars_within<E, Reach>(row, n);
    }
};

}  // namespace fprnn
