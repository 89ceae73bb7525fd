// expect: linear has a name, that of its parameters
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::linear(in, "W");
