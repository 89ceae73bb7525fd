// expect: fixed_point(f): f must contain prev outside of the fixed points in it
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
fprnn::layer l(fixed_point(tanh(fprnn::linear<"A">(in))));
