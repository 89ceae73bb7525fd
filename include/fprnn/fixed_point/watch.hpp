#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/host_device.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/fixed_point/solution.hpp>

#include <cstdint>
#include <limits>
#include <new>

/// When an iteration ends, sequence by sequence, and how.
namespace fprnn::engine {

/// ‖f − y‖ and ‖f‖ over a sequence's tokens: the largest relative and the largest absolute step.
template <class T>
struct step_size {
    T relative = 0, absolute = 0;
    bool finite = true;
};

template <class Team, class T>
FPRNN_BOTH step_size<T> measure_step(const T* to, const T* from, index channels, index stride, index tokens) {
    step_size<T> size;
    for (index t = 0; t < tokens; ++t, to += stride, from += stride) {
        const auto reached = held<Team>(channels, to);
        const T change = Team::max(channels, [&](auto lane) {
            using math::abs;
            return abs(lane.load(reached) - lane.load(from));
        });
        const T scale = Team::max(channels, [&](auto lane) {
            using math::abs;
            return abs(lane.load(reached));
        });
        size.finite = size.finite && math::is_finite(change) && math::is_finite(scale);
        size.absolute = math::maximum(size.absolute, change);
        size.relative = math::maximum(size.relative, change / (scale + T(1e-8)));
    }
    return size;
}

/// y ← δ f + (1 − δ) y
template <class Team, class T>
FPRNN_BOTH void go_to(index channels, T delta, const T* f, T* y) {
    if (delta == T(1))
        Team::each(channels, [&](auto lane) { lane.store(y, lane.load(f)); });
    else
        Team::each(channels, [&](auto lane) {
            using V = decltype(lane.load(f));
            lane.store(y, V(delta) * lane.load(f) + V(T(1) - delta) * lane.load(y));
        });
}

/// What the chunks of one sequence came to.
struct tally {
    fprnn::status status = status::converged;  ///< the worst
    int iterations = 0;                        ///< the most
    double residual = 0;                       ///< the largest
    index total_iterations = 0, tokens_converged = 0;
};

/// What an iteration's end and its steps depend on, as numbers.
struct iteration_rule {
    double tolerance;  ///< of the residual; 0 where none ends it
    int ell_max;       ///< evaluations, or applications of an adjoint
    double start = 1;  ///< δ, the share of f(y) in the next iterate
    double decay = 1;  ///< of δ, after `patience` evaluations without a new smallest residual
    int patience = 1;
};

/// Follows one sequence through an iteration until it is done; from then on the sequence is frozen, so that
/// it does not depend on how long its neighbours take.
template <class T>
class watch {
public:
    FPRNN_BOTH explicit watch(const iteration_rule& rule) : rule_(rule), delta_(rule.start), patience_(rule.patience) {}

    FPRNN_BOTH bool running() const { return running_; }
    FPRNN_BOTH int iterations() const { return iterations_; }
    FPRNN_BOTH double residual() const { return residual_; }
    FPRNN_BOTH double best() const { return best_; }
    /// δ of the next step, from y to δ f(y) + (1 − δ) y.
    FPRNN_BOTH double delta() const { return delta_; }
    /// δ of the step that was taken last.
    FPRNN_BOTH double delta_of_step() const { return delta_of_step_; }

    /// Goes on after `ell` iterations that somebody else has made.
    FPRNN_BOTH void go_on_from(int ell) { iterations_ = ell; }
    /// Takes the next step, ℓ = 1, 2, …
    FPRNN_BOTH void take(const step_size<T>& step) {
        const int ell = ++iterations_;
        delta_of_step_ = delta_;
        residual_ = step.finite ? static_cast<double>(step.relative) : infinite;
        if (!step.finite) {
            finish(ell == 1 ? status::nonfinite : status::diverged);
        } else if (step.relative < rule_.tolerance) {
            finish(status::converged);
        } else if (ell >= rule_.ell_max) {
            // An orbit's steps do not shrink; where rounding stops them, they are too small to be one.
            last_quarter_ = math::maximum(last_quarter_, step.absolute);
            const bool shrank =
                third_quarter_ == T(0) || last_quarter_ < T(0.99) * third_quarter_ || step.relative < rounding;
            finish(shrank ? status::max_iterations : status::diverged);
        }
        T& quarter = 4 * std::int64_t{ell} > 3 * std::int64_t{rule_.ell_max} ? last_quarter_ : third_quarter_;
        if (2 * std::int64_t{ell} > rule_.ell_max) quarter = math::maximum(quarter, step.absolute);
        if (step.finite && residual_ < best_) {
            best_ = residual_;
            patience_ = rule_.patience;
        } else if (--patience_ == 0) {
            delta_ *= rule_.decay;
            patience_ = rule_.patience;
        }
    }
    FPRNN_BOTH void finish(status s) {
        outcome_ = s;
        running_ = false;
    }
    FPRNN_BOTH void finish(status s, int iterations, double residual) {
        finish(s);
        iterations_ = iterations;
        residual_ = residual;
    }

    /// Adds a chunk's outcome to the sequence's own.
    FPRNN_BOTH void report(tally& all, index tokens) const {
        // What overflowed poisons the chunks after it: they are its consequence, not another cause.
        detail::worsen(all.status, outcome_);
        all.iterations = math::maximum(all.iterations, iterations_);
        all.total_iterations += iterations_;
        all.residual = math::maximum(all.residual, residual_);
        if (outcome_ == status::converged) all.tokens_converged += tokens;
    }

private:
    static constexpr double infinite = std::numeric_limits<double>::infinity();
    static constexpr T rounding = 64 * std::numeric_limits<T>::epsilon();

