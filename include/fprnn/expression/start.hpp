#pragma once

#include <fprnn/core/initialiser.hpp>

namespace fprnn {

/// How a declared parameter starts; the numbers are template arguments because types carry them.
namespace start {
template <int Numerator, int Denominator = 1>
struct constant {
    static constexpr initialiser value{initialiser::rule::constant, double(Numerator) / Denominator};
};
template <int Numerator, int Denominator = 1>
struct fan_in {
    static constexpr initialiser value{initialiser::rule::fan_in, double(Numerator) / Denominator};
};
template <int Numerator, int Denominator = 1>
struct normal {
    static constexpr initialiser value{initialiser::rule::normal, double(Numerator) / Denominator};
};
/// Uniform on ± Numerator / Denominator.
template <int Numerator, int Denominator = 1>
struct uniform {
    static constexpr initialiser value{initialiser::rule::uniform, -double(Numerator) / Denominator,
                                       double(Numerator) / Denominator};
};
/// Uniform on [Low, High).
template <int Low, int High>
struct between {
    static constexpr initialiser value{initialiser::rule::uniform, Low, High};
};
/// log u, u uniform between Low and High.
template <int Low, int High>
struct log_uniform {
    static constexpr initialiser value{initialiser::rule::log_uniform, Low, High};
};
/// Of a parameter [n] behind one of [n,k]: the lengths of that one's rows.
struct row_norm {
    static constexpr initialiser value{initialiser::rule::row_norm};
};
struct log_row {
    static constexpr initialiser value{initialiser::rule::log_row};
};
/// Steps Δ between LowPermille/1000 and HighPermille/1000, log-uniform.
template <int LowPermille, int HighPermille>
struct softplus_step {
    static constexpr initialiser value{initialiser::rule::softplus_step, LowPermille / 1000.0, HighPermille / 1000.0};
};
}  // namespace start

}  // namespace fprnn
