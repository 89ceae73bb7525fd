#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>

#include <cmath>
#include <numbers>
#include <string>

namespace fprnn {

/// How a learning rate falls after its warm-up.
enum class decay { none, linear, cosine };

/// The learning rate of each step, counted from 0. With W warm-up and N total steps, p = (step − W)/(N − W)
/// and f = final_fraction:
///
///     step < W:  peak · (step + 1)/W
///     step < N:  peak · (f + (1 − f) · s(p)),  s = 1 (none), 1 − p (linear), (1 + cos πp)/2 (cosine)
///     after:     peak · f, or peak without decay
///
/// The rate is positive on every step before N, as adamw asks for; with f = 0 it is 0 from N on.
struct learning_rate_schedule {
    double peak = 3e-3;
    index warmup_steps = 0;
    index total_steps = 0;  ///< not used without decay
    fprnn::decay decay = fprnn::decay::cosine;
    double final_fraction = 0;

    /// argument_error when a member or the step is out of its range.
    double operator()(index step) const {
        validate(step);
        if (step < warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
        if (decay == fprnn::decay::none) return peak;
        if (step >= total_steps) return peak * final_fraction;
        // From 1 − p, in which (1 + cos πp)/2 = sin² π(1 − p)/2: p itself rounds to 1 before the end of very
        // many steps.
        const double left = static_cast<double>(total_steps - step) / static_cast<double>(total_steps - warmup_steps);
        const double root = std::sin(0.5 * std::numbers::pi * left);
        const double s = decay == fprnn::decay::linear ? left : root * root;
        return peak * (final_fraction + (1 - final_fraction) * s);
    }

private:
    void validate(index step) const {
        constexpr auto operation = "learning_rate_schedule";
        require(peak > 0 && math::is_finite(peak), operation,
                [&] { return "peak must be positive and finite, got " + detail::number_text(peak); });
        require(warmup_steps >= 0, operation,
                [&] { return "warmup_steps must be at least 0, got " + std::to_string(warmup_steps); });
        require(decay == fprnn::decay::none || total_steps >= warmup_steps, operation, [&] {
            return "total_steps must be at least warmup_steps, got " + std::to_string(total_steps) + " and " +
                   std::to_string(warmup_steps);
        });
        require(final_fraction >= 0 && final_fraction <= 1, operation,
                [&] { return "final_fraction must be in [0,1], got " + detail::number_text(final_fraction); });
        require(step >= 0, operation, [&] { return "step must be at least 0, got " + std::to_string(step); });
    }
};

}  // namespace fprnn
