#pragma once

#include <fprnn/recurrences/recurrence_laws.hpp>

#ifdef FPRNN_EIGEN

namespace fprnn {

/// Tries the laws of fprnn::recurrence on M, on serial_team, pack_team and a team of three threads, with
/// random numbers in double, for sequences of 35 tokens:
///
///     step         is claims.plain, where there is one; has the same state without y and in place; goes on
///                  where a call before ended
///     open, close  have the y and the state of step, with and without a token before that was not closed
///     step_of      of some channels and of the others is step; step_hoisted is step to the bit
///     back         accumulates; a null cotangent changes no other; open_back and back_input send what it
///                  does
///     gradients    of inputs, parameters and the state before are what difference quotients say, through
///                  states that are recomputed
///     all          write what they are given and nothing beside it, read nothing that scratch held before,
///                  and give on several threads what they give on one
///
/// Returns what is broken, and does not throw because of it. argument_error when no widths are claimed or
/// M::of refuses some.
///
///     const auto verdict = fprnn::check_recurrence<my_recurrence>({.widths = {{4, 4}, {17, 17}}});
///     if (!verdict.ok()) throw std::runtime_error(verdict.to_string());
template <class M>
recurrence_verdict check_recurrence(const recurrence_claims<M>& claims) {
    static_assert(is_recurrence<M>,
                  "check_recurrence<M>: M must satisfy the concept fprnn::recurrence: inputs, sizes, of, state, value, "
                  "scratch, step and back, see fprnn/recurrences/recurrence.hpp");
    recurrence_verdict verdict;
    if constexpr (is_recurrence<M>) {
        require(!claims.widths.empty(), "check_recurrence",
                [] { return std::string("widths must name at least one tuple of widths to try, got none"); });
        for (const auto& widths : claims.widths) {
            using serial = serial_team<double>;
            detail::recurrence_laws<M, serial>(claims, widths, "serial_team", verdict).try_all();
            detail::recurrence_laws<M, pack_team<double>>(claims, widths, "pack_team", verdict).try_all();
            if (verdict.ok() && claims.several_threads)
                detail::recurrence_laws<M, detail::team_of_turns>(claims, widths, "3 threads", verdict)
                    .try_on_threads(detail::recurrence_laws<M, serial>(claims, widths, "serial_team", verdict));
        }
    }
    return verdict;
}

}  // namespace fprnn

#endif
