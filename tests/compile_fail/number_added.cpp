// expect: a number beside an expression, or a quotient: write factors as constant<1, 2>() * e
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = sigmoid(in) + 1;
