// expect: one expression holds one fixed point: stack layers for several
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto a = fixed_point(tanh(fprnn::linear<"A">(cat(in, prev))));
auto b = fixed_point(tanh(fprnn::linear<"B">(cat(in, prev))));
fprnn::layer l(a + b);
