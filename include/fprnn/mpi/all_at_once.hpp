#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/mpi/agree.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

/// A layer on sequences whose tokens lie on consecutive ranks, which solve them at the same time. In a round
/// a rank solves its own tokens from the carry that it has, zero at first, and exchanges the carry behind
/// them; where another carry has arrived, it solves them again. After as many rounds as there are ranks the
/// solution is, to the bit, that of ranks that wait for each other (fprnn/mpi/pieces.hpp); where a state
/// forgets, fewer rounds are near it. Cotangents go back in rounds, too, and what they send adds up.
///
///     const auto [y, taken] = mpi::all_at_once(all, tape, layer, sizes, "", x, {.tolerance = 1e-3});
///     tape.back(loss);                      // of this rank's tokens; the losses of all ranks add up
///     mpi::sum(all, std::span(gradient));   // of all tokens, on every rank
///     taken->forward.rounds                 // and .residual, .converged
namespace fprnn::mpi {

/// When rounds end; the same on all ranks.
struct rounds {
    /// Of a carry ‖arrived − had‖/‖arrived‖, of a cotangent ‖arrived in this round‖/‖arrived in all‖: the
    /// largest over sequences and ranks. 0: nothing changes any more, after at most as many rounds as there
    /// are ranks.
    double tolerance = 0;
    index most = std::numeric_limits<index>::max();

