#pragma once

#include <fprnn/core/host_device.hpp>

namespace fprnn::cuda {

/// The map h ↦ a h + b of one token or of many. Composition is associative, so a recurrence can be cut
/// anywhere:
///
///     (a₂, b₂) ∘ (a₁, b₁) = (a₂ a₁, a₂ b₁ + b₂)
///
/// A product of decays that overflows makes NaN of a state that is zero, where the recurrence itself would
/// not.
template <class S>
struct alignas(sizeof(S) < 8 ? 2 * sizeof(S) : 16) affine {
    S a = S(1), b = S(0);

    FPRNN_BOTH S operator()(S h) const { return a * h + b; }
    /// What comes later stands on the left.
    FPRNN_BOTH friend affine operator*(affine later, affine earlier) {
        return {later.a * earlier.a, later.a * earlier.b + later.b};
    }
};

}  // namespace fprnn::cuda
