#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>

#include <limits>
#include <string>

namespace fprnn {

/// The chunk length that takes any sequence whole.
inline constexpr index whole_sequence = std::numeric_limits<index>::max();

/// How a sequence is cut into chunks that are solved one after the other, and when a chunk counts as solved:
/// when max over its tokens of ‖f(y) − y‖_∞ / (‖f(y)‖_∞ + 1e-8) < tolerance
///                                                                              (sec. fp-mamba-iteration).
/// Every chunk starts from y⁰ = 0. ℓ_max bounds the iterations of a chunk.
struct chunked {
    index length = 1;
    double tolerance = 1e-4;
    int ell_max = 100;

    void validate() const {
        require(length >= 1, "chunked", [&] { return "length must be at least 1, got " + std::to_string(length); });
        require(tolerance > 0 && math::is_finite(tolerance), "chunked",
                [&] { return "tolerance must be positive and finite, got " + detail::number_text(tolerance); });
        require(ell_max >= 1, "chunked", [&] { return "ell_max must be at least 1, got " + std::to_string(ell_max); });
    }
};

struct stop_options {
    double tolerance = 1e-4;
    int ell_max = 100;
};
/// C = T: the paper's iteration over the whole sequence.
inline chunked parallel(stop_options stop = {}) { return {whole_sequence, stop.tolerance, stop.ell_max}; }
/// C = 1: one small solve per token; with a kept carry, generation.
inline chunked sequential(stop_options stop = {}) { return {1, stop.tolerance, stop.ell_max}; }

}  // namespace fprnn
