// expect: fixed_point(f): f must have width d_inner, the width of prev
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto y = fixed_point(tanh(fprnn::linear<"W", fprnn::d_state>(cat(in, prev))));
