// expect: fixed_point(f): f must contain prev, and no other fixed point
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto a = fixed_point(tanh(fprnn::linear<"A">(cat(in, prev))));
auto b = fixed_point(tanh(fprnn::linear<"B">(cat(a, prev))));
fprnn::layer l(b);
