#pragma once

#include <fprnn/expression/attention_sizes.hpp>
#include <fprnn/operations/frame.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

/// Attention of one query to the keys of one head, block by block: keys stand side by side in a register, so
/// that a block's logits, its weighted sums and their adjoints are loops over whole registers. For the CPU
/// alone.
namespace fprnn {

/// A sequence's carry, or its cotangent.
template <class T>
struct attended {
    attention_sizes of;
    T* data;  ///< count, keys, values

    /// The channels of a head in the block that begins with token `first`: channel c of token first + i is
    /// [c][i].
    strided<T> keys(index h, index first) const { return block(data + 1, of.K, h, first); }
    strided<T> values(index h, index first) const {
        return block(data + 1 + of.context * of.heads * of.K, of.V, h, first);
    }
    /// Channel c of head h of token t.
    T& key(index h, index c, index t) const { return at(keys(h, first_of(t)), c, t); }
    T& value(index h, index c, index t) const { return at(values(h, first_of(t)), c, t); }
    index count() const { return static_cast<index>(data[0]); }

private:
    static index first_of(index t) { return t / attention_sizes::block * attention_sizes::block; }
    static T& at(strided<T> channels, index c, index t) { return channels[c][t % attention_sizes::block]; }
    strided<T> block(T* all, index channels, index h, index first) const {
        const index n = of.tokens_of_block(first);
        return {all + first * of.heads * channels + h * channels * n, n};
    }
};

/// Turns the channels c and c + K/2 of each head by t · frequency[c]; with sign −1 back. Without frequencies
/// channels stay what they are.
struct rotation {
    index heads, K;
    const double* frequencies;

