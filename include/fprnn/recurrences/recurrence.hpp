#pragma once

#include <fprnn/backend/reference.hpp>

#include <array>
#include <concepts>
#include <cstddef>

namespace fprnn {

namespace detail {
template <class M, class T>
using rows_of_token = small_array<const T*, M::inputs>;
template <class M, class T>
using cotangents_of_token = small_array<T*, M::inputs>;
}  // namespace detail

/// A recurrence with a state S of any shape: y_t = read(S_t), S_t = step(S_{t−1}; x_t), where x_t are the
/// rows of one token of several inputs. A type M says, for one sequence,
///
///     M::name                                   what explain(layer) calls it
///     M::inputs                                 K, a std::size_t
///     M::sizes                                  what the functions below need to know of the widths, a
///                                               trivially copyable type
///     M::of(widths)                             the sizes, from the inputs' widths, a std::array<index, K>.
///                                               argument_error where these do not fit
///     M::state(of), M::value(of)                numbers of S and of y_t
///     M::scratch(of)                            numbers of scratch that `back` needs
///     M::step<Team>(of, p, x, from, to, y)      S_t = to and y from S_{t−1} = from, which may be the same
///                                               memory; y null: S_t alone
///     M::back<Team>(of, p, x, S, y_bar, S_bar, x_bar, p_bar, scratch)
///                                               the adjoint: S = S_{t−1}; S_bar enters as the cotangent of
///                                               S_t that later tokens sent and leaves as that of S_{t−1};
///                                               x_bar[k] += …, p_bar += …, each of which may be null
///
/// A recurrence with parameters has, besides,
///
///     M::parameters(of)                         their number; `p` above is what prepare has made of them
///     M::declare(of, name)                      what they are, in expressions: parameter_specs, whose
///                                               numbers stand one behind the other
///     M::prepare<Team>(of, raw, p)
///     M::prepare_back<Team>(of, p, p_bar, raw_bar)                     raw_bar += …
///
/// One whose channels of y know nothing of each other may take a step of some of them, so that threads share
/// the channels of one sequence; and it may hoist what it computes of some inputs, once where these do not
/// depend on the iterate:
///
///     M::step_of<Team>(of, first, count, p, x, from, to, y)
///                                               step, of `count` channels; y null: S_t alone
///     M::hoisted_inputs                         which inputs: bit k is input k
///     M::hoisted(of)                            numbers for a token
///     M::hoist<Team>(of, p, x, to)
///     M::step_hoisted<Team>(of, first, count, hoisted, x, from, to, y)  step_of, to the bit
///
/// One that is affine in an input as wide as y, M::open_input, may open a token, y = p + g ⊙ u: what is
/// iterated is then two vectors, whatever the state is.
///
///     M::open<Team>(of, p, x, S, P, G, before)  S_t without what u adds, in place; P and G. `before`: the
///                                               rows of the token before, whose u has not been added to S
///                                               yet, or null
///     M::close<Team>(of, x, S)                  adds what u adds
///     M::open_back<Team>(of, p, x, S_bar, K, G)                        ū = G ⊙ ȳ + K of an open token
///     M::back_input<Team>(of, p, x, y_bar, S_bar, u_bar)               ū alone of `back`
///
/// One whose S_t is S_{t−1}, number by number, times factors that do not depend on it, plus what does not
/// either, says so by M::scales_state = true.
///
/// Everything else follows: carries and their cotangents, states that are recomputed in the backward pass,
/// iterations of a fixed point, chunks, streaming. check_recurrence<M>() in
/// fprnn/recurrences/check_recurrence.hpp says whether all of this holds.
template <class M>
concept recurrence = requires(typename M::sizes of, std::array<index, M::inputs> widths, double* p, const double* c,
                              detail::rows_of_token<M, double> x, detail::cotangents_of_token<M, double> x_bar) {
    { M::of(widths) } -> std::same_as<typename M::sizes>;
    { M::state(of) } -> std::convertible_to<index>;
    { M::value(of) } -> std::convertible_to<index>;
    { M::scratch(of) } -> std::convertible_to<index>;
    { M::name } -> std::convertible_to<const char*>;
    M::template step<serial_team<double>, double>(of, c, x, c, p, p);
    M::template back<serial_team<double>, double>(of, c, x, c, c, p, x_bar, p, p);
};
template <class M>
concept recurrence_with_parameters = recurrence<M> && requires(typename M::sizes of, double* p, const double* c) {
    { M::parameters(of) } -> std::convertible_to<index>;
    M::template prepare<serial_team<double>, double>(of, c, p);
    M::template prepare_back<serial_team<double>, double>(of, c, c, p);
};
template <class M>
concept scaling_recurrence = recurrence<M> && requires {
    requires M::scales_state;
};
template <class M>
concept opening_recurrence = recurrence<M> &&
    requires(typename M::sizes of, double* p, const double* c, detail::rows_of_token<M, double> x) {
    requires M::open_input < M::inputs;
    M::template open<serial_team<double>, double>(of, c, x, p, p, p, &x);
    M::template close<serial_team<double>, double>(of, x, p);
    M::template open_back<serial_team<double>, double>(of, c, x, c, p, p);
    M::template back_input<serial_team<double>, double>(of, c, x, c, p, p);
};
template <class M>
concept recurrence_of_channels = recurrence<M> &&
    requires(typename M::sizes of, double* p, const double* c, detail::rows_of_token<M, double> x) {
    M::template step_of<serial_team<double>, double>(of, index(), index(), c, x, c, p, p);
};
template <class M>
concept hoisting_recurrence = recurrence_of_channels<M> &&
    requires(typename M::sizes of, double* p, const double* c, detail::rows_of_token<M, double> x) {
    requires M::hoisted_inputs >
    0;
    { M::hoisted(of) } -> std::convertible_to<index>;
    M::template hoist<serial_team<double>, double>(of, c, x, p);
    M::template step_hoisted<serial_team<double>, double>(of, index(), index(), c, x, c, p, p);
};

template <class M>
inline constexpr bool is_recurrence = recurrence<M>;  // a concept in a static_assert would list all that it requires

namespace recurring {

/// Σ_{i<n} of terms that `add`(i, sum) adds, in four sums, so that an addition need not wait for the one
/// before. Inlined, because registers may alias everything: what `add` captures would be loaded again after
/// each store.
template <class V, class Add>
[[gnu::always_inline]] FPRNN_BOTH inline V sum_of(index n, const Add& add) {
    V a(0), b(0), c(0), d(0);
    for (index i = 0; i < n; ++i) {
        const V oldest = a;
        a = b, b = c, c = d;
        d = add(i, oldest);
    }
    return (a + b) + (c + d);
}

/// Numbers of parameters, 0 where there are none.
template <class M>
index parameters(const typename M::sizes& of) {
    if constexpr (recurrence_with_parameters<M>)
        return M::parameters(of);
    else
        return 0;
}

/// Rows of the tokens of one sequence: token t of input k begins at data[k] + t · stride[k].
template <class M, class T>
struct rows {
    small_array<T*, M::inputs> data;
    small_array<index, M::inputs> stride;

