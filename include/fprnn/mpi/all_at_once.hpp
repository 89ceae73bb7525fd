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
    /// largest over sequences and ranks. 0: nothing changes any more, as a rule after as many rounds as there
    /// are ranks, at that many times the work of ranks that wait.
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
        index rounds = 0;  ///< 0: not run yet
        double residual = 0;
        bool converged = true;
    };
    way forward{}, backward{};
};

namespace detail {

/// The largest ‖some‖/‖all‖ of a sequence, positive also where it underflows, infinite where it is not
/// finite.
template <class T>
double largest_share(const tensor<T>& some, const tensor<T>& all) {
    const index B = all.shape()[0], width = all.shape()[1];
    double largest = std::numeric_limits<double>::min();
    for (index b = 0; b < B; ++b) {
        double part = 0, whole = 0;  // by hypot, as squares may be too small or too large
        for (index i = b * width; i < (b + 1) * width; ++i) {
            part = std::hypot(part, static_cast<double>(some[i]));
            whole = std::hypot(whole, static_cast<double>(all[i]));
        }
        if (part == 0) continue;
        const double share = part / whole;
        largest = math::is_finite(share) ? std::max(largest, share) : std::numeric_limits<double>::infinity();
    }
    return largest;
}

/// What the neighbour gives: the rank before, or, backwards, the rank behind; where there is none `arrived`
/// stays. Every second rank sends first, so that no message waits for more than one other.
template <class T>
void exchange(ranks& all, const tensor<T>& mine, tensor<T>& arrived, bool forwards) {
    const index step = forwards ? 1 : -1, to = all.rank() + step, from = all.rank() - step;
    const auto is_there = [&](index rank) { return rank >= 0 && rank < all.size(); };
    const auto send = [&] {
        if (is_there(to)) all.send(std::as_bytes(std::span(mine.begin(), mine.end())), to);
    };
    const auto receive = [&] {
        if (is_there(from)) all.receive(std::as_writable_bytes(std::span(arrived.begin(), arrived.end())), from);
    };
    if (all.rank() % 2 == 0) {
        send();
        receive();
    } else {
        receive();
        send();
    }
}

/// Counts the round; returns whether it was the last. `change` is that of this rank's carry or cotangent.
inline bool end_round(ranks& all, const rounds& how, double change, rounds_taken::way& taken) {
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
        // Compared as bytes: a NaN differs from itself.
        is_another = !std::ranges::equal(std::as_bytes(std::span(arrived.begin(), arrived.end())),
                                         std::as_bytes(std::span(had.begin(), had.end())));
        if (end_round(all, how, is_another ? largest_share(difference, arrived) : 0, taken)) return taken;
        had = arrived;
    }
}

/// back(behind, before, is_first) adds what the cotangent of the carry behind sends to that of the carry
/// before, in the first round with what the tokens' own cotangents send.
template <class T, class Back>
rounds_taken::way back_in_rounds(ranks& all, const rounds& how, const shape& carried, const Back& back) {
    rounds_taken::way taken;
    tensor<T> arrived(carried), sum(carried), before(carried);
    for (bool has_arrived = true;;) {
        std::fill(before.begin(), before.end(), T(0));
        if (has_arrived) back(std::as_const(arrived), before, taken.rounds == 0);
        exchange(all, before, arrived, false);
        std::transform(sum.begin(), sum.end(), arrived.begin(), sum.begin(), [](T a, T b) { return a + b; });
        has_arrived = std::any_of(arrived.begin(), arrived.end(), [](T g) { return g != T(0); });
        if (end_round(all, how, has_arrived ? largest_share(arrived, sum) : 0, taken)) return taken;
    }
}

/// Checks that all ranks have pieces of the same sequences, carries of one width and the same rounds. `check`
/// is what a rank refuses by itself.
template <class Check>
void agree_on_rounds(ranks& all, const shape& x, index carry_width, const rounds& how, Check check) {
    agree(all, "mpi::all_at_once", message_of([&] {
              fprnn::detail::require_rank("all_at_once", "x", x, 3, "[B,T,d_in]");
              how.validate();
              check();
          }));
    const auto have_alike = [&](const std::string& mine) { agree_on(all, "mpi::all_at_once", mine); };
    have_alike("[B,·,d_in] of B = " + std::to_string(x[0]) + " and d_in = " + std::to_string(x[2]));
    have_alike("carries of " + std::to_string(carry_width) + " numbers");
    have_alike("rounds.tolerance = " + fprnn::detail::number_text(how.tolerance));
    have_alike("rounds.most = " + std::to_string(how.most));
}

