#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/math.hpp>

#include <concepts>

/// One token in R numbers. Where the iterate y enters f only under (I − Q) = U S Uᵀ of a compact mixer,
/// followed by a vector p + g ⊙ (·) and a norm N at most, f sees w = S Uᵀ y alone:
///
///     f(y) = N(p + g ⊙ (Q v + U w)) = N(a + V w),   a = p + g ⊙ Q v,   V = diag(g) U
///
/// The rows of U and V are R vectors of D channels. x̂ is what N makes of x before it scales: x − mean x for
/// layer norm, x for RMS norm.
///
/// What has D channels is reduced and expanded token by token; the equations in R numbers are solved for all
/// tokens of a tile side by side, each as if it were alone: a register then holds one number of several
/// tokens.
namespace fprnn::kernel {

template <class T, int R>
using numbers = small_array<T, static_cast<std::size_t>(R)>;
/// Row by row.
template <class T, int R>
using square = small_array<numbers<T, R>, static_cast<std::size_t>(R)>;

/// In place of a norm.
struct no_norm {
    static constexpr bool has_bias = false;
    static constexpr bool centred = false;
};

/// A few numbers of every token: number k of all of them, then number k + 1.
template <class T>
struct tokens_side_by_side {
    index tokens;
    T* data;

    FPRNN_BOTH T* operator[](index k) const { return data + k * tokens; }
    FPRNN_BOTH T& operator()(index k, index token) const { return data[k * tokens + token]; }
};

/// The norm's part of a token's equation; γ is 1 and β 0 where there is none.
template <class Team, int R, class Norm, class T>
struct token_norm {
    static constexpr bool normed = !std::same_as<Norm, no_norm>;
    static constexpr auto size = static_cast<std::size_t>(R);

    /// x̂ in place of x, and V̂ = the hats of g ⊙ U. Returns the means that they lost: of V's rows, of x.
    FPRNN_BOTH static small_array<T, size + 1> take_means(index D, const T* g, const T* U, T* V, T* x) {
        if constexpr (Norm::centred) {
            auto means = Team::template sum<size + 1>(D, [&](auto lane) {
                small_array<decltype(lane.load(V)), size + 1> row;
                const auto by = lane.load(g);
                for (index j = 0; j < R; ++j) {
                    row[static_cast<std::size_t>(j)] = by * lane.load(U + j * D);
                    lane.store(V + j * D, row[static_cast<std::size_t>(j)]);
                }
                row[size] = lane.load(x);
                return row;
            });
            for (std::size_t j = 0; j <= size; ++j) means[j] /= static_cast<T>(D);
            Team::each(D, [&](auto lane) {
                using W = decltype(lane.load(x));
                for (index j = 0; j < R; ++j)
                    lane.store(V + j * D, lane.load(V + j * D) - W(means[static_cast<std::size_t>(j)]));
                lane.store(x, lane.load(x) - W(means[size]));
            });
            return means;
        } else {
            Team::each(D, [&](auto lane) {
                for (index j = 0; j < R; ++j) lane.store(V + j * D, lane.load(g) * lane.load(U + j * D));
            });
            return {};
        }
    }
    /// γ ⊙ x
    template <class Lane, class X>
    FPRNN_BOTH static X weigh(Lane lane, const T* gamma, X x) {
        if constexpr (normed)
            return lane.load(gamma) * x;
        else
            return x;
    }
};

}  // namespace fprnn::kernel
