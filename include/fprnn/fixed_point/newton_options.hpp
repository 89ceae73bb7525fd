#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>

#include <string>

namespace fprnn {

struct newton_options {
    /// A sequence has converged when ‖F(s_{t−1}) − s_t‖_∞ / (‖F(s_{t−1})‖_∞ + 1e-8) of all its tokens is
    /// below it. F solves its token to a tenth of it.
    double tolerance = 1e-5;
    int ell_max = 100;  ///< iterations
    /// So many numbers of a carry, at most, are corrected through their whole Jacobian.
    index dense = 256;

    void validate() const {
        require(tolerance > 0 && math::is_finite(tolerance), "newton",
                [&] { return "tolerance must be positive and finite, got " + detail::number_text(tolerance); });
        require(ell_max >= 1, "newton", [&] { return "ell_max must be at least 1, got " + std::to_string(ell_max); });
        require(dense >= 0, "newton", [&] { return "dense must be at least 0, got " + std::to_string(dense); });
    }
};

}  // namespace fprnn
