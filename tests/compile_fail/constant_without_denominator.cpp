// expect: constant<Numerator, Denominator>() is a quotient: its denominator must not be 0
#include <fprnn/fixed_point/layer.hpp>

auto f = fprnn::constant<1, 0>();
