// expect: fixed_point(f): f must contain prev outside of the fixed points in it
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto a = fixed_point(tanh(fprnn::linear<"A">(cat(in, prev))));
auto b = fixed_point(tanh(fprnn::linear<"B">(a)));
fprnn::layer l(b);
