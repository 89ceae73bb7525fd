#pragma once

#include "layer_check.hpp"

#include <ops/checks.hpp>

namespace layers {

/// That two runs of a layer gave the same numbers, after as many iterations.
inline void check_same(const outcome& got, const outcome& expected) {
    CHECK(checks::same_bits(got.value, expected.value));
    CHECK(checks::same_bits(got.carry, expected.carry));
    CHECK(checks::same_bits(got.x_bar, expected.x_bar));
    CHECK(checks::same_bits(got.theta_bar, expected.theta_bar));
    CHECK(got.forward.iterations == expected.forward.iterations);
    CHECK(got.forward.residual == expected.forward.residual);
    CHECK(got.back.iterations == expected.back.iterations);
}

}  // namespace layers
