#pragma once

#include <fprnn/backend/reference.hpp>

#include <concepts>
#include <utility>

namespace fprnn {

/// Whether prepare and prepare_back of M take scratch.
template <class M>
concept prepares_in_scratch = requires(index D) {
    { M::prepare_scratch(D) } -> std::convertible_to<index>;
};

namespace detail {
template <class M>
concept prepares_alone = requires(index D, double* q, const double* c, const double* const* raw, double* const* bar) {
    M::template prepare<serial_team<double>, double>(D, raw, q);
    M::template prepare_back<serial_team<double>, double>(D, raw, c, c, bar);
};
template <class M>
concept prepares_with_scratch = prepares_in_scratch<M> &&
    requires(index D, double* q, const double* c, const double* const* raw, double* const* bar) {
    M::template prepare<serial_team<double>, double>(D, raw, q, q);
    M::template prepare_back<serial_team<double>, double>(D, raw, c, c, bar, q);
};
}  // namespace detail

/// A mixer Q_t: matrices given by the numbers of a token, used through
///
///     out = Q v + (I − Q) w = w + Q (v − w)
///
/// and its adjoints. Any linear map of a token's row of D channels is one, whatever its numbers are. They
/// come from expressions, linear maps as a rule, one row of raw numbers a map. A mixer type M works on one
/// token:
///
///     M::raw_sizes(D)                                 numbers that each of its maps gives, as a std::array
///     M::size(D)                                      numbers of the prepared form
///     M::scratch(D)                                   numbers of scratch that the functions below need
///     M::check(D)                                     argument_error when D does not fit; may be left out
///     M::name                                         what explain(layer) calls it; may be left out
///     M::prepare<Team>(D, raw, q)                     q from the values of its maps, raw[k]
///     M::prepare_back<Team>(D, raw, q, q_bar, raw_bar)             raw_bar[k] +=; q is what prepare made of
///                                                                  raw
///     M::prepare_scratch(D)                           where M has it, prepare and prepare_back receive so
///                                                     many numbers of scratch as their last argument
///     M::mix<Team>(D, q, v, w, out, scratch)          a null v or w is zero; out may be v
///     M::mix_back<Team>(D, q, out_bar, v_bar, w_bar, scratch)      v̄ += Qᵀ ō,  w̄ += ō − Qᵀ ō; either
///                                                                  may be null
///     M::mix_back_q<Team>(D, q, v, w, out_bar, q_bar, scratch)     q̄ +=; a null v or w is zero
///
/// A team executes them, of one thread or of several, each with some of the channels. So that a mixer runs on
/// several, too,
///
///     FPRNN_BOTH               is said of each of these functions, but for sizes and check, and of what they
///                              call: a GPU takes no other mixer
///     Team::each, sum, max     go over channels, n ≤ D at a time; in all of them a thread has the same ones
///                              of n
///     Team::once               writes what belongs to no channel
///     held, room               of fprnn/backend/backend.hpp say which rows they read more than once; one
///                              that calls them has M::holds = true, so that these are registers
///     Team::once([] {})        waits, before what another thread has written in this function is read, and
///                              before it is overwritten
///
/// Everybody waits between two functions, but not between mix_back and mix_back_q. A mixer of plain loops is
/// one for the CPU alone: each thread goes through all of them, and adjoints add what they add as often as
/// there are threads.
///
/// In an expression it is mixer_node<M, Maps...>, see householder in fprnn/expression/mixers.hpp.
/// check_mixer<M>() in fprnn/mixers/check_mixer.hpp says whether all of this holds.
template <class M>
concept mixer = (detail::prepares_alone<M> || detail::prepares_with_scratch<M>)&&requires(index D, double* p,
                                                                                          const double* c) {
    { M::size(D) } -> std::convertible_to<index>;
    { M::raw_sizes(D)[0] } -> std::convertible_to<index>;
    { M::scratch(D) } -> std::convertible_to<index>;
    M::template mix<serial_team<double>, double>(D, c, c, c, p, p);
    M::template mix_back<serial_team<double>, double>(D, c, c, p, p, p);
    M::template mix_back_q<serial_team<double>, double>(D, c, c, c, c, p, p);
};

template <class M>
inline constexpr bool is_mixer = mixer<M>;  // a concept in a static_assert would list all that it requires

namespace mixing {

/// Numbers of scratch that prepare and prepare_back of M take.
template <class M>
index prepare_scratch(index D) {
    if constexpr (prepares_in_scratch<M>)
        return M::prepare_scratch(D);
    else
        return 0;
}
/// M::prepare, with scratch where M takes some.
template <class M, class Team, class T>
FPRNN_BOTH void prepare(index D, const T* const* raw, T* q, T* scratch) {
    if constexpr (prepares_in_scratch<M>)
        M::template prepare<Team, T>(D, raw, q, scratch);
    else
        M::template prepare<Team, T>(D, raw, q);
}
template <class M, class Team, class T>
FPRNN_BOTH void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar, T* scratch) {
    if constexpr (prepares_in_scratch<M>)
        M::template prepare_back<Team, T>(D, raw, q, q_bar, raw_bar, scratch);
    else
        M::template prepare_back<Team, T>(D, raw, q, q_bar, raw_bar);
}

}  // namespace mixing

/// Whether its functions hold rows.
template <class M>
inline constexpr bool mixer_holds_rows = false;
template <class M>
    requires(M::holds)
inline constexpr bool mixer_holds_rows<M> = true;

/// A mixer whose I − Q has low rank, I − Q = U S Uᵀ with S lower triangular: U is the first `rank` rows of D
/// numbers of the prepared form, and
///
///     M::rank                      R, an int
///     M::compact<Team>(D, q, S)    S [R,R] from the prepared form
///
/// One-token chunks are then iterated in R numbers instead of D, see fprnn/fixed_point/token.hpp.
template <class M>
concept compact_mixer = mixer<M> && requires(index D, const double* c) {
    requires M::rank >= 1;
    M::template compact<serial_team<double>, double>(
        D, c,
        std::declval<
            small_array<small_array<double, static_cast<std::size_t>(M::rank)>, static_cast<std::size_t>(M::rank)>&>());
};

}  // namespace fprnn
