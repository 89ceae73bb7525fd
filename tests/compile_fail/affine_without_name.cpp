// expect: affine has a name, that of its parameters
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = sigmoid(fprnn::affine<fprnn::d_inner>(in));
