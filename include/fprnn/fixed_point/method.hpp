#pragma once

#include <fprnn/fixed_point/adjoint.hpp>
#include <fprnn/fixed_point/schedule.hpp>
#include <fprnn/fixed_point/solver.hpp>
#include <fprnn/fixed_point/stop.hpp>
#include <fprnn/fixed_point/watch.hpp>

#include <optional>
#include <variant>

namespace fprnn {

/// How a fixed point is found and differentiated: four values, each of which may be one of the library's or of one's own.
///
///     fixed_point(f, {.schedule = chunked{.length = 1},
///                     .solver = damped{.start = 1, .decay = 0.9, .patience = 15},
///                     .stop = residual{.tolerance = 1e-4} || iterations{100},
///                     .adjoint = implicit{}})
struct method {
    chunked schedule{};
    fprnn::solver solver{};
    std::optional<fprnn::stop> stop{};  ///< left out: the schedule's tolerance and ell_max
    fprnn::adjoint adjoint = implicit{};
};

/// The published loop: damped, with patience, until the `of`-quantile of the batch's best residuals is below the tolerance or ell_max is reached;
/// all sequences are iterated until then. Figures about ℓ* and ℓ_max can be compared with it. The authors count one evaluation more, that of
/// the gradient.
struct authors {
    double of = 0.75;  ///< of FP-Mamba in training; 0.9 of FP-Mamba2 and FP-RNN; 1 in evaluation
    double tolerance = 0.1;
    int ell_max = 1000;
    double start = 0.99, decay = 0.9;  ///< 1 and 1 of FP-RNN
    fprnn::adjoint adjoint = one_step{};

    operator method() const {
        return {.schedule = {.length = whole_sequence},
                .solver = damped{.start = start, .decay = decay, .patience = 15},
                .stop = share{.of = of, .tolerance = tolerance, .best_ever = true} || iterations{ell_max},
                .adjoint = adjoint};
    }
};

namespace engine {

/// A method for one call.
struct solving {
    const chunked& schedule;
    const fprnn::solver& solver;
    fprnn::stop stop;
    const fprnn::adjoint& adjoint;

    iteration_rule rule() const {
        const damped& d = solver.damping();
        return {stop.tolerance(), stop.ell_max(), d.start, d.decay, d.patience};
    }
    /// Whether steps or ends are of one's own, which the host takes sequence by sequence.
    bool has_own_rules() const { return solver.has_own_rule() || stop.has_own_rules(); }
    bool is_for_the_host() const {
        return has_own_rules() || stop.is_of_a_batch() || std::holds_alternative<own_adjoint>(adjoint);
    }
};

}  // namespace engine

}  // namespace fprnn