    /// to(h, c, number) of all channels of from(h, c).
    template <class T, class From, class To>
    void turn(index t, T sign, const From& from, const To& to) const {
        if (!frequencies) {
            for (index h = 0; h < heads; ++h)
                for (index c = 0; c < K; ++c) to(h, c, from(h, c));
            return;
        }
        const index half = K / 2;
        for (index c = 0; c < half; ++c) {
            const double angle = static_cast<double>(t) * frequencies[c];
            const T cosine = static_cast<T>(std::cos(angle)), sine = sign * static_cast<T>(std::sin(angle));
            for (index h = 0; h < heads; ++h) {
                const T a = from(h, c), b = from(h, c + half);
                to(h, c, a * cosine - b * sine);
                to(h, c + half, a * sine + b * cosine);
            }
        }
    }
};

namespace attending {

inline constexpr index block = attention_sizes::block;

/// to[s] = Σ_c a[c] m[c][s] for n tokens.
template <class Team, class T>
void products(index n, index channels, const T* a, strided<const T> m, T* to) {
    using namespace math;
    Team::each(n, [&](auto lane) {
        using number = decltype(lane.load(a));
        number sum(T(0));
        for (index c = 0; c < channels; ++c) sum = multiply_add(number(a[c]), lane.load(m[c]), sum);
        lane.store(to, sum);
    });
}
/// to[c] += Σ_s p[s] m[c][s]
template <class Team, class T>
void add_weighted(index n, index channels, const T* p, strided<const T> m, T* to) {
    index c = 0;
    for (; c + 4 <= channels; c += 4) {
        const auto sums = Team::template sum<4>(n, [&](auto lane) {
            const auto weight = lane.load(p);
            return small_array{weight * lane.load(m[c]), weight * lane.load(m[c + 1]), weight * lane.load(m[c + 2]),
                               weight * lane.load(m[c + 3])};
        });
        for (index k = 0; k < 4; ++k) to[c + k] += sums[static_cast<std::size_t>(k)];
    }
    for (; c < channels; ++c)
        to[c] += Team::template sum<1>(n, [&](auto lane) { return small_array{lane.load(p) * lane.load(m[c])}; })[0];
}
/// to[c][s] += a[c] p[s]
template <class Team, class T>
void add_outer(index n, index channels, const T* a, const T* p, strided<T> to) {
    for (index c = 0; c < channels; ++c)
        Team::each(n, [&](auto lane) { lane.add(to[c], decltype(lane.load(p))(a[c]) * lane.load(p)); });
}
/// l[s] = exp(l[s] − largest) · by, where no l is larger: what the empty places of a register hold does not
/// overflow.
template <class Team, class T>
void exponentials(index n, T largest, T by, T* l) {
    using namespace math;
    Team::each(n, [&](auto lane) {
        using number = decltype(lane.load(l));
        lane.store(l, exp(-maximum(number(largest) - lane.load(l), number(T(0)))) * number(by));
    });
}

/// The softmax of a row of logits: the largest l and Σ exp(l − largest), from which probabilities are
/// computed again. Their logarithm in one number would lose as many digits as the logits are large.
template <class T>
struct normaliser {
    T largest = 0, sum = 0;
};

/// y = Σ_{s<n} softmax_s(qᵀk_s) v_s in head h.
template <class Team, class T>
normaliser<T> attend(const attended<T>& to, index h, index n, const T* q, T* y) {
    const index V = to.of.V;
    T l[block];
    normaliser<T> z;
    std::fill_n(y, V, T(0));
    for (index first = 0; first < n; first += block) {
        const index count = std::min(block, n - first);
        products<Team, T>(count, to.of.K, q, to.keys(h, first), l);
        const T top = Team::max(count, [&](auto lane) { return lane.load(l); });
        if (first == 0) z.largest = top;
        if (!(top <= z.largest)) {
            const T by = math::exp(z.largest - top);
            z = {top, z.sum * by};
            for (index c = 0; c < V; ++c) y[c] *= by;
        }
        exponentials<Team>(count, z.largest, T(1), l);
        z.sum += Team::template sum<1>(count, [&](auto lane) { return small_array{lane.load(l)}; })[0];
        add_weighted<Team, T>(count, V, l, to.values(h, first), y);
    }
    for (index c = 0; c < V; ++c) y[c] /= z.sum;
    return z;
}
/// Its adjoint: with p the softmax and g_s = p_s (ȳᵀv_s − ȳᵀy),
///
///     q̄ += Σ_s g_s k_s,   k̄_s += g_s q,   v̄_s += p_s ȳ
template <class Team, class T>
void attend_back(const attended<T>& to, index h, index n, const T* q, const T* y, normaliser<T> z, const T* y_bar,
                 T* q_bar, const attended<T>& to_bar) {
    const index K = to.of.K, V = to.of.V;
    T p[block], g[block];
    const T mean = Team::template sum<1>(V, [&](auto lane) { return small_array{lane.load(y_bar) * lane.load(y)}; })[0];
    for (index first = 0; first < n; first += block) {
        const index count = std::min(block, n - first);
        products<Team, T>(count, K, q, to.keys(h, first), p);
        exponentials<Team>(count, z.largest, 1 / z.sum, p);
        products<Team, T>(count, V, y_bar, to.values(h, first), g);
        Team::each(count,
                   [&](auto lane) { lane.store(g, lane.load(p) * (lane.load(g) - decltype(lane.load(g))(mean))); });
        add_weighted<Team, T>(count, K, g, to.keys(h, first), q_bar);
        add_outer<Team, T>(count, K, q, g, to_bar.keys(h, first));
        add_outer<Team, T>(count, V, y_bar, p, to_bar.values(h, first));
    }
}

}  // namespace attending

namespace body {

/// What the rows of a tile have in common: row t·tile + s is token t of sequence s.
template <class T>
struct attention_rows {
    attention_sizes of;
    rotation positions;
    index tile, tokens;
    const index* lengths;         ///< [tile]; null where all have all tokens
    T* cache;                     ///< [tile, carry], with the count before these tokens
    strided<const T> q, k, v, y;  ///< y is not read forward
    strided<T> turned;            ///< [rows, H K], q, turned and divided by √K
    attending::normaliser<T>* z;  ///< [rows, H]
    T scale = 1 / std::sqrt(static_cast<T>(of.K));

