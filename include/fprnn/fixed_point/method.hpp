#pragma once

#include <fprnn/fixed_point/adjoint.hpp>
#include <fprnn/fixed_point/schedule.hpp>
#include <fprnn/fixed_point/solver.hpp>
#include <fprnn/fixed_point/stop.hpp>
#include <fprnn/fixed_point/watch.hpp>

#include <optional>
#include <variant>

namespace fprnn {

/// How a fixed point is found and differentiated: four values, each of which may be one of the library's or
/// of one's own.
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

    /// Errors: a schedule, a solver, a stop or an adjoint out of range, or two that do not go together.
    void validate() const {
        schedule.validate();
        fprnn::validate(adjoint);
        require(detail::evaluations_back(adjoint) == 1 || solver.is_picard(), "layer", [] {
            return std::string(
                "unrolled and truncated{k} repeat y <- f(y): expected solver picard{}, got another; "
                "implicit and neumann{k} are for all");
        });
    }
};

/// The published loop: damped, with patience, until the `of`-quantile of the batch's best residuals is below
/// the tolerance, δ below 1e-3 or ell_max reached; all sequences are iterated until then. Figures about ℓ*
/// and ℓ_max can be compared with it. The authors count one evaluation more, that of the gradient.
struct authors {
    double of = 0.75;  ///< of FP-Mamba in training; 0.9 of FP-Mamba2 and FP-RNN; 1 in evaluation
    double tolerance = 0.1;
    int ell_max = 1000;
    double start = 0.99, decay = 0.9;  ///< 1 and 1 of FP-RNN
    fprnn::adjoint adjoint = one_step{};

    operator method() const {
        return {.schedule = {.length = whole_sequence},
                .solver = damped{.start = start, .decay = decay, .patience = 15},
                .stop = share{.of = of, .tolerance = tolerance, .best_ever = true, .least_delta = 1e-3} ||
                        iterations{ell_max},
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

    /// Errors: see method::validate.
    explicit solving(const method& m)
        : schedule(m.schedule),
          solver(m.solver),
          stop(validated(m).stop ? *m.stop : stop_of(m.schedule)),
          adjoint(m.adjoint) {}

    iteration_rule rule() const {
        const damped& d = solver.damping();
        return {stop.tolerance(), stop.ell_max(), d.start, d.decay, d.patience};
    }
    /// Whether steps or ends are of one's own, which the host takes sequence by sequence.
    bool has_own_rules() const { return solver.has_own_rule() || stop.has_own_rules(); }
    bool is_for_the_host() const {
        return has_own_rules() || stop.is_of_a_batch() || std::holds_alternative<own_adjoint>(adjoint);
    }

private:
    static const method& validated(const method& m) {
        m.validate();
        return m;
    }
    static fprnn::stop stop_of(const chunked& s) {
        return fprnn::stop(residual{s.tolerance}) || fprnn::stop(iterations{s.ell_max});
    }
};

}  // namespace engine

}  // namespace fprnn