    /// argument_error when a member is out of its range.
    void validate() const {
        require(tolerance >= 0 && math::is_finite(tolerance), "mpi::rounds", [&] {
            return "tolerance must be at least 0 and finite, got " + fprnn::detail::number_text(tolerance);
        });
        require(most >= 1, "mpi::rounds", [&] { return "most must be at least 1, got " + std::to_string(most); });
    }
};

/// How they have ended, the same on all ranks.
struct rounds_taken {
    struct way {
        index rounds = 0;  ///< 0: it has not been gone
        double residual = 0;
        bool converged = true;
    };
    way forward{}, backward{};
};

namespace detail {

/// The largest ‖some‖/‖all‖ of a sequence: 0 where `some` is zero, infinite where it is not finite.
template <class T>
double largest_share(const tensor<T>& some, const tensor<T>& all) {
    const index B = all.shape()[0], width = all.shape()[1];
    double largest = 0;
    for (index b = 0; b < B; ++b) {
        double part = 0, whole = 0;
        for (index i = 0; i < width; ++i) {
            part += std::norm(some[b * width + i]);
            whole += std::norm(all[b * width + i]);
        }
        if (part == 0) continue;
        const double share = std::sqrt(part / whole);
        largest = math::is_finite(share) ? std::max(largest, share) : std::numeric_limits<double>::infinity();
    }
    return largest;
}

/// What the neighbour gives: the rank before, or, backwards, the rank behind; where there is none `arrived`
/// stays.
template <class T>
void exchange(ranks& all, const tensor<T>& mine, tensor<T>& arrived, bool forwards) {
    const index step = forwards ? 1 : -1, to = all.rank() + step, from = all.rank() - step;
    const auto is_there = [&](index rank) { return rank >= 0 && rank < all.size(); };
    if (is_there(to)) all.send(std::as_bytes(std::span(mine.begin(), mine.end())), to);
    if (is_there(from)) all.receive(std::as_writable_bytes(std::span(arrived.begin(), arrived.end())), from);
}

/// Whether a round was the last; `change` is that of this rank's carry or cotangent.
inline bool is_last(ranks& all, const rounds& how, double change, rounds_taken::way& taken) {
    taken.residual = 0;
    for (auto& bytes : all.gather(std::as_bytes(std::span(&change, 1))))
        taken.residual = std::max(taken.residual, fprnn::detail::packed(std::move(bytes)).get<double>());
    taken.converged = taken.residual <= how.tolerance;
    return ++taken.rounds >= how.most || taken.converged;
}

/// solve(carry) returns the carry behind this rank's tokens, which are its last call's when the rounds end.
template <class T, class Solve>
rounds_taken::way solve_in_rounds(ranks& all, const rounds& how, const shape& carried, const Solve& solve) {
    rounds_taken::way taken;
    tensor<T> had(carried), arrived(carried), behind(carried), difference(carried);
    for (bool is_another = true;;) {
        if (is_another) behind = solve(std::as_const(had));
        exchange(all, behind, arrived, true);
        std::transform(arrived.begin(), arrived.end(), had.begin(), difference.begin(), [](T a, T b) { return a - b; });
        // Numbers that are not finite differ from themselves.
        is_another = !std::ranges::equal(std::as_bytes(std::span(arrived.begin(), arrived.end())),
                                         std::as_bytes(std::span(had.begin(), had.end())));
        if (is_last(all, how, is_another ? largest_share(difference, arrived) : 0, taken)) return taken;
        had = arrived;
    }
}

/// back(cotangent of the carry behind, is_first) returns that of the carry before, in the first round with
/// what the tokens' own cotangents send.
template <class T, class Back>
rounds_taken::way back_in_rounds(ranks& all, const rounds& how, const shape& carried, const Back& back) {
    rounds_taken::way taken;
    tensor<T> arrived(carried), sum(carried), before(carried);
    for (bool has_arrived = true;;) {
        if (has_arrived)
            before = back(std::as_const(arrived), taken.rounds == 0);
        else
            std::fill(before.begin(), before.end(), T(0));
        exchange(all, before, arrived, false);
        std::transform(sum.begin(), sum.end(), arrived.begin(), sum.begin(), [](T a, T b) { return a + b; });
        const double change = largest_share(arrived, sum);
        has_arrived = change > 0;
        if (is_last(all, how, change, taken)) return taken;
    }
}

/// That of all ranks is one sequence, with one rule.
inline void agree_on_rounds(ranks& all, const shape& x, const rounds& how) {
    agree(all, "mpi::all_at_once", message_of([&] {
              fprnn::detail::require_rank("all_at_once", "x", x, 3, "[B,T,d_in]");
              how.validate();
          }));
    const auto have_alike = [&](const std::string& mine) { agree_on(all, "mpi::all_at_once", mine); };
    have_alike("[B,·,d_in] of B = " + std::to_string(x[0]) + " and d_in = " + std::to_string(x[2]));
    have_alike("rounds.tolerance = " + fprnn::detail::number_text(how.tolerance));
    have_alike("rounds.most = " + std::to_string(how.most));
}

}  // namespace detail

/// This rank's tokens of the solution.
template <class T>
struct piece_at_once {
    solution<T> solved;  ///< as the layer returns it
    rounds_taken taken;
};

/// x: this rank's [B,T,d_in], T any number. Errors: those of the layer; ranks with other B or d_in, or other
/// rounds, on all of them.
template <class T, class Root, host_memory_backend<T> Backend = default_backend>
piece_at_once<T> all_at_once(ranks& all, const layer<Root>& f, const layer_parameters<T>& theta, const tensor<T>& x,
                             const rounds& how = {}, Backend backend = {}) {
    detail::agree_on_rounds(all, x.shape(), how);
    piece_at_once<T> piece;
    piece.taken.forward =
        detail::solve_in_rounds<T>(all, how, {x.shape()[0], f.carry_width(theta.widths)}, [&](const tensor<T>& carry) {
            piece.solved = f(theta, x, carry, backend);
            return piece.solved.carry;
        });
    return piece;
}

/// On a tape.
struct recorded_at_once {
    variable value;                             ///< [B,T,width]
    std::shared_ptr<const rounds_taken> taken;  ///< `backward` once the tape has gone back
};

/// The same as one record of a tape; `solved`, where it is not null, receives the convergence of this rank's
/// last solve. The tapes of all ranks go back together.
template <class T, class Root, host_memory_backend<T> Backend>
recorded_at_once all_at_once(ranks& all, tape<T, Backend, T>& t, const layer<Root>& f, const dims& size,
                             const std::string& prefix, variable x, const rounds& how = {},
                             convergence* solved = nullptr) {
    struct kept_by_tape : layer<Root>::template record<T, Backend> {};
    detail::agree_on_rounds(all, t.value(x).shape(), how);
    const index offset = f.parameter_offset(t.parameters(), size, prefix);
    auto& kept = t.template keep<kept_by_tape>();
    const shape carried{t.value(x).shape()[0], f.carry_width(size)};
    const auto taken = std::make_shared<rounds_taken>();
    solution<T> result;
    taken->forward = detail::solve_in_rounds<T>(all, how, carried, [&](const tensor<T>& carry) {
        result = f.template run<T>(size, t.parameters_there().data() + offset, std::as_const(t.value(x)).view(),
                                   carry.view(), t.backend(), &kept);
        return result.carry;
    });
    if (solved) *solved = result;
    const auto back = [&all, &kept, x, f, how, carried, offset, taken](tape<T, Backend, T>& tp, variable self) {
        tensor<T> y_bar = tp.bar(self);
        taken->backward = detail::back_in_rounds<T>(all, how, carried, [&](const tensor<T>& behind, bool is_first) {
            if (!is_first) std::fill(y_bar.begin(), y_bar.end(), T(0));
            tensor<T> before(carried);
            f.back(kept, std::as_const(tp.value(x)).view(), std::as_const(y_bar).view(), tp.bar(x).view(),
                   tp.parameter_bar_data() + offset, tp.backend(), {behind.view(), before.view()});
            return before;
        });
    };
    return {t.record(std::move(result.value), back), taken};
}

}  // namespace fprnn::mpi
