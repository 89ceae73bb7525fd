#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>

#include <string>
#include <variant>

namespace fprnn {

/// The vjp of f at the fixed point, nothing through ∂f/∂y: the paper's practice, k = 0       (sec. optimizing-fp-rnns).
/// The same for every schedule.
struct one_step {};

/// The exact gradient, J_x^* = (I − J_h^*)^{-1} J_x(h^*) (eq. hyper-grad), chunk by chunk in reverse time:
/// w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄. For one-token chunks directly where the mixer is compact
/// (fixed_point/token_adjoint.hpp), else by GMRES, until ‖residual‖₂ < tolerance · ‖right-hand side‖₂; for longer ones by
/// repeating the equation, until ‖Δw‖_∞ < tolerance · (‖w‖_∞ + ε). ell_max bounds the applications of J_hᵀ for a chunk; GMRES takes
/// at least 2.
struct implicit {
    double tolerance = 1e-5;
    int ell_max = 200;
};

/// Back through every iteration: what tests measure the others against. Costs ℓ* evaluations and keeps ℓ* iterates of one
/// chunk at a time.
struct unrolled {};

/// How a fixed point is differentiated, independent of how it was found.
using adjoint = std::variant<one_step, implicit, unrolled>;

inline void validate(const adjoint& a) {
    if (const auto* i = std::get_if<implicit>(&a)) {
        require(i->tolerance > 0 && math::is_finite(i->tolerance), "implicit",
                [&] { return "tolerance must be positive and finite, got " + detail::number_text(i->tolerance); });
        require(i->ell_max >= 1, "implicit",
                [&] { return "ell_max must be at least 1, got " + std::to_string(i->ell_max); });
    }
}

}  // namespace fprnn
