// expect: layer_norm has a name, that of its parameters
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::layer_norm(in);