    iteration_rule rule_;
    double delta_, delta_of_step_ = 1, best_ = infinite;
    int patience_;
    bool running_ = true;
    status outcome_ = status::max_iterations;  ///< until it is finished
    int iterations_ = 0;
    double residual_ = 0;
    T third_quarter_ = 0, last_quarter_ = 0;  ///< of ℓ_max: the largest absolute steps
};

/// The watches of a tile's sequences, in the memory of the backend.
template <class T>
struct watches {
    watch<T>* one = nullptr;   ///< [tile]
    T* running = nullptr;      ///< [tile], 1 where it is, for the host to see
    tally* tallies = nullptr;  ///< [tile]
};

/// The steps of a chunk's tokens, where each of them has a team: with one a sequence, most teams would be
/// idle.
template <class T>
struct token_steps {
    index tile, tokens, sequences;
    T *relative, *absolute;  ///< [tile, tokens]; what is not finite has an infinite absolute step
    T* moves;                ///< [tile], δ where the sequence goes on, 0 where it stays

    static constexpr T infinite = std::numeric_limits<T>::infinity();
    /// Numbers that they take.
    static index size(index tile, index tokens) { return 2 * tile * tokens + tile; }
    token_steps(T* memory, index tile_, index tokens_, index sequences_)
        : tile(tile_),
          tokens(tokens_),
          sequences(sequences_),
          relative(memory),
          absolute(relative + tile * tokens),
          moves(absolute + tile * tokens) {}
};

}  // namespace fprnn::engine

namespace fprnn::body {

/// Nothing has been iterated yet.
struct begin_tallies {
    engine::tally* tallies;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        Team::once([&] { ::new (static_cast<void*>(tallies + s)) engine::tally; });
    }
};

/// Watches of y ← f(y), in few bytes, see docs/decisions/0015-programs-of-rows.md.
template <class T>
struct begin_watches {
    double tolerance;
    int ell_max;
    engine::watches<T> of;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        Team::once([&] {
            ::new (static_cast<void*>(of.one + s)) engine::watch<T>(engine::iteration_rule{tolerance, ell_max});
            of.running[s] = T(1);
        });
    }
};
/// With any rule.
template <class T>
struct begin_damped_watches {
    engine::iteration_rule rule;
    engine::watches<T> of;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        Team::once([&] {
            ::new (static_cast<void*>(of.one + s)) engine::watch<T>(rule);
            of.running[s] = T(1);
        });
    }
};

/// Takes the step from `from` to `to` of sequence s, whose tokens are `stride` apart, and goes there: to =
/// from. A sequence that is done with it stays where it was, unless it `arrives`.
template <class T>
struct advance {
    index channels, tokens, stride;
    const T* to;
    T* from;
    bool arrives;
    engine::watches<T> of;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        engine::watch<T>& w = of.one[s];
        if (!w.running()) return;
        const T* reached = to + s * channels;
        T* at = from + s * channels;
        const auto step = engine::measure_step<Team>(reached, static_cast<const T*>(at), channels, stride, tokens);
        const T delta = static_cast<T>(w.delta());
        Team::once([&] {
            w.take(step);
            of.running[s] = w.running() ? T(1) : T(0);
        });
        if (!w.running() && !arrives) return;
        for (index t = 0; t < tokens; ++t, reached += stride, at += stride)
            engine::go_to<Team>(channels, delta, static_cast<const T*>(reached), at);
    }
};

/// The same in three bodies, of which the first and the last have a row for each token of each sequence,
/// t·tile + s.
template <class T>
struct measure_steps {
    static constexpr bool holds = true;
    index channels;
    const T *to, *from;
    engine::watches<T> of;
    engine::token_steps<T> steps;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const index s = r % steps.tile, at = s * steps.tokens + r / steps.tile;
        if (s >= steps.sequences || !of.one[s].running()) return;
        const auto step = engine::measure_step<Team>(to + r * channels, from + r * channels, channels, 0, 1);
        Team::once([&] {
            steps.relative[at] = step.relative;
            steps.absolute[at] = step.finite ? step.absolute : steps.infinite;
        });
    }
};
template <class T>
struct take_steps {
    bool arrives;
    engine::watches<T> of;
    engine::token_steps<T> steps;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        engine::watch<T>& w = of.one[s];
        const bool was_running = w.running();
        const T delta = static_cast<T>(w.delta());
        engine::step_size<T> step;
        if (was_running) {
            const index first = s * steps.tokens;
            step.relative = Team::max(steps.tokens, [&](auto lane) { return lane.load(steps.relative + first); });
            step.absolute = Team::max(steps.tokens, [&](auto lane) { return lane.load(steps.absolute + first); });
            step.finite = math::is_finite(step.absolute);
            if (!math::is_finite(step.relative)) step.relative = steps.infinite;  // max has no number where one was NaN
        }
        Team::once([&] {
            if (was_running) w.take(step);
            of.running[s] = w.running() ? T(1) : T(0);
            steps.moves[s] = was_running && (w.running() || arrives) ? delta : T(0);
        });
    }
};
template <class T>
struct go_to_steps {
    index channels;
    const T* to;
    T* from;
    engine::token_steps<T> steps;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const index s = r % steps.tile;
        const T delta = s < steps.sequences ? steps.moves[s] : T(0);
        if (delta == T(0)) return;
        engine::go_to<Team>(channels, delta, to + r * channels, from + r * channels);
    }
};

/// Adds to the tallies what has become of a chunk of so many tokens; `counts`, when there are any, receives
/// the iterations.
template <class T>
struct report {
    index tokens;
    engine::watches<T> of;
    T* counts;

    template <class Team>
    FPRNN_BOTH void row(index s, index) const {
        Team::once([&] {
            of.one[s].report(of.tallies[s], tokens);
            if (counts) counts[s] = static_cast<T>(of.one[s].iterations());
        });
    }
};

}  // namespace fprnn::body
