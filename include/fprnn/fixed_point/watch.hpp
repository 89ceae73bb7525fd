#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/fixed_point/solution.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

/// When an iteration ends, sequence by sequence, and how.
namespace fprnn::engine {

/// ‖f − y‖ and ‖f‖ over a sequence's tokens: the largest relative and the largest absolute step.
template <class T>
struct step_size {
    T relative = 0, absolute = 0;
    bool finite = true;
};

template <class Team, class T>
step_size<T> measure_step(const T* to, const T* from, index channels, index stride, index tokens) {
    step_size<T> size;
    for (index t = 0; t < tokens; ++t, to += stride, from += stride) {
        const T change = Team::max(channels, [&](auto lane) {
            using math::abs;
            return abs(lane.load(to) - lane.load(from));
        });
        const T scale = Team::max(channels, [&](auto lane) {
            using math::abs;
            return abs(lane.load(to));
        });
        size.finite = size.finite && change - change == T(0) && scale - scale == T(0);
        size.absolute = std::max(size.absolute, change);
        size.relative = std::max(size.relative, change / (scale + T(1e-8)));
    }
    return size;
}

/// Follows one sequence through an iteration until it is done; from then on the sequence is frozen, so that it does not
/// depend on how long its neighbours take.
template <class T>
class watch {
public:
    watch(double tolerance, int ell_max) : tolerance_(tolerance), ell_max_(ell_max) {}

    bool running() const { return running_; }
    int iterations() const { return iterations_; }

    /// Takes step number ℓ = 1, 2, …
    void take(int ell, const step_size<T>& step) {
        iterations_ = ell;
        residual_ = step.finite ? static_cast<double>(step.relative) : std::numeric_limits<double>::infinity();
        if (!step.finite) {
            finish(ell == 1 ? status::nonfinite : status::diverged);
        } else if (step.relative < tolerance_) {
            finish(status::converged);
        } else if (ell >= ell_max_) {
            // An orbit's steps do not shrink; where rounding stops them, they are too small to be one.
            last_quarter_ = std::max(last_quarter_, step.absolute);
            const bool shrank = third_quarter_ == T(0) || last_quarter_ < T(0.99) * third_quarter_ ||
                                step.relative < 64 * std::numeric_limits<T>::epsilon();
            finish(shrank ? status::max_iterations : status::diverged);
        }
        T& quarter = 4 * std::int64_t{ell} > 3 * std::int64_t{ell_max_} ? last_quarter_ : third_quarter_;
        if (2 * std::int64_t{ell} > ell_max_) quarter = std::max(quarter, step.absolute);
    }
    void finish(status s) {
        outcome_ = s;
        running_ = false;
    }
    void finish(status s, int iterations, double residual) {
        finish(s);
        iterations_ = iterations;
        residual_ = residual;
    }

    /// Adds a chunk's outcome to the sequence's own.
    void report(convergence& all, index sequence, index tokens) const {
        const auto b = static_cast<std::size_t>(sequence);
        // What overflowed poisons the chunks after it: they are its consequence, not another cause.
        if (all.status[b] != status::diverged) all.status[b] = std::max(all.status[b], outcome_);
        all.iterations[b] = std::max(all.iterations[b], iterations_);
        all.total_iterations[b] += iterations_;
        all.residual[b] = std::max(all.residual[b], residual_);
        if (outcome_ == status::converged) all.tokens_converged[b] += tokens;
    }

private:
    double tolerance_;
    int ell_max_;
    bool running_ = true;
    status outcome_ = status::converged;
    int iterations_ = 0;
    double residual_ = 0;
    T third_quarter_ = 0, last_quarter_ = 0;  ///< of ℓ_max: the largest absolute steps
};

}  // namespace fprnn::engine
