#pragma once

#include <fprnn/core/initialiser.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace fprnn {

/// The short causal convolution of Mamba and its kin, depthwise: each channel has K weights, its taps, of its
/// last K tokens and a bias.
///
///     y_t = bias + Σ_{j<K} w_j ⊙ x_{t−K+1+j}
///
/// The state is x of the last K − 1 tokens, [K−1,D]. Parameters: w [K,D], the oldest token's first, and the
/// bias [D], which start uniform on ±1/√K.
template <int K>
struct convolution_recurrence {
    static_assert(K >= 1, "convolution<\"name\", K>: K, the tokens that it sees, must be at least 1");
    static constexpr const char* name = "convolution";
    static constexpr std::size_t inputs = 1;

    struct sizes {
        index channels;
    };
    static sizes of(const std::array<index, inputs>& widths) { return {widths[0]}; }
    FPRNN_BOTH static constexpr index state(const sizes& s) { return (K - 1) * s.channels; }
    static constexpr index value(const sizes& s) { return s.channels; }
    FPRNN_BOTH static constexpr index scratch(const sizes&) { return 0; }

    FPRNN_BOTH static constexpr index parameters(const sizes& s) { return (K + 1) * s.channels; }
    static std::vector<parameter_spec> declare(const sizes& s, const std::string& own) {
        const double most = 1 / std::sqrt(double(K));
        const initialiser start{initialiser::rule::uniform, -most, most};
        return {{own, {K, s.channels}, start}, {own + ".bias", {s.channels}, start, false}};
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare(const sizes& s, const T* raw, T* p) {
        Team::each(parameters(s), [&](auto lane) { lane.store(p, lane.load(raw)); });
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(const sizes& s, const T*, const T* p_bar, T* raw_bar) {
        Team::each(parameters(s), [&](auto lane) { lane.add(raw_bar, lane.load(p_bar)); });
    }

    template <class Team, class T>
    FPRNN_BOTH static void step(const sizes& s, const T* p, const small_array<const T*, inputs>& x, const T* from,
                                T* to, T* y) {
        step_of<Team, T>(s, 0, s.channels, p, x, from, to, y);
    }
    template <class Team, class T>
    FPRNN_BOTH static void step_of(const sizes& s, index i, index count, const T* p,
                                   const small_array<const T*, inputs>& x, const T* from, T* to, T* y) {
        const index D = s.channels;
        const T* w = p + i;
        Team::each(count, [&](auto lane) {
            const auto now = lane.load(x[0] + i);
            if (y) {
                auto sum = lane.load(w + K * D);
                for (index j = 0; j < K - 1; ++j) sum += lane.load(w + j * D) * lane.load(from + i + j * D);
                lane.store(y + i, sum + lane.load(w + (K - 1) * D) * now);
            }
            for (index j = 0; j < K - 2; ++j) lane.store(to + i + j * D, lane.load(from + i + (j + 1) * D));
            if constexpr (K > 1) lane.store(to + i + (K - 2) * D, now);
        });
    }

    /// x̄ += S̄_{K−2} + w_{K−1} ⊙ ȳ,  S̄_j ← S̄_{j−1} + w_j ⊙ ȳ with S̄_{−1} = 0,  w̄_j += S_j ⊙ ȳ, where
    /// S_{K−1} = x.
    template <class Team, class T>
    FPRNN_BOTH static void back(const sizes& s, const T* w, const small_array<const T*, inputs>& x, const T* S,
                                const T* y_bar, T* S_bar, const small_array<T*, inputs>& x_bar, T* w_bar, T*) {
        const index D = s.channels;
        Team::each(D, [&](auto lane) {
            const auto ybar = lane.load(y_bar);
            auto behind = lane.load(w + (K - 1) * D) * ybar;
            if constexpr (K > 1) behind += lane.load(S_bar + (K - 2) * D);
            if (x_bar[0]) lane.add(x_bar[0], behind);
            for (index j = K - 2; j >= 0; --j) {
                auto at = lane.load(w + j * D) * ybar;
                if (j > 0) at += lane.load(S_bar + (j - 1) * D);
                lane.store(S_bar + j * D, at);
            }
            if (!w_bar) return;
            for (index j = 0; j < K - 1; ++j) lane.add(w_bar + j * D, lane.load(S + j * D) * ybar);
            lane.add(w_bar + (K - 1) * D, lane.load(x[0]) * ybar);
            lane.add(w_bar + K * D, ybar);
        });
    }
};

}  // namespace fprnn
