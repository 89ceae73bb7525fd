#pragma once

#include <fprnn/backend/eigen.hpp>
#include <fprnn/mixers/mixer_laws.hpp>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#ifdef FPRNN_EIGEN  // it tries mixers on packs, too

namespace fprnn {

namespace detail {

template <class M>
bool accepts_width(index D) {
    if constexpr (requires { M::check(D); }) try {
            M::check(D);
        } catch (const argument_error&) {
            return false;
        }
    return true;
}

/// Widths below, at and above a register.
template <class M>
std::vector<index> widths_of() {
    std::vector<index> widths{1, 2, 3, 4, 8, 17, 18};
    std::erase_if(widths, [](index D) { return !accepts_width<M>(D); });
    constexpr index most = 1024;
    for (index D = 1; widths.empty() && D <= most; ++D)
        if (accepts_width<M>(D)) widths.push_back(D);
    require(!widths.empty(), "check_mixer", [] {
        return "the mixer's check refuses every width from 1 to " + std::to_string(most) +
               "; expected one that it accepts in widths";
    });
    return widths;
}

template <class Team>
std::string team_name() {
    if constexpr (std::is_same_v<Team, serial_team<double>>)
        return "serial_team";
    else if constexpr (std::is_same_v<Team, pack_team<double>>)
        return "pack_team";
    else
        return "its team";
}

}  // namespace detail

/// Tries the laws of fprnn::mixer on M, on the given teams, none given: on serial_team and pack_team, with
/// random raw numbers in double:
///
///     mix          overwrites out; linear in v and w; w + Q (v − w); a null v or w is zero; out may be v; Q
///                  is claims.dense
///     mix_back     v̄ += Qᵀ ō, w̄ += ō − Qᵀ ō, to rounding, entry by entry; either may be null
///     mix_back_q, prepare_back     += what difference quotients say, for every prepared and raw number
///     compact      I − Q = U S Uᵀ with S lower triangular, where M is a compact_mixer
///     norm         ‖Q‖₂ ≤ 1 and ‖I − Q‖₂ < 1, where these are claimed
///     all          write what they are given and nothing beside it, read nothing that scratch held before
///     threads      unless claims.several_threads is false, and only if all other laws hold: a team of three
///                  threads, each with some of the channels, gives the results of one thread, without a wait
///                  between mix_back and mix_back_q. It finds loops without Team, and most missing waits
///
/// Returns what is broken, and does not throw because of it. Functions that read where they must not (a null
/// v, say) end the program as they do anywhere; AddressSanitizer says where. argument_error when M::check
/// refuses one of claims.widths or, where none are named, all of them.
///
///     const auto verdict = fprnn::check_mixer<my_mixer>();
///     if (!verdict.ok()) throw std::runtime_error(verdict.to_string());
template <class M, class... Teams>
mixer_verdict check_mixer(const mixer_claims& claims = {}) {
    static_assert(is_mixer<M>,
                  "check_mixer<M>: M must satisfy the concept fprnn::mixer: size, raw_sizes, scratch, prepare, "
                  "prepare_back, mix, mix_back and mix_back_q, see fprnn/mixers/mixer.hpp");
    if constexpr (!is_mixer<M>) {
        return {};
    } else if constexpr (sizeof...(Teams) == 0) {
        return check_mixer<M, serial_team<double>, pack_team<double>>(claims);
    } else {
        mixer_verdict verdict{claims.widths.empty() ? detail::widths_of<M>() : claims.widths, {}};
        if constexpr (requires { M::check(index{}); })
            for (const index D : verdict.widths) M::check(D);
        const auto try_on = [&]<class Team>(std::type_identity<Team>) {
            for (const index D : verdict.widths)
                detail::mixer_laws(detail::functions_of<M, Team>(detail::team_name<Team>(), D), claims, verdict)
                    .try_all();
        };
        (try_on(std::type_identity<Teams>{}), ...);
        if (verdict.ok() && claims.several_threads)
            for (const index D : verdict.widths)
                detail::mixer_laws(detail::functions_of<M, detail::team_of_turns>("3 threads", D), claims, verdict)
                    .try_on_threads(detail::mixer_trial(
                        detail::functions_of<M, serial_team<double>>(detail::team_name<serial_team<double>>(), D)));
        return verdict;
    }
}

}  // namespace fprnn

#endif
