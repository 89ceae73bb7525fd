#pragma once

#include <fprnn/mixers/mixer.hpp>
#include <fprnn/operations/frame.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
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

namespace operations {

/// A mixer's numbers of each token, made from the values of its maps; where these are the same for all
/// tokens, once for all.
template <class M, std::size_t K, class T, class Backend>
struct prepared_mixer : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    struct memory {
        strided<T> scratch;                        ///< [workers]
        T *one_row = nullptr, *one_bar = nullptr;  ///< where one row serves all tokens
        strided<T> ignored;                        ///< [workers], receives for maps that the pass does not reach
    };

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>&) const {
        auto& m = f.template make<memory>(s);
        m.scratch = f.take_per_worker(scratch, mixing::prepare_scratch<M>(f.size.d_inner), f.rows());
        if (f.graph[s].shared) {
            m.one_row = scratch.take(f.width(s));
            if (f.phase != pass::forward) m.one_bar = scratch.take(f.width(s));
            return;
        }
        index widest = 0;
        for (const slot map : f.graph.operands(s)) widest = std::max(widest, f.width(map));
        m.ignored = f.take_per_worker(scratch, widest, f.rows());
        if (m.ignored.data) f.on.fill(f.on.workers(f.rows()) * m.ignored.stride, m.ignored.data, 0);
    }
    void begin(frame& f, slot s, const T*) const {
        if (!f.graph[s].shared) return;
        const memory& m = f.template own<memory>(s);
        f.nodes[s].value = m.one_row;
        if (f.phase == pass::forward) return;
        f.nodes[s].bar = m.one_bar;
        f.on.fill(f.width(s), m.one_bar, 0);
    }
    void value(frame& f, slot s, index row, index n) const {
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            f.each_row(rows_of(f, s, n), body::prepare<M, K, T>{f.size.d_inner,
                                                                {f.values(f.graph.operand(s, k), row)...},
                                                                f.values(s, row),
                                                                f.template own<memory>(s).scratch});
        };
        unpacked(std::make_index_sequence<K>{});
    }
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        if (f.graph[s].depends < reach) return;
        n = rows_of(f, s, n);
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            std::array<cotangents<T, Backend>, K> to{of_map(f, s, k, row, n, reach)...};
            f.each_row(n, body::prepare_back<M, K, T>{f.size.d_inner,
                                                      {f.values(f.graph.operand(s, k), row)...},
                                                      f.values(s, row),
                                                      f.bars(s, row),
                                                      {to[k].into...},
                                                      f.template own<memory>(s).scratch});
            for (auto& one : to) one.finish();
        };
        unpacked(std::make_index_sequence<K>{});
    }

private:
    static index rows_of(const frame& f, slot s, index n) { return f.graph[s].shared ? 1 : n; }
    static cotangents<T, Backend> of_map(const frame& f, slot s, std::size_t k, index row, index n, dependence reach) {
        const slot map = f.graph.operand(s, k);
        if (f.graph[map].depends < reach) return cotangents<T, Backend>(f.template own<memory>(s).ignored);
        return cotangents<T, Backend>(f, map, row, n, reach);
    }
};

/// Q v + (I − Q) w.
template <class M, class T, class Backend>
struct mix : operation_on<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;

    struct memory {
        strided<T> scratch;  ///< [workers]
    };

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>&) const {
        f.template make<memory>(s).scratch = f.take_per_worker(scratch, M::scratch(f.width(s)), f.rows());
    }
    void value(frame& f, slot s, index row, index n) const {
        const auto [Q, v, w] = operands(f, s);
        f.each_row(n, body::mix<M, T>{f.width(s), f.values(Q, row), values(f, v, row), values(f, w, row),
                                      f.values(s, row), f.template own<memory>(s).scratch});
        f.work.mixer_applications += n;
    }
    /// Where the pass does not reach Q, its numbers need no product.
    void back(frame& f, slot s, index row, index n, dependence reach) const {
        const auto [Q, v, w] = operands(f, s);
        auto v_bar = bars(f, v, row, n, reach);
        auto w_bar = bars(f, w, row, n, reach);
        auto q_bar = bars(f, f.graph[Q].depends < reach ? graph::nowhere : Q, row, n, reach);
        f.each_row(
            n, body::mix_back<M, T>{f.width(s), f.values(Q, row), values(f, v, row), values(f, w, row), f.bars(s, row),
                                    v_bar.into, w_bar.into, q_bar.into, f.template own<memory>(s).scratch});
        v_bar.finish();
        w_bar.finish();
        q_bar.finish();
    }

private:
    static std::array<slot, 3> operands(const frame& f, slot s) {
        return {f.graph.operand(s, 0), f.graph.operand(s, 1), f.graph.operand(s, 2)};
    }
    static strided<const T> values(const frame& f, slot s, index row) {
        if (s == graph::nowhere) return {};
        return f.values(s, row);
    }
    static cotangents<T, Backend> bars(const frame& f, slot s, index row, index n, dependence reach) {
        if (s == graph::nowhere) return {};
        return cotangents<T, Backend>(f, s, row, n, reach);
    }
};

}  // namespace operations

}  // namespace fprnn
