// expect: shift takes `in`, `prev` or a node outside the iteration: shift before you map, linear(shift(prev))
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::linear<"W">(shift(fprnn::linear<"V">(prev)));
