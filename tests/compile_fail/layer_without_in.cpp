// expect: a layer maps sequences: its expression must contain `in`
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
fprnn::layer l(fixed_point(tanh(fprnn::parameter<"B">() + fprnn::linear<"S">(shift(prev)))));
