// expect: linear has a name, that of its parameters
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = tanh(weight_normed(fprnn::linear(in)) + prev);
