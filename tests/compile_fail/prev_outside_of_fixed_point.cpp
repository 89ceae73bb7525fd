// expect: prev stands outside of fixed_point(f): use shift(y) of y = fixed_point(f) instead
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto y = fixed_point(tanh(fprnn::linear<"W">(cat(in, prev))));
fprnn::layer l(y* sigmoid(fprnn::linear<"gate">(cat(in, shift(prev)))));