    FPRNN_BOTH small_array<T*, M::inputs> operator[](index t) const {
        small_array<T*, M::inputs> at;
        for (std::size_t k = 0; k < M::inputs; ++k) at[k] = data[k] ? data[k] + t * stride[k] : nullptr;
        return at;
    }
};

/// S of `tokens` tokens from token `first` on, from S = from to S = to, which may be the same memory.
template <class M, class Team, class T>
FPRNN_BOTH void advance(const typename M::sizes& of, index first, index tokens, const T* p, const rows<M, const T>& x,
                        const T* from, T* to) {
    for (index t = 0; t < tokens; ++t)
        M::template step<Team, T>(of, p, x[first + t], t == 0 ? from : to, to, static_cast<T*>(nullptr));
}

/// Tokens between two states that `back` keeps while it recomputes the others.
inline constexpr index tokens_of_a_block = 16;

/// Numbers of scratch that `back` needs for so many tokens.
template <class M>
index scratch(const typename M::sizes& of, index tokens) {
    const index blocks = (tokens + tokens_of_a_block - 1) / tokens_of_a_block;
    const index inside = tokens < tokens_of_a_block ? tokens : tokens_of_a_block;
    const index states = (blocks > 0 ? blocks - 1 : 0) + (inside > 0 ? inside - 1 : 0);
    return M::scratch(of) + states * M::state(of);
}

/// The adjoint of all tokens from S = S_{−1}: states are recomputed once, keeping one in 16, and again block
/// by block. S_bar enters as the cotangent of S_{T−1} and leaves as that of S_{−1}. y_bar: rows `y_stride`
/// apart.
template <class M, class Team, class T>
FPRNN_BOTH void back(const typename M::sizes& of, index tokens, const T* p, const rows<M, const T>& x, const T* S,
                     const T* y_bar, index y_stride, T* S_bar, const rows<M, T>& x_bar, T* p_bar, T* memory) {
    constexpr index length = tokens_of_a_block;
    const index state = M::state(of), blocks = (tokens + length - 1) / length;
    T* starts = memory + M::scratch(of);  // of all blocks but the first
    T* inside = starts + (blocks > 0 ? blocks - 1 : 0) * state;
    const auto start = [&](index k) { return k == 0 ? S : static_cast<const T*>(starts + (k - 1) * state); };
    for (index k = 1; k < blocks; ++k)
        advance<M, Team>(of, (k - 1) * length, length, p, x, start(k - 1), starts + (k - 1) * state);
    for (index k = blocks - 1; k >= 0; --k) {
        const index first = k * length, last = first + length < tokens ? first + length : tokens;
        const auto before = [&](index t) {
            return t == first ? start(k) : static_cast<const T*>(inside + (t - 1 - first) * state);
        };
        for (index t = first; t + 1 < last; ++t)
            advance<M, Team>(of, t, 1, p, x, before(t), inside + (t - first) * state);
        for (index t = last - 1; t >= first; --t)
            M::template back<Team, T>(of, p, x[t], before(t), y_bar + t * y_stride, S_bar, x_bar[t], p_bar, memory);
    }
}

}  // namespace recurring

}  // namespace fprnn
