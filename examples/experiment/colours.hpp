#pragma once

#include <array>

/// Of curves: FP-Mamba blue, FP-Mamba2 green, diagonal models orange, the delta rule red, LSTMs light
/// green, Transformer grey; within a kind from light to dark.
namespace experiment {

inline constexpr const char *fp_blue = "#1f5fa8", *diagonal_orange = "#d9822b", *light_orange = "#e5b25d",
                            *delta_red = "#b5403a", *light_red = "#e08a84", *lstm_green = "#8fcaa3",
                            *transformer_grey = "#7a7a7a", *kronecker_violet = "#5b2a86", *dplr_teal = "#35978f";
/// Of 1, 2 and 4 reflections.
inline constexpr std::array blues{"#7fb2e5", "#3f7fbf", "#1b3f8b"};
/// Of one model with four values of an option, or of its blocks.
inline constexpr std::array four_blues{"#9ecae1", "#6baed6", "#3182bd", "#08306b"};
/// Of FP-Mamba2 with 1 and 4 reflections and with Kronecker.
inline constexpr std::array greens{"#7fbf7b", "#35978f", "#1b6e5a"};

}  // namespace experiment