    attended<T> sequence(index s) const { return {of, cache + s * of.carry()}; }
    index tokens_of(index s) const { return lengths ? lengths[s] : tokens; }
    bool has(index r) const { return r / tile < tokens_of(r % tile); }
    /// Where the token stands, counted from the first call on.
    index place(index r) const { return sequence(r % tile).count() + r / tile; }

    void turn_query(index r) const {
        positions.turn(
            place(r), T(1), [&](index h, index c) { return q[r][h * of.K + c]; },
            [&](index h, index c, T number) { turned[r][h * of.K + c] = scale * number; });
    }
};

/// Queries turned, keys and values appended.
template <class T>
struct append_keys {
    attention_rows<T> all;

    template <class Team>
    void row(index r, index) const {
        if (!all.has(r)) return;
        const attended<T> to = all.sequence(r % all.tile);
        const index t = all.place(r), V = all.of.V;
        all.turn_query(r);
        all.positions.turn(
            t, T(1), [&](index h, index c) { return all.k[r][h * all.of.K + c]; },
            [&](index h, index c, T number) { to.key(h, c, t) = number; });
        for (index h = 0; h < all.of.heads; ++h)
            for (index c = 0; c < V; ++c) to.value(h, c, t) = all.v[r][h * V + c];
    }
};
template <class T>
struct attend {
    attention_rows<T> all;
    strided<T> y;

    template <class Team>
    void row(index r, index) const {
        if (!all.has(r)) return;
        const attention_sizes& of = all.of;
        for (index h = 0; h < of.heads; ++h)
            all.z[r * of.heads + h] = attending::attend<Team>(all.sequence(r % all.tile), h, all.place(r) + 1,
                                                              all.turned[r] + h * of.K, y[r] + h * of.V);
    }
};
/// Of all tokens of sequence s: cotangents of keys and values that stood there before stay in its cotangent.
template <class T>
struct attend_back {
    attention_rows<T> all;
    T* cache_bar;
    strided<const T> y_bar;
    strided<T> q_bar, k_bar, v_bar;
    strided<T> scratch;  ///< [workers, H K]

    template <class Team>
    void row(index s, index worker) const {
        const attended<T> bar{all.of, cache_bar + s * all.of.carry()};
        const index tokens = all.tokens_of(s);
        for (index t = 0; t < tokens; ++t) query<Team>(t * all.tile + s, bar, scratch[worker]);
        for (index t = 0; t < tokens; ++t) take(t * all.tile + s, bar);
    }

private:
    template <class Team>
    void query(index r, const attended<T>& bar, T* turned_bar) const {
        const auto [heads, K, V, context] = all.of;
        all.turn_query(r);
        std::fill_n(turned_bar, heads * K, T(0));
        for (index h = 0; h < heads; ++h)
            attending::attend_back<Team>(all.sequence(r % all.tile), h, all.place(r) + 1, all.turned[r] + h * K,
                                         all.y[r] + h * V, all.z[r * heads + h], y_bar[r] + h * V, turned_bar + h * K,
                                         bar);
        all.positions.turn(
            all.place(r), T(-1), [&, K = K](index h, index c) { return turned_bar[h * K + c]; },
            [&, K = K](index h, index c, T number) { q_bar[r][h * K + c] += all.scale * number; });
    }
    /// The cotangent of a key and a value that were appended.
    void take(index r, const attended<T>& bar) const {
        const index t = all.place(r), K = all.of.K, V = all.of.V;
        const auto taken = [](T& from) { return std::exchange(from, T(0)); };
        all.positions.turn(
            t, T(-1), [&](index h, index c) { return taken(bar.key(h, c, t)); },
            [&](index h, index c, T number) { k_bar[r][h * K + c] += number; });
        for (index h = 0; h < all.of.heads; ++h)
            for (index c = 0; c < V; ++c) v_bar[r][h * V + c] += taken(bar.value(h, c, t));
    }
};

}  // namespace body

}  // namespace fprnn