/// A place in attention's carry is one of the whole sequence, and moves from round to round.
template <class Root>
inline constexpr bool has_places = layer<Root>::nodes.contains(graph::kind::attention);

}  // namespace detail

/// This rank's tokens of the solution.
template <class T>
struct piece_at_once {
    solution<T> solved;  ///< as the layer returns it, of the last round
    rounds_taken taken;
};

/// x: this rank's [B,T,d_in], of any number of tokens, also none. Errors, on all ranks: x of another rank or
/// width, ranks with other B, d_in, carries or rounds. What the layer throws on one rank alone ends a program
/// in mpi::run; where it is caught, the other ranks wait.
template <class T, class Root, host_memory_backend<T> Backend = default_backend>
piece_at_once<T> all_at_once(ranks& all, const layer<Root>& f, const layer_parameters<T>& theta, const tensor<T>& x,
                             const rounds& how = {}, Backend backend = {}) {
    static_assert(!detail::has_places<Root>,
                  "mpi::all_at_once: attention has places in the whole sequence: use receive_carry and hand_on");
    const T* parameters = nullptr;
    const index width = f.carry_width(theta.widths);
    detail::agree_on_rounds(all, x.shape(), width, how, [&] { parameters = f.parameters_of(theta); });
    piece_at_once<T> piece;
    piece.taken.forward =
        detail::solve_in_rounds<T>(all, how, {x.shape()[0], width}, [&](const tensor<T>& carry) -> const tensor<T>& {
            f.template run<T>(theta.widths, parameters, x.view(), carry.view(), backend, nullptr, piece.solved);
            return piece.solved.carry;
        });
    return piece;
}

/// On a tape.
struct recorded_at_once {
    variable value;                             ///< [B,T,width]
    std::shared_ptr<const rounds_taken> taken;  ///< `backward` once the tape has gone back
};

/// The same as one record of a tape. `solved`, where it is not null, receives the convergence of this rank's
/// last round, and of the adjoint's once the tape has gone back; the value stays on the tape. The tapes of
/// all ranks go back together.
template <class T, class Root, host_memory_backend<T> Backend>
recorded_at_once all_at_once(ranks& all, tape<T, Backend, T>& t, const layer<Root>& f, const dims& size,
                             const std::string& prefix, variable x, const rounds& how = {},
                             solution<T>* solved = nullptr) {
    static_assert(!detail::has_places<Root>,
                  "mpi::all_at_once: attention has places in the whole sequence: use receive_carry and hand_on");
    struct kept_by_tape : layer<Root>::template record<T, Backend> {};
    index offset = 0;
    const index width = f.carry_width(size);
    detail::agree_on_rounds(all, t.value(x).shape(), width, how,
                            [&] { offset = f.parameter_offset(t.parameters(), size, prefix); });
    auto& kept = t.template keep<kept_by_tape>();
    if (kept.adjoint_convergence.use_count() > 1) kept.adjoint_convergence = std::make_shared<convergence>();
    const shape carried{t.value(x).shape()[0], width};
    const auto taken = std::make_shared<rounds_taken>();
    solution<T> result;
    result.value = t.make({0});
    taken->forward = detail::solve_in_rounds<T>(all, how, carried, [&](const tensor<T>& carry) -> const tensor<T>& {
        f.template run<T>(size, t.parameters_there().data() + offset, std::as_const(t.value(x)).view(), carry.view(),
                          t.backend(), &kept, result);
        return result.carry;
    });
    const auto back = [&all, &kept, x, f, how, carried, offset, taken](tape<T, Backend, T>& tp, variable self) {
        tensor<T> none;
        taken->backward = detail::back_in_rounds<T>(
            all, how, carried, [&](const tensor<T>& behind, tensor<T>& before, bool is_first) {
                if (!is_first && none.shape() != tp.value(self).shape()) none.assign(tp.value(self).shape());
                const tensor<T>& y_bar = is_first ? tp.bar(self) : none;
                f.back(kept, std::as_const(tp.value(x)).view(), y_bar.view(), tp.bar(x).view(),
                       tp.parameter_bar_data() + offset, tp.backend(), {behind.view(), before.view()});
            });
        kept.kept.reset();  // for the next step, which begins with the pool as this one did
    };
    const variable value = t.record(std::move(result.value), back);
    if (solved) {
        *solved = std::move(result);
        solved->value = {};
        solved->adjoint = kept.adjoint_convergence;
    }
    return {value, taken};
}

}  // namespace fprnn::mpi
